"""A command group that knows its commands' names and imports a command's module only when it is called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click

from ..registry import nearest


class Entry(NamedTuple):
    """Where a command is, and its line in the list of commands.

    Attributes:
        module: module of this package that defines it under the name `command`.
        help: what it does, in one line.
    """

    module: str
    help: str


class LazyGroup(click.Group):
    """A group whose commands are modules, imported on demand.

    Args:
        sections: titles of the list of commands, each with its commands by name.
    """

    def __init__(self, *args: Any, sections: Mapping[str, Mapping[str, Entry]], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.sections = sections
        self.entries = {name: entry for section in sections.values() for name, entry in section.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands' names in the order of the help page."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None for an unknown name."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        module = importlib.import_module(f".{entry.module}", __package__)
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments begin with.

        Raises:
            click.UsageError: for an unknown one; the text gives the nearest.
        """
        name = args[0]
        if name not in self.entries and not name.startswith("-"):
            known = list(self.entries)
            ctx.fail(f"no command '{name}'.{nearest(name, known)} Commands: {', '.join(known)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, by section, without importing any."""
        width = max(map(len, self.entries))
        for title, section in self.sections.items():
            rows: Sequence[tuple[str, str]] = [(name.ljust(width), entry.help) for name, entry in section.items()]
            with formatter.section(title):
                formatter.write_dl(rows)
