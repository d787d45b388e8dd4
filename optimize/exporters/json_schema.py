"""JSON schemas of the replies."""

from __future__ import annotations

from typing import ClassVar

from ..plain_files import to_json
from ..templates import output_schema
from .base import EXPORTERS, Export, Exporter


@EXPORTERS.register("json-schema")
class JSONSchemas(Exporter):
    """The JSON schema of each role's reply, as servers with structured output take it."""

    name: ClassVar[str] = "json-schema"
    summary: ClassVar[str] = "the JSON schema of each role's reply, by role, in one file"
    file: ClassVar[str | None] = "schemas.json"

    def files(self, export: Export) -> dict[str, str]:
        """See `Exporter.files`."""
        schemas = {name: output_schema(predictor.signature) for name, predictor in export.roles.items()}
        return {"schemas.json": to_json(schemas)}
