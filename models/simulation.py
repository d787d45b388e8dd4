"""The simulated model's mind, without any transport: what it is asked, and what it answers.

A *responder* is any function from a `Call` to a reply: a mapping (sent as JSON) or a text (sent as it is). The default
one, `Simulation`, fills the JSON schema it is shown with labelled text, and answers questions whose answers it was
given rightly or wrongly, as its `SimulatedBehaviour` says. Every reply depends on the behaviour's seed, the model's
name, the messages and the request's seed only: the same call gives the same reply, in any order, on any machine.

Nothing here is a language model. Whatever comes out is labelled: the model's name starts with "simulated".
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from ..errors import InputError
from ..registry import nearest
from .prompts import chat_output_schema, input_fields, output_schema
from .schema import Schema, inline

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


# -- chance, without state ---------------------------------------------------------------------------------------


def draw(*parts: object) -> int:
    """Return a number of 64 bits that depends on the parts only."""
    content = json.dumps([str(part) for part in parts], ensure_ascii=False)
    return int.from_bytes(hashlib.sha256(content.encode("utf-8", "replace")).digest()[:8], "big")


def chance(*parts: object) -> float:
    """Return a number in [0, 1) that depends on the parts only."""
    return draw(*parts) / 2**64


# -- the default responder ---------------------------------------------------------------------------------------

_SHOWN_ANSWER = re.compile(r"^[ \t>*-]*answer:[ \t]*(.+?)(?=\n[ \t]*\n|\n[ \t>*-]*answer:|\Z)", re.I | re.M | re.S)
_CANDIDATE = re.compile(r"^[ \t]*(\d+)[.)][ \t]+(.*?)(?=\n[ \t]+Argument|\n[ \t]*\d+[.)][ \t]|\Z)", re.M | re.S)
#: Lists with one item a participant, and lists with one item a round.
_PER_PARTICIPANT = frozenset({"personas", "participants", "statements", "ballots", "votes", "agents"})
_PER_ROUND = frozenset({"debate", "rounds"})


class Simulation:
    """The default responder: fills the schema, and knows answers as its behaviour says."""

    def __init__(self, behaviour: SimulatedBehaviour | None = None) -> None:
        self.behaviour = behaviour or SimulatedBehaviour()

    def __call__(self, call: Call) -> Reply:
        """Return a reply that fits the call's schema; labelled prose where it has none."""
        rng = random.Random(draw(self.behaviour.seed, call.model, call.text, call.seed))
        if call.schema is None:
            return f"simulated reply {rng.randrange(0x10000):04x}"
        filled = self._fill(call.schema, ("reply",), call, rng)
        return filled if isinstance(filled, dict) else {"reply": filled}

    # -- answers -------------------------------------------------------------------------------------------------

    def is_right(self, call: Call) -> bool | None:
        """Return whether the agent that makes this call knows the right answer; None where there is no answer key."""
        key = self.behaviour.key(call.question)
        return None if key is None else self._knows(call, key)

    def _knows(self, call: Call, key: AnswerKey) -> bool:
        if key.right_for is not None:
            return call.model in key.right_for or call.model.removeprefix(f"{LABEL}/") in key.right_for
        return chance("knows", *self._agent(call)) < self.behaviour.accuracy

    def _agent(self, call: Call) -> tuple[object, ...]:
        return self.behaviour.seed, call.model, call.question, call.inputs.get("persona", ""), call.seed

    def _answer(self, call: Call, key: AnswerKey, schema: Schema) -> Any:
        """Return the agent's answer: the one that most are shown to have when it conforms, else its own."""
        shown = self._majority(call)
        if shown is not None and chance("conforms", *self._agent(call), call.text) < self.behaviour.conform:
            adopted = _read_shown(shown, schema, (key.answer, *key.wrong))
            if adopted is not None:
                return adopted
        return fit(self._own(call, key, schema), schema)

    def _own(self, call: Call, key: AnswerKey, schema: Schema) -> Any:
        if self._knows(call, key):
            return key.answer
        rng = random.Random(draw("wrong", *self._agent(call)))
        return rng.choice(key.wrong) if key.wrong else spoil(key.answer, schema, rng)

    @staticmethod
    def _majority(call: Call) -> str | None:
        shown = [
            " ".join(match.split()) if "\n" not in match.strip() else match.strip()
            for name, value in call.inputs.items()
            if name not in ("question", "persona")
            for match in _SHOWN_ANSWER.findall(value)
        ]
        return Counter(shown).most_common(1)[0][0] if shown else None

    def _choice(self, call: Call, schema: Schema, rng: random.Random) -> int | None:
        """Return the number of a candidate listed in the prompt: the agent's own answer, else any of them."""
        listed = {
            int(number): text.strip()
            for name, value in call.inputs.items()
            if name not in ("question", "persona")
            for number, text in _CANDIDATE.findall(value)
        }
        allowed = [number for number in listed if _within(number, schema)]
        if not allowed:
            return None
        key = self.behaviour.key(call.question)
        if key is not None:
            own = _folded(self._own(call, key, {}))
            for number in allowed:
                if _folded(listed[number]) == own:
                    return number
        return rng.choice(allowed)

    # -- filling a schema ----------------------------------------------------------------------------------------

    def _fill(self, schema: Schema, path: tuple[str, ...], call: Call, rng: random.Random) -> Any:
        name = next((part for part in reversed(path) if not part.isdigit()), "")
        if name == "answer" and not path[-1].isdigit():
            key = self.behaviour.key(call.question)
            if key is not None:
                return self._answer(call, key, schema)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return rng.choice(schema["enum"])
        for key_word in ("anyOf", "oneOf"):
            if schema.get(key_word):
                options = [option for option in schema[key_word] if option.get("type") != "null"]
                return self._fill((options or schema[key_word])[0], path, call, rng)
        if schema.get("allOf"):
            merged = {key: value for part in schema["allOf"] for key, value in part.items()}
            return self._fill({**merged, **{k: v for k, v in schema.items() if k != "allOf"}}, path, call, rng)
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((option for option in kind if option != "null"), "null")
        if kind == "object" or "properties" in schema:
            parts = schema.get("properties", {})
            return {part: self._fill(parts[part], (*path, part), call, rng) for part in parts}
        if kind == "array":
            return self._list(schema, path, name, call, rng)
        if kind == "integer":
            chosen = self._choice(call, schema, rng) if name == "choice" else None
            return _number(schema, rng, whole=True) if chosen is None else chosen
        if kind == "number":
            return _number(schema, rng, whole=False)
        if kind == "boolean":
            return rng.random() < 0.5
        if kind == "null":
            return None
        return _text(schema, path, name, rng)

    def _list(self, schema: Schema, path: tuple[str, ...], name: str, call: Call, rng: random.Random) -> list[Any]:
        wanted = 2
        if name in _PER_PARTICIPANT:
            wanted = _asked_number(call, ("count", "participants", "personas")) or wanted
        elif name in _PER_ROUND:
            wanted = _asked_number(call, ("rounds",)) or wanted
        least, most = schema.get("minItems", 0), schema.get("maxItems", max(wanted, schema.get("minItems", 0)))
        items = schema.get("items") or {"type": "string"}
        return [
            self._fill(items, (*path, str(number + 1)), call, rng) for number in range(min(max(wanted, least), most))
        ]


