"""From a call to a reply: the default responder, and others to compose in tests."""

from __future__ import annotations

import json
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..schema import Schema
from .behaviour import AnswerKey, SimulatedBehaviour
from .calls import LABEL, Call, Fault, FaultError, Reply, Responder
from .chance import chance, draw

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
