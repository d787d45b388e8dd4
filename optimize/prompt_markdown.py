"""A role's prompt as Markdown, for people to read."""

from __future__ import annotations

import re
from typing import Any

import dspy

from .nearest_demos import NearestDemos
from .plain_files import to_json
from .templates import Messages, output_schema, template


def role_markdown(name: str, predictor: dspy.Predict) -> str:
    """Return a role's prompt as a page."""
    signature = predictor.signature
    lines = [f"# {name}", "", signature.instructions, "", "## Reads", ""]
    lines += [f"- `{field}`: {_about(info)}" for field, info in signature.input_fields.items()]
    lines += ["", "## Writes", ""]
    lines += [f"- `{field}`: {_about(info)}" for field, info in signature.output_fields.items()]
    if isinstance(predictor, NearestDemos):
        lines += [
            "",
            "## Demonstrations",
            "",
            f"Each question is shown the {predictor.nearest} most similar of {len(predictor.demos)}.",
        ]
    lines += ["", "## Messages", "", "`{{name}}` stands for an input; a literal `{{` is written `{{{{`.", ""]
    lines += messages_markdown(template(predictor))
    lines += ["## Reply", "", "```json", to_json(output_schema(signature)).strip(), "```", ""]
    return "\n".join(lines)


def messages_markdown(messages: Messages) -> list[str]:
    """Return chat messages as Markdown lines."""
    lines = []
    for message in messages:
        fence = "`" * max(3, 1 + max((len(run) for run in _backticks(message["content"])), default=0))
        lines += [f"**{message['role']}**", "", f"{fence}text", message["content"], fence, ""]
    return lines


def _backticks(text: str) -> list[str]:
    return re.findall(r"`+", text)


def _about(info: Any) -> str:
    return str(info.json_schema_extra.get("desc") or "")
