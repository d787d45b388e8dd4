"""How a simulated model behaves: what it knows, how often it is right, what goes wrong; and its name, which says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from ...errors import InputError
from ...registry import nearest
from .calls import Call, Fault
from .chance import chance


@dataclass(frozen=True)
class AnswerKey:
    """What a simulated model knows of one question.

    Attributes:
        answer: the right answer, as JSON data of the answer's type.
        wrong: wrong answers to choose from; empty: one is made up.
        right_for: names of the models that know the answer; None: chance decides, see `SimulatedBehaviour.accuracy`.
    """

    answer: Any
    wrong: tuple[Any, ...] = ()
    right_for: frozenset[str] | None = None


Answers = Mapping[str, Any] | Callable[[str], Any]


@dataclass(frozen=True)
class SimulatedBehaviour:
    """How a simulated model behaves. Rates and probabilities are fractions in [0, 1].

    Attributes:
        accuracy: probability that an agent's own answer is right, where `answers` has one. An agent (a persona with
            a request seed) keeps its own answer from round to round.
        conform: probability that an agent adopts the answer that most others are shown to have.
        latency: seconds until a reply.
        error_rate: share of calls that fail with a server error.
        rate_limit_rate: share of calls that fail with "too many requests".
        retry_after: seconds that such a failure asks to wait.
        empty_rate: share of replies with nothing in them.
        broken_rate: share of replies whose JSON breaks off in the middle.
        seed: another seed is another simulated world.
        answers: from a question's text to its `AnswerKey` (or just the right answer); a function or a mapping. In a
            name or on the command line: a JSONL file with the fields `question` and `answer`, and optionally `wrong`
            (a list) and `right` (a list of model names).
    """

    accuracy: float = 0.75
    conform: float = 0.0
    latency: float = 0.0
    error_rate: float = 0.0
    rate_limit_rate: float = 0.0
    retry_after: float = 1.0
    empty_rate: float = 0.0
    broken_rate: float = 0.0
    seed: int = 0
    answers: Answers | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name in ("accuracy", "conform", "error_rate", "rate_limit_rate", "empty_rate", "broken_rate"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"the simulated model's {name} is {getattr(self, name)}; it must be from 0 to 1")
        for name in ("latency", "retry_after"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"the simulated model's {name} is {getattr(self, name)}; it must be 0 or more seconds")

    def key(self, question: str) -> AnswerKey | None:
        """Return what is known of a question: by its exact text, else by the longest known text that it contains."""
        if self.answers is None:
            return None
        found = self.answers(question) if callable(self.answers) else self._look_up(self.answers, question)
        return found if found is None or isinstance(found, AnswerKey) else AnswerKey(found)

    @staticmethod
    def _look_up(answers: Mapping[str, Any], question: str) -> Any:
        found = answers.get(question, answers.get(question.strip()))
        if found is None:
            contained = [text for text in answers if text.strip() and text.strip() in question]
            found = answers[max(contained, key=len)] if contained else None
        return found

    def fault(self, call: Call, times_seen: int) -> Fault | None:
        """Return the fault that chance has in store for a call that was made `times_seen` times before."""
        luck = chance(self.seed, "fault", call.model, call.text, call.seed, times_seen)
        for rate, fault in (
            (self.error_rate, Fault("500")),
            (self.rate_limit_rate, Fault("429", self.retry_after)),
            (self.empty_rate, Fault("empty")),
            (self.broken_rate, Fault("half-json")),
        ):
            if luck < rate:
                return fault
            luck -= rate
        return None


def parse_name(name: str) -> tuple[str, SimulatedBehaviour]:
    """Read a simulated model's name: `simulated`, `simulated/LABEL`, either with `?ARGUMENT=VALUE&...`.

    The arguments are the attributes of `SimulatedBehaviour`. Example: `simulated/weak?accuracy=0.4&latency=0.2`.

    Returns:
        The model's name without arguments, and its behaviour.

    Raises:
        InputError: for an unknown argument or a value of the wrong kind.
    """
    label, _, query = name.partition("?")
    return label, parse_behaviour(query)


def parse_behaviour(query: str) -> SimulatedBehaviour:
    """Read `ARGUMENT=VALUE&...` into a behaviour.

    Raises:
        InputError: for an unknown argument or a value of the wrong kind.
    """
    known = {entry.name: entry for entry in fields(SimulatedBehaviour)}
    values: dict[str, Any] = {}
    for argument, text in parse_qsl(query, keep_blank_values=True):
        if argument not in known:
            raise InputError(
                f"the simulated model has no argument '{argument}'.{nearest(argument, list(known))} "
                f"Known: {', '.join(known)}"
            )
        if argument == "answers":
            values[argument] = read_answers(Path(text).expanduser())
            continue
        try:
            values[argument] = int(text) if argument == "seed" else float(text)
        except ValueError:
            raise InputError(f"the simulated model's {argument} is '{text}'; it must be a number") from None
    if query and not values:
        raise InputError(f"'{query}' is not ARGUMENT=VALUE&...; an example: accuracy=0.7&latency=0.2")
    return SimulatedBehaviour(**values)


def read_answers(file: Path) -> dict[str, AnswerKey]:
    """Read an answers file, see `SimulatedBehaviour.answers`.

    Raises:
        InputError: when it is missing or a line is not as it should be; the text names the line.
    """
    keys: dict[str, AnswerKey] = {}
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read ({error})") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            right = row.get("right")
            keys[str(row["question"])] = AnswerKey(
                answer=row["answer"],
                wrong=tuple(row.get("wrong") or ()),
                right_for=None if right is None else frozenset(map(str, right)),
            )
        except ValueError as error:
            raise InputError(f"{file}, line {number}: not JSON ({error})") from None
        except (KeyError, AttributeError, TypeError):
            raise InputError(
                f"{file}, line {number}: must be an object with the fields 'question' and 'answer'"
            ) from None
    if not keys:
        raise InputError(f"{file}: the file is empty")
    return keys
