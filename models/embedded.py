"""The embedded model: llama.cpp in this process, through the package xllamacpp (the extra `local`).

One server object a weights file is shared by all models of a process; it is loaded at the first call. Replies follow
the JSON schema that DSPy sends, token by token. Two replies are written at the same time, each in a slot of its own,
and a prompt that begins like one read before is read only from where it differs.

Sampling is seeded; at temperature 0 the likeliest token is taken. A reply can still differ by a word when other
requests are in flight, since llama.cpp adds up batches of different sizes in different orders; DSPy's cache makes a
rerun exact.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dspy import lm15

from ..errors import TownhallError
from . import weights
from .async_twin import AsyncTwin
from .messages import plain_messages, response
from .schema import bounded

logger = logging.getLogger(__name__)

#: Replies written at the same time; more do not pay on two cores.
SLOTS = 2
#: Tokens of prompt and reply together, in each slot, for weights of the user's own.
CONTEXT = 8192
#: The longest reply when the caller sets no limit.
MAX_TOKENS = 1024
TEMPERATURE = 0.7
#: Memory, in MiB, for prompts that left their slot and may come back.
_PROMPT_CACHE_MIB = 1024
_MOST_THREADS = 8


class Server:
    """One weights file, loaded; thread-safe. Use `server_for`, which shares them."""

    def __init__(self, file: Path, context: int, slots: int = SLOTS) -> None:
        xllamacpp = weights.require_engine()
        params = xllamacpp.CommonParams()
        params.model.path = str(file)
        params.n_ctx = context * slots  # llama.cpp divides it among the slots
        params.n_parallel = slots
        threads = _threads()
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        params.cache_ram_mib = _PROMPT_CACHE_MIB
        params.verbosity = -1
        # The engine opens a port on the loopback interface by itself: nobody else may use it.
        params.api_keys = [secrets.token_urlsafe(32)]
        params.ui = False
        params.endpoint_slots = False
        self.file = file
        self.context = context
        try:
            self._server = xllamacpp.Server(params)
        except Exception as error:  # the engine raises whatever llama.cpp says, as RuntimeError or ValueError
            raise lm15.ConfigurationError(f"{file}: llama.cpp cannot load these weights ({error})") from error
        # Calls wait here in order, not in the default executor, which others need.
        self._workers = ThreadPoolExecutor(max_workers=slots, thread_name_prefix="townhall-embedded")
        self._closed = threading.Event()

    def submit(self, body: dict[str, Any], cancelled: threading.Event) -> Future[Completion]:
        """Queue a chat completion; setting `cancelled` ends it at the next token."""
        return self._workers.submit(self._complete, body, cancelled)

    def _complete(self, body: dict[str, Any], cancelled: threading.Event) -> Completion:
        completion = Completion()

        def on_chunk(chunk: Any) -> bool:
            completion.add(chunk)
            return cancelled.is_set() or self._closed.is_set()

        if not cancelled.is_set():
            self._run({**body, "stream": True, "stream_options": {"include_usage": True}}, on_chunk, completion)
        completion.cancelled = cancelled.is_set() or self._closed.is_set()
        return completion

    def _run(self, body: dict[str, Any], on_chunk: Callable[[Any], bool], completion: Completion) -> None:
        try:
            self._server.handle_chat_completions(body, on_chunk)
        except (ValueError, RuntimeError) as error:
            if body.get("response_format", {}).get("type") == "json_schema":
                logger.warning("llama.cpp cannot follow this JSON schema (%s); any JSON object is taken instead", error)
                self._run({**body, "response_format": {"type": "json_object"}}, on_chunk, completion)
                return
            completion.error = {"message": str(error), "type": "invalid_request_error"}

    def close(self) -> None:
        """End what is running at its next token and free the model."""
        self._closed.set()
        self._workers.shutdown(wait=True, cancel_futures=True)
        self._server = None


def _threads() -> int:
    """Return how many threads to compute with: the cores this process may use, and not more than pay."""
    affinity = getattr(os, "sched_getaffinity", None)
    return max(1, min(len(affinity(0)) if affinity else os.cpu_count() or 2, _MOST_THREADS))


class Completion:
    """A chat completion as it grows, chunk by chunk."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.finish = "stop"
        self.usage: dict[str, Any] = {}
        self.error: dict[str, Any] | None = None
        self.cancelled = False

    def add(self, chunk: Any) -> None:
        """Take in one chunk of the engine's stream (it sends single ones and lists of them)."""
        for part in chunk if isinstance(chunk, list) else [chunk]:
            if "error" in part:
                self.error = part["error"]
            for choice in part.get("choices", ()):
                self.pieces.append(choice.get("delta", {}).get("content") or "")
                self.finish = choice.get("finish_reason") or self.finish
            self.usage = part.get("usage") or self.usage

    @property
    def text(self) -> str:
        """What was written so far."""
        return "".join(self.pieces)


_SERVERS: dict[tuple[int, Path, int], Server] = {}
_LOADING = threading.Lock()


def server_for(file: Path, context: int) -> Server:
    """Return this process's server of a weights file, loading it at the first call."""
    key = (os.getpid(), file.resolve(), context)
    with _LOADING:
        if key not in _SERVERS:
            if not _SERVERS:
                _at_exit(close_all)
            _SERVERS[key] = Server(file, context)
        return _SERVERS[key]


