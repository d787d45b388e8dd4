"""LangChain prompt templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import dspy

from ..plain_files import to_json
from ..templates import marked_messages, rewritten
from .base import EXPORTERS, Export, Exporter, fixed_roles

#: LangChain's message templates by role of a message.
_KINDS = {
    "system": "SystemMessagePromptTemplate",
    "user": "HumanMessagePromptTemplate",
    "assistant": "AIMessagePromptTemplate",
}


@EXPORTERS.register("langchain")
class LangChain(Exporter):
    """A `ChatPromptTemplate` of each role as LangChain saves it: `langchain_core.load.loads(text)` reads it."""

    name: ClassVar[str] = "langchain"
    summary: ClassVar[str] = "a LangChain ChatPromptTemplate of each role, one JSON file each"

    def files(self, export: Export) -> dict[str, str]:
        """See `Exporter.files`."""
        roles = fixed_roles(export, self.name)
        return {f"{name}.json": to_json(prompt_template(predictor)) for name, predictor in roles.items()}


def prompt_template(predictor: dspy.Predict) -> dict[str, Any]:
    """Return a role's prompt as a saved `ChatPromptTemplate`; its templates are f-strings, literal braces doubled."""
    messages = rewritten(
        marked_messages(predictor),
        lambda text: text.replace("{", "{{").replace("}", "}}"),
        lambda name: f"{{{name}}}",
    )
    inputs = list(predictor.signature.input_fields)
    return _constructor(
        "chat",
        "ChatPromptTemplate",
        {"input_variables": inputs, "messages": [_message(message, inputs) for message in messages]},
    )


def _message(message: Mapping[str, str], inputs: list[str]) -> dict[str, Any]:
    text = message["content"]
    used = [name for name in inputs if f"{{{name}}}" in text.replace("{{", "").replace("}}", "")]
    prompt = {"input_variables": used, "template": text, "template_format": "f-string"}
    return _constructor("chat", _KINDS[message["role"]], {"prompt": _constructor("prompt", "PromptTemplate", prompt)})


def _constructor(module: str, kind: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "prompts", module, kind], "kwargs": arguments}
