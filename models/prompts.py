"""Reading the prompts that DSPy's adapters write: a prompt's input fields, and the output fields that it asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from .schema import Schema, inline

_FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\][ \t]*\n?(.*?)(?=^\[\[ ## \w+ ## \]\]|\Z)", re.MULTILINE | re.DOTALL)
_REQUEST = re.compile(r"\n\s*\nRespond with (?:a JSON object|the corresponding output fields)\b.*\Z", re.DOTALL)
_JSON_OUTPUTS = "Outputs will be a JSON object with the following fields."
_NOTE = "# note: the value you produce "
_CHAT_OUTPUTS = re.compile(r"starting with the field (.*?), and then ending with the marker", re.DOTALL)


def input_fields(messages: Sequence[dict[str, str]]) -> dict[str, str]:
    """Return the input fields of the last user message; empty when it was not written by an adapter of DSPy."""
    last = next((message["content"] for message in reversed(messages) if message["role"] == "user"), "")
    return {name: value.strip() for name, value in _FIELD.findall(_REQUEST.sub("", last))}


def output_schema(messages: Sequence[dict[str, str]]) -> Schema | None:
    """Return the schema of the JSON object that a JSON adapter's prompt describes in words; None when it does not."""
    system = next((message["content"] for message in messages if message["role"] == "system"), "")
    _, found, rest = system.partition(_JSON_OUTPUTS)
    start = rest.find("{")
    if not found or start < 0:
        return None
    try:
        described, _ = json.JSONDecoder().raw_decode(rest[start:])
    except ValueError:
        return None
    return _object({name: _from_note(str(text)) for name, text in described.items()})


def chat_output_schema(messages: Sequence[dict[str, str]]) -> Schema | None:
    """Return the schema of the fields that a chat adapter's prompt asks for; None for other prompts."""
    last = next((message["content"] for message in reversed(messages) if message["role"] == "user"), "")
    request = _CHAT_OUTPUTS.search(last)
    if not request:
        return None
    names = re.findall(r"`\[\[ ## (\w+) ## \]\]`", request.group(1))
    system = next((message["content"] for message in messages if message["role"] == "system"), "")
    described = dict(_FIELD.findall(system))
    return _object({name: _from_note(described.get(name, "")) for name in names})


def _object(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _from_note(text: str) -> Schema:
    """Return a field's schema from DSPy's note on it: "must be a single int value", "must adhere to ..."."""
    _, _, note = text.strip().partition(_NOTE)
    if "JSON schema: " in note:
        try:
            found: Any = json.JSONDecoder().raw_decode(note.partition("JSON schema: ")[2])[0]
            # The note is a schema of its own: its references point into itself, not into the whole object's.
            return inline(found) if isinstance(found, dict) else {}
        except ValueError:
            return {}
    if "one of: " in note:
        return {"enum": [option.strip() for option in note.partition("one of: ")[2].split("; ")]}
    for word, kind in (("single int", "integer"), ("single float", "number"), ("True or False", "boolean")):
        if word in note:
            return {"type": kind}
    return {"type": "string"}
