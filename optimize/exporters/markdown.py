"""A page for people."""

from __future__ import annotations

from typing import ClassVar

from ..plain_files import to_json
from ..prompt_markdown import role_markdown
from .base import EXPORTERS, Export, Exporter


@EXPORTERS.register("markdown")
class Markdown(Exporter):
    """One page: what the program is, how it was tuned and scored, and each role's prompt in full."""

    name: ClassVar[str] = "markdown"
    summary: ClassVar[str] = "one readable page with all prompts"
    file: ClassVar[str | None] = "prompts.md"

    def files(self, export: Export) -> dict[str, str]:
        """See `Exporter.files`."""
        info = export.info
        lines = [f"# {export.title}", ""]
        if info.compilation is not None:
            report = info.compilation
            shown = f", best dev score {report.best:.3f}" if report.best is not None else ""
            lines += [f"Prompts tuned with {report.teleprompter}{shown}; {report.total.calls} model calls.", ""]
        if info.held_out is not None:
            lines += [f"Held-out {info.held_out.primary} on {info.held_out.n} test examples:", ""]
            lines += ["| program | score | calls a question |", "| --- | --- | --- |"]
            for row in info.held_out.rows:
                score = "n/a" if row.score is None else f"{row.score:.3f}"
                lines.append(f"| {row.name} | {score} | {row.usage.calls / max(1, row.n):.1f} |")
            lines.append("")
        lines += ["## Settings", "", "```json", to_json(info.settings).strip(), "```", ""]
        for name, predictor in export.roles.items():
            lines += [role_markdown(name, predictor), ""]
        return {"prompts.md": "\n".join(lines).rstrip() + "\n"}
