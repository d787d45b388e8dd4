"""Finding answer fields of JSON in a model's text, well-formed or not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

#: Of a text that repeats itself without end, so many of the last fields are looked at.
_MOST_FIELDS = 50
_DECODER = json.JSONDecoder(strict=False)
_OPENING = re.compile(r"\{\s*\\?[\"“']")


@dataclass(frozen=True)
class JsonField:
    """A field of a JSON object in a text.

    Attributes:
        shown: its value as text, unescaped as far as it is readable.
        value: its decoded value; None where it is not well-formed.
        start: where its key begins.
        end: where its value ends.
        region: the span of the object around it, as far as it can be told.
    """

    shown: str
    value: Any
    start: int
    end: int
    region: tuple[int, int]


def json_fields(text: str, names: Sequence[str]) -> Iterator[JsonField]:
    """Yield the fields of some names, in any spelling of case, blanks, hyphens and underscores, in order."""
    spelled = "|".join(r"[\s_-]?".join(re.escape(word) for word in name.split()) for name in names)
    # A quoted key, a key that lost its first quote (`answer": "5"`), or one that was escaped inside a string.
    keys = re.compile(rf"(?:\\?[\"“']|(?<=\n)|(?<=\\n)|(?<=\{{))\s*(?:{spelled})\s*\\?[\"”']\s*:\s*", re.IGNORECASE)
    for match in list(keys.finditer(text))[-_MOST_FIELDS:]:
        raw, end = _raw_value(text, match.end())
        if re.match(r"\s*\\?[\"”']\s*:", text[end - 1 : end + 20]) and raw.strip(" \\\"'").lower() in names:
            continue  # `"answer": "answer": "5"`: the second one is the field
        yield JsonField(_shown(raw), _decoded(raw), match.start(), end, _region(text, match.start()))


def _raw_value(text: str, start: int) -> tuple[str, int]:
    """Return the raw value that begins at `start`, and its end."""
    first = text[start : start + 1]
    if first and first in "{[":
        try:
            _, end = _DECODER.raw_decode(text, start)
            return text[start:end], end
        except (ValueError, RecursionError):
            pass
    if text.startswith('\\"', start):
        end = text.find('\\"', start + 2)
        return (f'"{text[start + 2 : end]}"', end + 2) if end >= 0 else (text[start:], len(text))
    if first and first in "\"“'":
        return _quoted(text, start)
    return _unquoted(text, start)


def _quoted(text: str, start: int) -> tuple[str, int]:
    first = text[start]
    closing = '”"' if first == "“" else first
    position = start + 1
    while position < len(text):
        if text[position] == "\\":
            position += 2
            continue
        if text[position] in closing:
            rest = text[position + 1 : position + 400]
            ends = re.match(r"\s*(?:[,}\]:]|\n|$)", rest)
            if first != '"' or ends or not re.match(r"[^\n,}\]]*[^\s,}\]\\][^\n]*\"\s*[,}\n]", rest):
                return text[start : position + 1], position + 1
            # else a quote inside a badly escaped string
        position += 1
    return text[start:], len(text)


def _unquoted(text: str, start: int) -> tuple[str, int]:
    """Return a value that is no string: to a comma that groups no thousands, the closing brace, or the line's end."""
    line_end = text.find("\n", start)
    raw = text[start : len(text) if line_end < 0 else line_end]
    depth = 0
    for offset, character in enumerate(raw):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            if depth == 0:
                return raw[:offset], start + offset
            depth -= 1
        elif character == "," and depth == 0 and not re.match(r",\d{3}(?!\d)", raw[offset : offset + 5]):
            return raw[:offset], start + offset
    return raw, start + len(raw)


def _decoded(raw: str) -> Any:
    try:
        value = json.loads(raw, strict=False)
        if isinstance(value, str) and value.lstrip().startswith("{"):  # an object written into a string
            try:
                return json.loads(value.replace("\\n", "\n").replace('\\"', '"'), strict=False)
            except (ValueError, RecursionError):
                return value
    except (ValueError, RecursionError):
        return None
    return value


def _shown(raw: str) -> str:
    raw = raw.strip()
    if not raw or raw[0] not in "\"“'":
        return raw
    try:
        return str(json.loads(raw, strict=False))
    except ValueError:
        inner = raw[1:-1] if len(raw) > 1 and raw[-1] in "\"”'" else raw[1:]
        return inner.rstrip("\\").replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")


def _region(text: str, position: int) -> tuple[int, int]:
    start = -1
    for match in _OPENING.finditer(text, max(0, position - 20_000), position + 3):
        start = match.start()
    if start < 0:
        return position, position
    try:
        _, end = _DECODER.raw_decode(text, start)
        return (start, end) if end > position else (position, position)
    except (ValueError, RecursionError):
        stop = re.compile(r"\n\s*\}|```|\"\s*\}").search(text, position)
        return start, stop.end() if stop else len(text)
