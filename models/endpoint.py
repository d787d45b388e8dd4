"""OpenAI-compatible endpoints: any server that answers `POST {api_base}/chat/completions`.

What a server takes as output format is not known beforehand. The first call asks for a JSON schema; a server that
refuses is asked for any JSON object, then for no format at all (the prompt asks for JSON in words anyway). What it
took is remembered, for each address and model, in this process and in `endpoints.json` of the cache folder.

Keys come from the environment only. Errors are DSPy's: it repeats calls that failed for a passing reason, and waits
as long as a server's Retry-After says.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from dspy import lm15

# DSPy builds its transports through a router whose model names cannot be those of an unknown server.
from dspy._vendor.lm15.transports import ConnectError, ReadTimeout, StdlibAsyncTransport, StdlibTransport

from ..errors import InputError
from .async_twin import AsyncTwin
from .output_formats import Format, complains, negotiation_for, too_long
from .simulation.calls import LABEL as SIMULATED

#: Seconds without a byte after which a server counts as stalled.
TIMEOUT = 120.0
_CONNECT_TIMEOUT = 10.0
#: The environment variable that the key comes from unless another is named.
KEY_VARIABLE = "OPENAI_API_KEY"
#: Sent where no key is set: local servers want none, and many clients and proxies expect something.
_NO_KEY = "no-key"
_MOST_CONNECTIONS = 512
#: A Retry-After of more seconds than this ends the call.
_LONGEST_WAIT = 300.0


def normal_base(api_base: str) -> str:
    """Return an `api_base` in its one spelling: no slash at the end; "/v1" where there is no path at all.

    Raises:
        InputError: when it is not an http(s) address, or carries a password.
    """
    parts = urlsplit(api_base.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(
            f"the API base '{without_credentials(api_base)}' is not an address such as http://127.0.0.1:8000/v1"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InputError(
            f"the API base '{without_credentials(api_base)}' must carry no user name, password or query; "
            "the key comes from an environment variable (api_key_env)"
        )
    path = parts.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def without_credentials(address: str) -> str:
    """Return an address without user name, password, query and fragment."""
    parts = urlsplit(address.strip())
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


class EndpointEngine:
    """A DSPy engine for one model of one OpenAI-compatible server.

    Args:
        model: the model's name as the server knows it.
        api_base: see `normal_base`.
        api_key_env: the environment variable that holds the key; OPENAI_API_KEY by default, and a placeholder is sent
            when that is not set.
        timeout: seconds without a byte after which the server counts as stalled.

    Raises:
        InputError: for an address that is none.
    """

    kind = "endpoint"
    #: Stated whatever the server takes: what DSPy asks for is part of its cache key, and must not change on the way.
    supports_response_schema = True
    supports_function_calling = False
    supports_reasoning = False
    supported_params = (
        "temperature",
        "max_tokens",
        "top_p",
        "stop",
        "seed",
        "presence_penalty",
        "frequency_penalty",
        "logit_bias",
        "response_format",
    )

    def __init__(self, model: str, api_base: str, api_key_env: str | None = None, timeout: float | None = None) -> None:
        self.model = model
        self.api_base = normal_base(api_base)
        self.api_key_env = api_key_env
        self.timeout = TIMEOUT if timeout is None else float(timeout)
        if not 0 < self.timeout < float("inf"):
            raise InputError(f"the timeout is {timeout}; it must be a positive number of seconds")
        #: Whether a reply named a simulated model.
        self.saw_simulated = False
        self.negotiation = negotiation_for(f"{self.api_base} {model}")
        self._lock = threading.Lock()
        self._client: lm15.OpenAIChatLM | None = None

    @property
    def label(self) -> str:
        """The name under which DSPy caches replies and counts usage: model and address, without the scheme."""
        return f"{self.model}@{self.api_base.partition('://')[2]}"

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Return the server's reply.

        Raises:
            lm15.LM15Error: for whatever the server or the way to it does wrong.
        """
        wanted = request.config.response_format
        if wanted is None or self.negotiation.settled():
            return self._negotiated(request)
        finding_out = self.negotiation.enter()
        if finding_out is not None:
            finding_out.wait()
            return self._negotiated(request)
        try:
            return self._negotiated(request)
        finally:
            self.negotiation.leave()

    def _negotiated(self, request: lm15.Request) -> lm15.Response:
        attempts = Attempts(self, request)
        for wire in attempts:
            try:
                return attempts.succeed(self._connect().complete(wire))
            except lm15.LM15Error as error:
                attempts.fail(error)
        raise attempts.failure()

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        """Yield the reply's events, all at the end: a schema is negotiated by whole replies."""
        yield from lm15.response_to_events(self.complete(request))

    def close(self) -> None:
        """Close idle connections."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.transport.close()

    def dump_state(self) -> dict[str, Any]:
        """Return what `load_state` needs: no key."""
        return {
            "model": self.model,
            "api_base": self.api_base,
            "api_key_env": self.api_key_env,
            "timeout": self.timeout,
        }

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> EndpointEngine:
        """Return the engine of a saved program."""
        return cls(state["model"], state["api_base"], state.get("api_key_env"), state.get("timeout"))

    def __deepcopy__(self, memo: Any) -> EndpointEngine:
        return self

    # -- how -----------------------------------------------------------------------------------------------------

    def key(self) -> str:
        """Return the key to send.

        Raises:
            lm15.NotConfiguredError: when the variable that was named for it is not set.
        """
        found = os.environ.get(self.api_key_env or KEY_VARIABLE)
        if not found and self.api_key_env:
            raise lm15.NotConfiguredError(f"{self.label}: the environment variable {self.api_key_env} is not set")
        return found or _NO_KEY

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the clients."""
        official = urlsplit(self.api_base).hostname == "api.openai.com"
        # Everyone but OpenAI's newest models calls the limit max_tokens.
        compat = lm15.OpenAIChatCompat.preset("openai") if official else lm15.OpenAIChatCompat.preset("vllm")
        return {
            "api_key": self.key(),
            "base_url": self.api_base,
            "compat": replace(compat, token_scoring="none"),
        }

    def limits(self) -> dict[str, Any]:
        """Return the arguments of the transports."""
        return {
            "connect_timeout": min(_CONNECT_TIMEOUT, self.timeout),
            "read_timeout": self.timeout,
            "write_timeout": self.timeout,
            "pool_timeout": None,
            "max_connections": _MOST_CONNECTIONS,
        }

    def _connect(self) -> lm15.OpenAIChatLM:
        with self._lock:
            if self._client is None:
                self._client = lm15.OpenAIChatLM(transport=StdlibTransport(**self.limits()), **self.settings())
            return self._client

    def clear(self, error: lm15.LM15Error) -> lm15.LM15Error:
        """Return an error whose text says which server it was and what can be done."""
        cause = error.__cause__
        where = self.label
        details = {"provider": "endpoint", "status": error.status, "provider_code": error.provider_code}
        if isinstance(cause, ReadTimeout):
            return lm15.TimeoutError(
                f"{where}: the server sent nothing for {self.timeout:g} seconds; raise the timeout if it needs longer",
                provider="endpoint",
            )
        if isinstance(cause, ConnectError):
            return lm15.TransportError(f"{where}: the server is not reached ({cause}); is it running?")
        if isinstance(error, lm15.RateLimitError) and (error.retry_after or 0) > _LONGEST_WAIT:
            # DSPy would sleep as long as it takes: a quota for the day must end the run, not hang it.
            return lm15.BillingError(
                f"{where}: the server asks to wait {error.retry_after:g} seconds, which is too long; start again then",
                **details,
            )
        if isinstance(error, lm15.AuthError):
            variable = self.api_key_env or KEY_VARIABLE
            state = "is not accepted" if os.environ.get(variable) else "is not set"
            reason = error.message.partition("\n")[0]
            # The class adds advice for programmers; this is the user's.
            clear = lm15.AuthError(f"{where}: {reason}; the environment variable {variable} {state}", **details)
            clear.message = clear.message.partition("\n\n")[0]
            return clear
        if type(error) is lm15.InvalidRequestError and too_long(error.message):
            return lm15.ContextLengthError(f"{where}: {error.message}", **details)
        if type(error) is lm15.ProviderError:
            # A reply that is no JSON: a gateway's page or a body that broke off. Asking again may help.
            return lm15.ServerError(f"{where}: {error.message}", **details)
        return error