def _asked_number(call: Call, names: Iterable[str]) -> int | None:
    for name in names:
        match = re.fullmatch(r"\d{1,3}", call.inputs.get(name, ""))
        if match:
            return int(match.group())
    return None


def _text(schema: Schema, path: tuple[str, ...], name: str, rng: random.Random) -> str:
    places = "-".join(part for part in path if part.isdigit())
    # The place comes first, so that the items of a list differ even where the text is cut off.
    text = f"simulated {places} " if places else "simulated "
    text += f"{name.replace('_', ' ')} {rng.randrange(0x10000):04x}"
    most = schema.get("maxLength")
    if most is not None and len(text) > most:
        text = f"{places} {text}"[:most].strip() or "s" * most
    return text.ljust(schema.get("minLength", 0), ".")


def _number(schema: Schema, rng: random.Random, *, whole: bool) -> float | int:
    step = schema.get("multipleOf") or (1 if whole else 0.01)
    low, high = schema.get("minimum"), schema.get("maximum")
    if schema.get("exclusiveMinimum") is not None:
        low = schema["exclusiveMinimum"] + step
    if schema.get("exclusiveMaximum") is not None:
        high = schema["exclusiveMaximum"] - step
    width = 9 * step if whole else 1.0
    if low is None:
        low = 0 if high is None or high >= 0 else high - width
    if high is None:
        high = low + width
    first, last = -(-low // step), high // step
    value = step * rng.randint(int(first), max(int(first), int(last)))
    return int(value) if whole else round(float(value), 6)


def _within(value: float, schema: Schema) -> bool:
    return schema.get("minimum", value) <= value <= schema.get("maximum", value) and (
        not schema.get("enum") or value in schema["enum"]
    )


def fit(value: Any, schema: Schema) -> Any:
    """Return an answer in the type that a schema wants, where it can be: 12 as "12", "12" as 12."""
    kind = schema.get("type")
    if kind == "string" and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
    try:
        if kind == "integer" and not isinstance(value, int):
            return int(value)
        if kind == "number" and not isinstance(value, int | float):
            return float(value)
    except (TypeError, ValueError):
        return value
    return value


def spoil(answer: Any, schema: Schema, rng: random.Random) -> Any:
    """Return a wrong answer of the same kind as a right one."""
    others = [option for option in schema.get("enum") or () if option != answer]
    if others:
        return rng.choice(others)
    if isinstance(answer, bool):
        return not answer
    if isinstance(answer, int | float):
        return answer + rng.randint(1, 9)
    if isinstance(answer, str):
        if re.fullmatch(r"-?\d+", answer):
            return str(int(answer) + rng.randint(1, 9))
        return f"simulated wrong answer {rng.randrange(100)}"
    if isinstance(answer, Mapping) and isinstance(answer.get("rows"), list) and len(answer["rows"]) > 1:
        # A grid: two houses swap what stands in one column.
        rows = [list(row) for row in answer["rows"]]
        column = rng.randrange(1, max(2, len(rows[0]))) if len(rows[0]) > 1 else 0
        rows[0][column], rows[1][column] = rows[1][column], rows[0][column]
        return {**answer, "rows": rows}
    return f"simulated wrong answer {rng.randrange(100)}"


def _read_shown(text: str, schema: Schema, known: Sequence[Any]) -> Any:
    """Return a shown answer as data of the schema's type; None when it cannot be read."""
    for value in known:
        if _folded(value) == _folded(text):
            return fit(value, schema)
    kind = schema.get("type")
    if schema.get("enum"):
        return next((option for option in schema["enum"] if _folded(option) == _folded(text)), None)
    if kind == "string":
        return text
    if kind in ("integer", "number"):
        value = fit(text.replace(",", ""), schema)
        return value if isinstance(value, int | float) else None
    if kind == "object" and {"header", "rows"} <= set(schema.get("properties", {})):
        lines = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if "|" in line]
        return {"header": lines[0], "rows": lines[1:]} if len(lines) > 1 else None
    return None