def _at_exit(function: Callable[[], None]) -> None:
    # Executors wait for their workers before `atexit` runs: a reply that is being written would hold up the exit.
    getattr(threading, "_register_atexit", atexit.register)(function)


def close_all() -> None:
    """Close all servers of this process; the next call loads anew."""
    with _LOADING:
        for (process, _, _), server in list(_SERVERS.items()):
            if process == os.getpid():
                server.close()
        _SERVERS.clear()


class EmbeddedEngine:
    """A DSPy engine over an embedded model.

    Args:
        name: of the catalogue; None for weights of the user's own.
        path: those weights; None for the catalogue's.
    """

    kind = "embedded"
    supports_response_schema = True
    supports_function_calling = False
    supports_reasoning = False
    supported_params = (
        "temperature",
        "max_tokens",
        "top_p",
        "top_k",
        "stop",
        "seed",
        "presence_penalty",
        "frequency_penalty",
        "response_format",
    )

    def __init__(self, name: str | None = None, path: str | None = None) -> None:
        self.name = name
        self.path = path
        self.label = f"local/{path or name}"

    # -- DSPy's contract -----------------------------------------------------------------------------------------

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Return the reply to a request.

        Raises:
            lm15.ContextLengthError: when prompt and reply do not fit into a slot's context.
            lm15.InvalidRequestError: for a request the engine refuses.
        """
        cancelled = threading.Event()
        try:
            return self._read(self._submit(request, cancelled).result())
        except BaseException:
            cancelled.set()
            raise

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        """Yield the reply's events, all at the end."""
        yield from lm15.response_to_events(self.complete(request))

    def close(self) -> None:
        """Nothing: servers are shared and close with the process."""

    def dump_state(self) -> dict[str, Any]:
        """Return what `load_state` needs."""
        return {"name": self.name, "path": self.path}

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> EmbeddedEngine:
        """Return the engine of a saved program; its weights are looked for at the first call."""
        return cls(state.get("name"), state.get("path"))

    def __deepcopy__(self, memo: Any) -> EmbeddedEngine:
        return self

    # -- how -----------------------------------------------------------------------------------------------------

    @property
    def context(self) -> int:
        """Tokens of prompt and reply together."""
        return weights.weights(self.name).context if self.name else CONTEXT

    def server(self) -> Server:
        """Return the loaded model; its weights are pulled first when they are not here."""
        try:
            file = Path(self.path).expanduser() if self.path else weights.ensure(self.name or weights.DEFAULT)
            return server_for(file, self.context)
        except TownhallError as error:
            raise lm15.ConfigurationError(str(error), provider="embedded") from error

    def _submit(self, request: lm15.Request, cancelled: threading.Event) -> Future[Completion]:
        return self.server().submit(self._body(request), cancelled)

    def _body(self, request: lm15.Request) -> dict[str, Any]:
        config = request.config
        limit = config.max_tokens or MAX_TOKENS
        body: dict[str, Any] = {
            "messages": plain_messages(request),
            "max_tokens": limit,
            "temperature": TEMPERATURE if config.temperature is None else config.temperature,
            "cache_prompt": True,
        }
        for key in ("top_p", "top_k", "presence_penalty", "frequency_penalty"):
            if getattr(config, key) is not None:
                body[key] = getattr(config, key)
        if config.stop:
            body["stop"] = list(config.stop)
        if config.seed is not None:
            body["seed"] = config.seed % 0x7FFFFFFF  # 32 bits, and the largest stands for "random"
        wanted = config.response_format
        if wanted and wanted["type"] == "json_schema":
            schema = bounded(wanted["schema"], limit)
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
        elif wanted:
            body["response_format"] = {"type": "json_object"}
        return body

    def _read(self, completion: Completion) -> lm15.Response:
        if completion.error is not None:
            raise self._error(completion.error)
        if completion.cancelled:
            raise lm15.TransportError("the embedded model was closed while it wrote a reply")
        details = completion.usage.get("prompt_tokens_details") or {}
        return response(
            self.label,
            completion.text,
            finish="length" if completion.finish == "length" else "stop",
            prompt_tokens=completion.usage.get("prompt_tokens", 0),
            completion_tokens=completion.usage.get("completion_tokens", 0),
            cached_tokens=details.get("cached_tokens"),
        )

    def _error(self, error: dict[str, Any]) -> lm15.LM15Error:
        message = str(error.get("message") or error)
        kind = error.get("type")
        details = {"provider": "embedded", "provider_code": kind}
        if kind == "exceed_context_size_error":
            return lm15.ContextLengthError(
                f"the prompt has {error.get('n_prompt_tokens', '?')} tokens; {self.label} reads at most "
                f"{error.get('n_ctx', self.context)}, the reply included. Use fewer personas, rounds or demonstrations",
                **details,
            )
        if kind in ("invalid_request_error", "not_supported_error"):
            return lm15.InvalidRequestError(message, **details)
        return lm15.ServerError(message, **details)


class AsyncEmbeddedEngine(AsyncTwin[EmbeddedEngine]):
    """The asynchronous twin of an `EmbeddedEngine`: waits without holding up the loop."""

    engine_type = EmbeddedEngine

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """See `EmbeddedEngine.complete`; cancelling ends the reply at its next token."""
        cancelled = threading.Event()
        try:
            # Loading takes a second or more.
            future = await asyncio.to_thread(self.engine._submit, request, cancelled)
            return self.engine._read(await asyncio.wrap_future(future))
        except BaseException:
            cancelled.set()
            raise
