"""From a call to the text that is sent: faults, the reply's form, the token limit."""

from __future__ import annotations

import json
import threading
from collections import Counter
from dataclasses import dataclass, replace

from .behaviour import SimulatedBehaviour
from .calls import Call, Fault, FaultError, Reply, Responder
from .chance import draw
from .responders import Simulation


@dataclass(frozen=True)
class Spoken:
    """A finished reply: its text, and the estimated numbers of tokens (a token is taken to have four characters)."""

    text: str
    finish: str
    prompt_tokens: int
    completion_tokens: int


class Speaker:
    """Turns calls into texts: chance's faults, the responder, the reply's form, the token limit. Thread-safe."""

    def __init__(self, behaviour: SimulatedBehaviour | None = None, responder: Responder | None = None) -> None:
        self.behaviour = behaviour or SimulatedBehaviour()
        self.responder = responder or Simulation(self.behaviour)
        self.calls = 0
        self._seen: Counter[int] = Counter()
        self._lock = threading.Lock()

    def speak(self, call: Call, max_tokens: int | None = None) -> Spoken:
        """Return the reply to a call.

        Raises:
            FaultError: when something else happens instead.
        """
        fingerprint = draw(call.model, call.text, call.seed)
        with self._lock:
            self.calls += 1
            call = replace(call, number=self.calls)
            times = self._seen[fingerprint]
            self._seen[fingerprint] += 1
        fault = self.behaviour.fault(call, times)
        if fault is not None and fault.kind not in ("empty", "half-json"):
            raise FaultError(fault)
        try:
            text = render(self.responder(call), call)
        except FaultError as error:
            if error.fault.kind not in ("empty", "half-json"):
                raise
            fault, text = error.fault, render(Simulation(self.behaviour)(call), call)
        if fault is not None:
            text = spoilt(text, fault)
        return finish(text, call, max_tokens)


def render(reply: Reply, call: Call) -> str:
    """Return a reply as the text that the prompt asks for."""
    if isinstance(reply, str):
        return reply
    if call.form != "fields":
        return json.dumps(reply, ensure_ascii=False)
    parts = []
    for name, value in reply.items():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        parts.append(f"[[ ## {name} ## ]]\n{shown}")
    return "\n\n".join([*parts, "[[ ## completed ## ]]"])


def spoilt(text: str, fault: Fault) -> str:
    """Return a reply's text after the faults "empty" and "half-json"."""
    return "" if fault.kind == "empty" else text[: len(text) // 2]


def finish(text: str, call: Call, max_tokens: int | None) -> Spoken:
    """Return a text as a finished reply, cut at the token limit."""
    reason = "stop"
    if max_tokens is not None and tokens(text) > max_tokens:
        text, reason = text[: max_tokens * 4], "length"
    return Spoken(text, reason, tokens(call.text), tokens(text))


def tokens(text: str) -> int:
    """Return the estimated number of tokens: a quarter of the characters, rounded up."""
    return -(-len(text) // 4)