def _folded(value: Any) -> str:
    if isinstance(value, Mapping) and isinstance(value.get("rows"), list) and isinstance(value.get("header"), list):
        value = "\n".join(" | ".join(map(str, row)) for row in (value["header"], *value["rows"]))
    return " ".join(str(value).casefold().split())


# -- responders to compose ---------------------------------------------------------------------------------------


def with_fields(responder: Responder, **values: Any) -> Responder:
    """Return a responder that puts these values into the replies that have such fields.

    A value that is callable is called with the `Call`.
    """

    def respond(call: Call) -> Reply:
        reply = responder(call)
        if isinstance(reply, str):
            return reply
        overridden = {
            name: value(call) if callable(value) else value for name, value in values.items() if name in reply
        }
        return {**reply, **overridden}

    return respond


def when(test: Callable[[Call], bool], responder: Responder, otherwise: Responder) -> Responder:
    """Return a responder that asks one of two, by a test of the call."""
    return lambda call: responder(call) if test(call) else otherwise(call)


class Scripted:
    """A responder that gives fixed replies one after another, then asks another responder.

    Args:
        replies: in order; a `Fault` among them happens instead of a reply.
        otherwise: asked when they are used up; by default that is an error.
    """

    def __init__(self, replies: Iterable[Reply | Fault], otherwise: Responder | None = None) -> None:
        self._replies = iter(replies)
        self._otherwise = otherwise
        self._lock = threading.Lock()

    def __call__(self, call: Call) -> Reply:
        """Return the next reply."""
        with self._lock:
            reply = next(self._replies, None)
        if reply is None:
            if self._otherwise is None:
                raise AssertionError("the script has no reply left for this call")
            return self._otherwise(call)
        if isinstance(reply, Fault):
            raise FaultError(reply)
        return reply


# -- from a call to a text ---------------------------------------------------------------------------------------


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
