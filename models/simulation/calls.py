"""What a simulated model is asked, and what can go wrong instead of a reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...errors import InputError
from ...registry import nearest
from ..prompts import chat_output_schema, input_fields, output_schema
from ..schema import Schema, inline

#: Every simulated model's name starts with this.
LABEL = "simulated"


@dataclass(frozen=True)
class Call:
    """One call of a simulated model, as a responder sees it.

    Attributes:
        messages: `{"role", "content"}`, the system prompt first.
        schema: of the JSON object that is wanted, references resolved; None for free text.
        seed: of the request; 0 when it had none.
        model: the model's name.
        temperature: of the request; None when it had none.
        number: which call of this model it is, from 1.
        form: "json" for a JSON object, "fields" for DSPy's chat format, "text" for prose.
    """

    messages: tuple[dict[str, str], ...]
    schema: Schema | None = None
    seed: int = 0
    model: str = LABEL
    temperature: float | None = None
    number: int = 1
    form: str = "text"

    @classmethod
    def of(
        cls,
        messages: Sequence[dict[str, str]],
        schema: Schema | None = None,
        *,
        seed: int | None = None,
        model: str = LABEL,
        temperature: float | None = None,
        number: int = 1,
    ) -> Call:
        """Return the call; the schema is read from the prompt's words when the request states none."""
        form = "json"
        wanted = schema or output_schema(messages)
        if wanted is None:
            wanted = chat_output_schema(messages)
            form = "fields" if wanted else "text"
        return cls(
            messages=tuple(messages),
            schema=inline(wanted) if wanted else None,
            seed=seed or 0,
            model=model,
            temperature=temperature,
            number=number,
            form=form,
        )

    @cached_property
    def inputs(self) -> dict[str, str]:
        """The prompt's input fields, by name."""
        return input_fields(self.messages)

    @cached_property
    def text(self) -> str:
        """All messages as one text."""
        return "\n\n".join(message["content"] for message in self.messages)

    @property
    def question(self) -> str:
        """The input field `question`; the last message where there is none."""
        return self.inputs.get("question") or self.messages[-1]["content"]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the output fields that are wanted; they tell roles apart."""
        return tuple((self.schema or {}).get("properties", {}))


#: A reply: a mapping is sent as JSON (or in DSPy's chat format where the prompt wants that), a text as it is.
Reply = Mapping[str, Any] | str
Responder = Callable[[Call], Reply]


class FaultError(Exception):
    """Raised by a responder: instead of a reply there is this fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


#: What can go wrong: the connection is cut, nothing comes, "too many requests", "server error", a reply of no
#: characters, a reply whose JSON breaks off, a body that is shorter than announced.
FAULTS = ("refuse", "stall", "429", "500", "empty", "half-json", "half-body")


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        kind: one of `FAULTS`.
        seconds: the Retry-After of a 429, the length of a stall.
    """

    kind: str
    seconds: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Read "KIND" or "KIND:SECONDS".

        Raises:
            InputError: for an unknown kind or seconds that are no number.
        """
        kind, _, seconds = text.partition(":")
        if kind not in FAULTS:
            raise InputError(f"unknown fault '{kind}'.{nearest(kind, list(FAULTS))} Known: {', '.join(FAULTS)}")
        try:
            return cls(kind, float(seconds) if seconds else 3600.0 if kind == "stall" else 0.0)
        except ValueError:
            raise InputError(f"fault '{text}': '{seconds}' is not a number of seconds") from None
