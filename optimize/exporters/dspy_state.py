"""DSPy's own saved state."""

from __future__ import annotations

from typing import ClassVar

from ..artifact import program_state
from ..plain_files import to_json
from .base import EXPORTERS, Export, Exporter


@EXPORTERS.register("dspy")
class DSPyState(Exporter):
    """The program's state as `dspy.Module.save` writes it, without models; `program.load("program.json")` reads it."""

    name: ClassVar[str] = "dspy"
    summary: ClassVar[str] = "DSPy state: read by program.load() of the same strategy"
    file: ClassVar[str | None] = "program.json"

    def files(self, export: Export) -> dict[str, str]:
        """See `Exporter.files`."""
        return {"program.json": to_json(program_state(export.program))}