class Attempts:
    """The requests that one call may take: the wanted output format, and lesser ones when it is refused."""

    def __init__(self, engine: EndpointEngine, request: lm15.Request) -> None:
        self.engine = engine
        self.wanted = request.config.response_format
        self._request = replace(request, model=engine.model)
        self._options: list[Format] = engine.negotiation.options(self.wanted) if self.wanted else ["none"]
        self._current: Format = self._options[0]
        self._errors: list[lm15.LM15Error] = []

    def __iter__(self) -> Iterator[lm15.Request]:
        for option in self._options:
            self._current = option
            yield self._as(option)

    def _as(self, option: Format) -> lm15.Request:
        if self.wanted is None or option == self.wanted["type"]:
            return self._request
        other = {"type": "json_object"} if option == "json_object" else None
        return replace(self._request, config=replace(self._request.config, response_format=other))

    def succeed(self, response: lm15.Response) -> lm15.Response:
        """Take in a reply, and return it."""
        if response.model.startswith(SIMULATED):
            self.engine.saw_simulated = True
        if self.wanted is not None:
            self.engine.negotiation.learn(self.wanted, self._current)
        return response

    def fail(self, error: lm15.LM15Error) -> None:
        """Take in an error: return when a lesser format may help.

        Raises:
            lm15.LM15Error: when it may not.
        """
        self._errors.append(error)
        if self.wanted is None or self._current == "none" or not complains(error):
            raise self.failure()

    def failure(self) -> lm15.LM15Error:
        """Return the error to raise: the first, unless a later one was of another kind than a refusal."""
        first, last = self._errors[0], self._errors[-1]
        error = first if complains(last) else last
        clear = self.engine.clear(error)
        if clear is not error:
            clear.__cause__ = error
        return clear


