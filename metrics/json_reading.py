"""Reading JSON from a model's text: the objects in it, one field of them, and the rule of the ZeroEval benchmark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Literal, NamedTuple

_LOOKS_LIKE_OBJECT = re.compile(r"\{\s*(?:[\"'“][^\"'”\n]{0,80}[\"'”]|\w[\w ]{0,40})\s*:")
#: Objects that are not well-formed are repaired up to this length.
_LONGEST_REPAIR = 50_000


def json_objects(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects in a text, outermost ones only, in order.

    Objects that are not well-formed (line breaks in strings, single quotes, trailing commas, a missing closing brace)
    are repaired as far as that is possible. Braces of LaTeX and prose are no objects.
    """
    return list(_objects(text))


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder(strict=False)
    position = 0
    while match := _LOOKS_LIKE_OBJECT.search(text, position):
        start = match.start()
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = _extent(text, start)
            value = _repaired(text[start:end])
        if isinstance(value, dict) and value:
            yield value
        position = max(end, start + 1)


def _extent(text: str, start: int) -> int:
    """Return where a malformed object ends: at its closing brace outside strings, a closing fence, or the end."""
    depth = 0
    quoted = False
    position = start
    while position < len(text):
        character = text[position]
        if character == "\\":
            position += 2
            continue
        if character == '"':
            quoted = not quoted
        elif not quoted and character == "{":
            depth += 1
        elif not quoted and character == "}":
            depth -= 1
            if depth == 0:
                return position + 1
        elif character == "`" and text.startswith("```", position):
            return position
        position += 1
    return len(text)


def _repaired(piece: str) -> Any:
    if len(piece) > _LONGEST_REPAIR:
        return None
    import json_repair  # lazily: it is not needed to start the command line

    try:
        return json_repair.loads(piece)
    except (ValueError, RecursionError):
        return None


def same_field(key: object, field: str) -> bool:
    """Return whether a key is a field's name, whatever its case, blanks, hyphens and underscores."""
    return re.sub(r"[\s_-]+", "", str(key)).casefold() == re.sub(r"[\s_-]+", "", field).casefold()


# -- ZeroEval --------------------------------------------------------------------------------------------------------


class ZeroEvalAnswer(NamedTuple):
    """What ZeroEval's rule takes for the answer.

    Attributes:
        text: the answer's text as the benchmark's files have it, None where there is none.
        how: which step found it.
    """

    text: str | None
    how: Literal["json", "regex", "boxed", "none"]


def zeroeval_answer(text: str, *, model: str | None = None) -> ZeroEvalAnswer:
    """Return the answer's text by the rule of the ZeroEval benchmark (github.com/WildEval/ZeroEval), faults included.

    The first balanced `{...}`, line breaks removed, if it is JSON with an `answer` field; else what follows the first
    `"answer":` (to the next quote, or to a comma or blank); else the last `\\boxed{digits}`.

    Args:
        text: the model's output.
        model: its name. ZeroEval reads boxes of Llama 3.1 models only; None reads them for any model.
    """
    value = _first_object(text)
    if isinstance(value, dict) and "answer" in value:
        return ZeroEvalAnswer(str(value["answer"]), "json")
    for pattern in (r'"answer"\s*:\s*"([^"]*)"', r'"answer"\s*:\s*([^,\s]*)', r'(?<!["\w])answer:\s*([^,\s]*)'):
        if match := re.search(pattern, text):
            return ZeroEvalAnswer(match.group(1), "regex")
    if (model is None or "Llama-3.1" in model) and (boxed := re.findall(r"\\boxed\{(\d+)\}", text)):
        return ZeroEvalAnswer(boxed[-1], "boxed")
    return ZeroEvalAnswer(None, "none")


def _first_object(text: str) -> Any:
    depth = start = 0
    for position, character in enumerate(text):
        if character == "{":
            start = start if depth else position
            depth += 1
        elif character == "}" and depth:
            depth -= 1
            if depth == 0:
                try:
                    return json.loads(text[start : position + 1].replace("\n", ""))
                except (ValueError, RecursionError):
                    return None  # no later object is tried
    return None


def zeroeval_number(text: str | None) -> Fraction | None:
    """Return the number ZeroEval compares: a text that is a fraction, else the first number without `$` and commas."""
    if text is None:
        return None
    if match := re.fullmatch(r"\s*(-?\d{1,300})/(\d{1,300})\s*", text):
        return Fraction(int(match.group(1)), int(match.group(2))) if int(match.group(2)) else None
    first = re.search(r"-?\d+(?:\.\d+)?", text.replace("$", "").replace(",", ""))
    return Fraction(first.group()) if first and len(first.group()) <= 4000 else None
