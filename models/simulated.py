"""The simulated model as a DSPy engine, in this process: for tests, benchmarks and dry runs.

See `simulation` for what it answers, and `server` for the same over HTTP. Token counts are estimates (a token is taken
to have four characters). It costs nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import dspy
from dspy import lm15

from ..errors import InputError
from .async_twin import AsyncTwin
from .messages import plain_messages, response, schema_of
from .simulation import (
    LABEL,
    AnswerKey,
    Call,
    Fault,
    FaultError,
    Responder,
    SimulatedBehaviour,
    Speaker,
    Spoken,
    parse_name,
)


def fault_error(fault: Fault, model: str) -> lm15.LM15Error:
    """Return the error that a fault is for a caller in the same process."""
    if fault.kind == "429":
        return lm15.RateLimitError(f"{model}: simulated rate limit", status=429, retry_after=fault.seconds)
    if fault.kind == "500":
        return lm15.ServerError(f"{model}: simulated server error", status=500)
    if fault.kind == "stall":
        return lm15.TimeoutError(f"{model}: simulated stall")
    return lm15.TransportError(f"{model}: simulated broken connection")


class SimulatedEngine:
    """A DSPy engine that answers without a language model.

    Args:
        name: the model's name, with its arguments, see `simulation.parse_name`.
        behaviour: overrides the name's.
        responder: overrides the behaviour's replies. An engine with a behaviour or responder of its own cannot be
            saved.
        record: keep every `Call` in `requests`.
    """

    kind = "simulated"
    supports_response_schema = True
    supports_function_calling = False
    supports_reasoning = False
    supported_params = ("temperature", "max_tokens", "stop", "seed", "response_format")

    def __init__(
        self,
        name: str = LABEL,
        behaviour: SimulatedBehaviour | None = None,
        responder: Responder | None = None,
        *,
        record: bool = False,
    ) -> None:
        self.name = name
        self.model, named = parse_name(name)
        self._own = behaviour is not None or responder is not None
        self.speaker = Speaker(behaviour or named, responder)
        self.requests: list[Call] = []
        self._record = record
        self._lock = threading.Lock()

    @property
    def behaviour(self) -> SimulatedBehaviour:
        """How it behaves."""
        return self.speaker.behaviour

    @property
    def calls(self) -> int:
        """How many calls it had, failed ones included."""
        return self.speaker.calls

    @property
    def label(self) -> str:
        """The name under which DSPy caches replies: it changes with the content of the answers file."""
        answers = self.behaviour.answers
        if self._own or not isinstance(answers, dict):
            return self.name
        content = json.dumps({question: _plain(key) for question, key in answers.items()}, sort_keys=True)
        return f"{self.name}#{hashlib.sha256(content.encode()).hexdigest()[:8]}"

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Return the simulated reply after the behaviour's latency."""
        time.sleep(self.behaviour.latency)
        return self._reply(request)

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        """Yield the reply's events, all at the end."""
        yield from lm15.response_to_events(self.complete(request))

    def _reply(self, request: lm15.Request) -> lm15.Response:
        call = Call.of(
            plain_messages(request),
            schema_of(request),
            seed=request.config.seed,
            model=self.model,
            temperature=request.config.temperature,
        )
        if self._record:
            with self._lock:
                self.requests.append(call)
        try:
            spoken: Spoken = self.speaker.speak(call, request.config.max_tokens)
        except FaultError as error:
            raise fault_error(error.fault, self.model) from error
        return response(
            self.model,
            spoken.text,
            finish=spoken.finish,
            prompt_tokens=spoken.prompt_tokens,
            completion_tokens=spoken.completion_tokens,
            provider_data={"simulated": True, "usage": "estimated"},
        )

    def close(self) -> None:
        """Nothing to close."""

    def dump_state(self) -> dict[str, Any]:
        """Return what `load_state` needs.

        Raises:
            TypeError: when behaviour or responder were given as Python objects.
        """
        if self._own:
            raise TypeError(
                "a simulated model with a behaviour or responder of its own cannot be saved; name its arguments"
            )
        return {"name": self.name}

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> SimulatedEngine:
        """Return the engine of a saved program."""
        return cls(state["name"])

    def __deepcopy__(self, memo: Any) -> SimulatedEngine:
        return self


def _plain(key: Any) -> Any:
    if not isinstance(key, AnswerKey):
        return key
    return [key.answer, list(key.wrong), sorted(key.right_for) if key.right_for is not None else None]


class AsyncSimulatedEngine(AsyncTwin[SimulatedEngine]):
    """The asynchronous twin of a `SimulatedEngine`."""

    engine_type = SimulatedEngine

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """See `SimulatedEngine.complete`."""
        await asyncio.sleep(self.engine.behaviour.latency)
        return self.engine._reply(request)


def simulated_lm(
    responder: Responder | None = None,
    *,
    behaviour: SimulatedBehaviour | None = None,
    name: str = LABEL,
    cache: bool | None = None,
    record: bool = True,
    temperature: float | None = None,
    max_tokens: int | None = None,
    **kwargs: Any,
) -> dspy.LM:
    """Return a simulated model with a behaviour or responder of one's own; `lm.engine` is its `SimulatedEngine`.

    Args:
        responder: from a `Call` to a reply.
        behaviour: for the default responder, and for latency and faults.
        name: the model's name; starts with "simulated".
        cache: whether DSPy caches its replies; by default only when nothing but the name decides them.
        record: keep every `Call` in `lm.engine.requests`.
        temperature: default of its requests.
        max_tokens: default of its requests.
        **kwargs: passed on to `dspy.LM`.

    Raises:
        InputError: when the name does not start with "simulated".
    """
    if not name.startswith(LABEL):
        raise InputError(f"a simulated model's name starts with '{LABEL}', so that its figures are labelled: '{name}'")
    engine = SimulatedEngine(name, behaviour, responder, record=record)
    return dspy.LM(
        engine.label,
        engine=engine,
        async_engine=AsyncSimulatedEngine(engine),
        cache=(responder is None and behaviour is None) if cache is None else cache,
        temperature=temperature,
        max_tokens=max_tokens,
        **kwargs,
    )
