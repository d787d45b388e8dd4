"""Prompts as chat messages with placeholders: what a role sends, written down once, filled in by anyone.

A placeholder is `{{name}}`, where name is one of the role's inputs. Everything else is literal, except that a literal
`{{` is written `{{{{`. Reading from left to right, `{{{{` is `{{`, `{{name}}` of a known input is its value, and any
other character is itself; so every text has exactly one reading.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import dspy
from dspy.adapters.json_adapter import _get_structured_outputs_response_format
from dspy.adapters.utils import format_field_value

from ..programs.adapter import DebateAdapter
from .nearest_demos import NearestDemos

Messages = list[dict[str, str]]

#: Said in every file with placeholders.
RULE = "{{name}} is the value of an input; {{{{ is a literal {{; everything else is literal"
_OPEN, _CLOSE = "\ue0f0", "\ue0f1"


def template(predictor: dspy.Predict, question: str | None = None) -> Messages:
    """Return the messages that a role sends, with placeholders for its inputs.

    Args:
        predictor: the role's.
        question: for a role that chooses its demonstrations, the question it chooses them for; None to leave them out.
    """
    return rewritten(marked_messages(predictor, question), escape, lambda name: f"{{{{{name}}}}}")


def marked_messages(predictor: dspy.Predict, question: str | None = None) -> Messages:
    """Return the messages that a role sends, its inputs marked in a way that no text contains."""
    demos = predictor.demos
    if isinstance(predictor, NearestDemos):
        demos = predictor.chosen(question) if question is not None else []
    signature = predictor.signature
    marks = {name: f"{_OPEN}{name}{_CLOSE}" for name in signature.input_fields}
    return [
        {"role": str(message["role"]), "content": str(message["content"])}
        for message in DebateAdapter().format(signature, demos, marks)
    ]


def rewritten(
    messages: Iterable[Mapping[str, str]], literal: Callable[[str], str], value: Callable[[str], str]
) -> Messages:
    """Return marked messages in another notation.

    Args:
        messages: as `marked_messages` returns them.
        literal: writes literal text.
        value: writes the place of an input.
    """
    out = []
    for message in messages:
        parts = re.split(f"{_OPEN}([a-z_0-9]+){_CLOSE}", message["content"])
        content = "".join(value(part) if index % 2 else literal(part) for index, part in enumerate(parts))
        out.append({"role": message["role"], "content": content})
    return out


def escape(text: str) -> str:
    """Return literal text as a template has it."""
    return text.replace("{{", "{{{{")


def render(messages: Sequence[Mapping[str, str]], inputs: Mapping[str, Any]) -> Messages:
    """Fill a template in; the result is what the role sends, byte for byte.

    Args:
        messages: as `template` returns them.
        inputs: values by name; texts as they are, other values as their JSON.
    """
    names = "|".join(re.escape(name) for name in sorted(inputs, key=len, reverse=True))
    pattern = re.compile(r"\{\{\{\{" + (rf"|\{{\{{({names})\}}\}}" if names else ""))

    def fill(match: re.Match[str]) -> str:
        return input_text(inputs[match.group(1)]) if match.lastindex else "{{"

    return [{"role": message["role"], "content": pattern.sub(fill, message["content"])} for message in messages]


def input_text(value: Any) -> str:
    """Return an input's value as it stands in a prompt."""
    return str(format_field_value(_TEXT_FIELD, value))


def output_schema(signature: type[dspy.Signature]) -> dict[str, Any]:
    """Return the JSON schema of a role's reply: the one that DSPy sends to servers that take one."""
    return _get_structured_outputs_response_format(signature).model_json_schema()


def role_id(name: str) -> str:
    """Return a role's name as a file's name: `argue`, or `member-1-argue` in an ensemble."""
    return re.sub(r"^members\[(\d+)\]\.", lambda match: f"member-{int(match.group(1)) + 1}-", name)


class _Any(dspy.Signature):
    value: Any = dspy.InputField()


_TEXT_FIELD = _Any.input_fields["value"]
