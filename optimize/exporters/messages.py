"""Chat messages with placeholders."""

from __future__ import annotations

from typing import Any, ClassVar

import dspy

from ..nearest_demos import NearestDemos
from ..plain_files import to_json
from ..templates import RULE, output_schema, template
from .base import EXPORTERS, Export, Exporter


@EXPORTERS.register("messages")
class ChatMessages(Exporter):
    """Each role's messages with placeholders, demonstrations included, and the JSON schema of its reply.

    Filled in (`templates.render`), they are what DSPy sends, byte for byte.
    """

    name: ClassVar[str] = "messages"
    summary: ClassVar[str] = "chat messages of each role with {{placeholders}} and demonstrations, as one JSON file"
    file: ClassVar[str | None] = "messages.json"

    def files(self, export: Export) -> dict[str, str]:
        """See `Exporter.files`."""
        data = {
            "format": "townhall-messages",
            "version": 1,
            "strategy": export.info.strategy,
            "settings": export.info.settings,
            "placeholders": RULE,
            "roles": {name: role_data(predictor) for name, predictor in export.roles.items()},
        }
        return {"messages.json": to_json(data)}


def role_data(predictor: dspy.Predict) -> dict[str, Any]:
    """Return a role's messages, inputs and reply schema as JSON data.

    A role that chooses its demonstrations has them in a `pool`, each with its question and its two messages; they stand
    behind the first message, the `nearest` most similar ones, nearest first.
    """
    signature = predictor.signature
    data: dict[str, Any] = {
        "inputs": {
            name: str(info.json_schema_extra.get("desc") or "") for name, info in signature.input_fields.items()
        },
        "messages": template(predictor),
        "schema": output_schema(signature),
    }
    if isinstance(predictor, NearestDemos):
        data["nearest"] = predictor.nearest
        data["pool"] = [
            {"question": str(demo.get("question", "")), "messages": _demo_messages(predictor.signature, demo)}
            for demo in predictor.demos
        ]
    return data


def _demo_messages(signature: type[dspy.Signature], demo: Any) -> list[dict[str, str]]:
    shown = dspy.Predict(signature)
    shown.demos = [demo]
    return template(shown)[1:-1]
