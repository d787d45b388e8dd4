"""`townhall list`: what there is to choose from."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import click

from . import screen
from .options import output_options

if TYPE_CHECKING:
    from pydantic import BaseModel

KINDS = ("tasks", "strategies", "models", "decisions", "teleprompters", "formats")


@click.command(
    name="list",
    epilog="Examples:\n\n\b\n  townhall list strategies\n  townhall list tasks --json",
)
@click.argument("kind", type=click.Choice(KINDS))
@output_options
def command(kind: str, as_json: bool) -> None:
    """List tasks, strategies, models, decision rules, teleprompters, or export formats.

    Settings of a strategy: `townhall evaluate --strategy NAME --help`; options of a task: `townhall evaluate --task
    NAME --help`.
    """
    print_list(kind, as_json)


def print_list(kind: str, as_json: bool) -> None:
    """Print one list."""
    found = {
        "tasks": tasks,
        "strategies": strategies,
        "models": models,
        "decisions": decisions,
        "teleprompters": teleprompters,
        "formats": formats,
    }
    items = found[kind]()
    if as_json:
        screen.print_json(items)
        return
    shown = {
        "tasks": (("task", "source", "splits by", "what it asks"), ("name", "source", "groups", "summary")),
        "strategies": (("strategy", "what happens"), ("name", "summary")),
        "models": (("--lm", "ready", ">size", "licence", "what it is"), ("name", "state", "size", "license", "text")),
        "decisions": (("decision rule", "what it returns"), ("name", "summary")),
        "teleprompters": (("--teleprompter", "what it does"), ("name", "summary")),
        "formats": (("--format", "what is written"), ("name", "summary")),
    }
    titles, keys = shown[kind]
    screen.show(screen.rows(screen.table(*titles), ([item[key] for key in keys] for item in items)))
    if kind == "models":
        screen.notice("any DSPy / LiteLLM name works too (openai/gpt-4o), and any GGUF file (local/FILE.gguf)")


def tasks() -> list[dict[str, Any]]:
    """Return every task: name, version, summary, where its examples come from, options, groups, extraction rules."""
    from ..tasks.base import TASKS, Task

    found = []
    for name, kind in TASKS:
        generated = kind.generate is not Task.generate
        hub = kind.hub.repo if kind.hub else None
        # A task with neither has examples of its own, or takes a file.
        shipped = "" if generated or hub or kind.source is Task.source else "shipped"
        sources = [part for part in ("generator" if generated else "", hub or "", shipped) if part]
        found.append(
            {
                "name": name,
                "version": kind.version,
                "summary": kind.summary,
                "generated": generated,
                "hub": hub,
                "source": " / ".join(sources) or "--data",
                "options": dict(kind.option_help),
                "groups": ", ".join(kind.group_fields),
                "extract_rules": list(kind.extract_rules),
            }
        )
    return found


def strategies() -> list[dict[str, Any]]:
    """Return every strategy: name, summary, settings with their defaults."""
    from ..programs.base import STRATEGIES

    return [{"name": name, "summary": kind.summary, "settings": _defaults(kind.Config)} for name, kind in STRATEGIES]


def _defaults(config: type[BaseModel]) -> dict[str, Any]:
    """Return each field's default and help text."""
    from .settings import attribute_helps

    helps = attribute_helps(config)
    return {
        name: {"default": field.get_default(call_default_factory=True), "help": helps.get(name, "")}
        for name, field in config.model_fields.items()
    }


def models() -> list[dict[str, Any]]:
    """Return every model that `--lm` takes by a name of its own: embedded, simulated, and those of a models file."""
    from ..models.catalog import installed_models

    return [
        {
            **entry,
            "state": "yes" if entry["ready"] else "no",
            "size": screen.size(entry["bytes"]) if "bytes" in entry else "",
            "license": entry.get("license", ""),
            "text": entry.get("summary") or entry["detail"],
        }
        for entry in installed_models()
    ]


def decisions() -> list[dict[str, Any]]:
    """Return every decision rule: name and what its docstring says first."""
    from ..programs.decisions import DECISIONS

    found = []
    for name, rule in DECISIONS:
        text = inspect.getdoc(rule) or ""
        found.append({"name": name, "summary": " ".join(text.partition("\n\n")[0].split())})
    return found


def teleprompters() -> list[dict[str, Any]]:
    """Return every teleprompter: name, summary, sizes with their defaults."""
    from ..optimize.teleprompters.base import TELEPROMPTERS

    return [{"name": name, "summary": kind.summary, "sizes": _defaults(kind.Sizes)} for name, kind in TELEPROMPTERS]


def formats() -> list[dict[str, Any]]:
    """Return every export format: name and summary."""
    from ..optimize.exporters.base import EXPORTERS

    return [{"name": name, "summary": kind.summary} for name, kind in EXPORTERS]
