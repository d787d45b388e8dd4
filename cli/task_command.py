"""A command whose options depend on its task: `townhall evaluate --task normad --context country`.

It looks for `--task` among the arguments first, and then takes that task's options as options of its own. A task option
of a name that the command has already (`--seed`) is given with `-T`, as all of them can be.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from .params import Option
from .settings import value_of

#: Prefix of the task options' names among a command's parameters.
PREFIX = "task_option_"
_META = "townhall.task_options"


class TaskCommand(click.Command):
    """A command with `--task` and `-T`; the callback receives both kinds of task options as `task_option`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the task among the arguments, then parse them with its options."""
        if (name := value_of(args, "--task")) is not None:
            ctx.meta[_META] = task_options_of(name, [flag for param in self.get_params(ctx) for flag in param.opts])
        rest = super().parse_args(ctx, args)
        given = []
        for option in own_options(ctx):
            value = ctx.params.pop(str(option.name), None)
            if value is not None:
                given.append((str(option.name).removeprefix(PREFIX), str(value)))
        if given:
            ctx.params["task_option"] = (*ctx.params.get("task_option", ()), *given)
        return rest

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own options and the task's."""
        params = super().get_params(ctx)
        return [*params[:-1], *own_options(ctx), *params[-1:]]


def own_options(ctx: click.Context) -> tuple[click.Option, ...]:
    """Return the options that the task added; none before the arguments are parsed."""
    found: tuple[click.Option, ...] = ctx.meta.get(_META, ())
    return found


def task_options_of(name: str, taken: Sequence[str]) -> tuple[click.Option, ...]:
    """Return an option for each of a task's options whose name is not taken.

    Raises:
        InputError: for an unknown task.
    """
    from ..tasks.base import TASKS

    flags = {key: f"--{key.replace('_', '-')}" for key in TASKS.get(name).option_help}
    return tuple(
        Option([flags[key], f"{PREFIX}{key}"], metavar="VALUE", help=f"{text[:1].upper()}{text[1:]}")
        for key, text in TASKS.get(name).option_help.items()
        if flags[key] not in taken
    )