class AsyncEndpointEngine(AsyncTwin[EndpointEngine]):
    """The asynchronous twin of an `EndpointEngine`; connections belong to the event loop they were made in."""

    engine_type = EndpointEngine

    def __init__(self, engine: EndpointEngine) -> None:
        super().__init__(engine)
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, lm15.AsyncOpenAIChatLM]
        self._clients = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """See `EndpointEngine.complete`."""
        negotiation = self.engine.negotiation
        if request.config.response_format is None or negotiation.settled():
            return await self._negotiated(request)
        finding_out = negotiation.enter()
        if finding_out is not None:
            while not finding_out.is_set():  # it may be a thread that finds out, or a task of another loop
                await asyncio.sleep(0.005)
            return await self._negotiated(request)
        try:
            return await self._negotiated(request)
        finally:
            negotiation.leave()

    async def _negotiated(self, request: lm15.Request) -> lm15.Response:
        attempts = Attempts(self.engine, request)
        for wire in attempts:
            try:
                return attempts.succeed(await self._connect().complete(wire))
            except lm15.LM15Error as error:
                attempts.fail(error)
        raise attempts.failure()

    def _connect(self) -> lm15.AsyncOpenAIChatLM:
        loop = asyncio.get_running_loop()
        with self._lock:
            client = self._clients.get(loop)
            if client is None:
                transport = StdlibAsyncTransport(**self.engine.limits())
                client = lm15.AsyncOpenAIChatLM(transport=transport, **self.engine.settings())
                self._clients[loop] = client
            return client

    async def aclose(self) -> None:
        """Close this loop's idle connections."""
        with self._lock:
            client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()
