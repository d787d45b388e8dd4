"""A command whose options depend on its strategy: `townhall evaluate --strategy society --agents 3`.

It looks for `--strategy` (or `--artifact`, whose program has one) among the arguments first, and then takes the fields
of that strategy's config as options.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from .settings import PREFIX, checked, options_of, value_of
from .task_command import PREFIX as TASK_PREFIX
from .task_command import TaskCommand, own_options

if TYPE_CHECKING:
    from ..programs.base import StrategyConfig

#: A section of a help page: its title, and rows of two texts.
Section = tuple[str, list[tuple[str, str]]]


@dataclass(frozen=True)
class Chosen:
    """The strategy that the arguments name.

    Attributes:
        name: its name.
        config: its config; None for a program without settings of its own (an ensemble).
        base: the settings that given ones change, of an artifact's program.
        options: an option for each setting.
    """

    name: str
    config: type[StrategyConfig] | None
    base: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[click.Option, ...] = ()


class StrategyCommand(TaskCommand):
    """A command with `--strategy`, and perhaps `--artifact` and `--task`.

    The callback receives the settings that were given as one dictionary under the name `settings`.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the strategy among the arguments, then parse them with its settings as options."""
        asked_for_help = bool(set(args) & set(ctx.help_option_names))
        artifact = value_of(args, "--artifact") if self._has("artifact") else None
        named = value_of(args, "--strategy")
        # DSPy takes half a second to import: the general help page does without it.
        if artifact is not None or named is not None or not asked_for_help:
            ctx.meta["townhall.chosen"] = self._choose(named, artifact, ctx)
        ctx.meta["townhall.arguments"] = list(args)
        rest = super().parse_args(ctx, args)
        chosen: Chosen | None = ctx.meta.get("townhall.chosen")
        if chosen is not None:
            ctx.params["strategy"] = chosen.name
            ctx.params["settings"] = self.settings_of(ctx.params, chosen)
        return rest

    def _has(self, name: str) -> bool:
        return any(param.name == name for param in self.params)

    def _choose(self, named: str | None, artifact: str | None, ctx: click.Context) -> Chosen:
        from ..programs.base import STRATEGIES

        base: Mapping[str, Any] = {}
        name = named if named is not None else self.default_strategy
        if artifact is not None:
            from ..optimize.artifact import load_info

            info = load_info(artifact)
            if named not in (None, info.strategy):
                ctx.fail(f"--strategy is '{named}', and the artifact's is '{info.strategy}'; leave out --strategy")
            name, base = info.strategy, info.settings
            if name not in STRATEGIES.names():
                return Chosen(name, None)
        config = STRATEGIES.get(name).Config
        taken = {option for param in self.params for option in param.opts}
        return Chosen(name, config, base, tuple(self.setting_options(name, taken)))

    @property
    def default_strategy(self) -> str:
        """The strategy when none is named."""
        return next(str(param.default) for param in self.params if param.name == "strategy")

    def setting_options(self, strategy: str, taken: set[str]) -> list[click.Option]:
        """Return the options that a strategy's config adds."""
        from ..programs.base import STRATEGIES

        return options_of(STRATEGIES.get(strategy).Config, taken)

    def settings_of(self, params: dict[str, Any], chosen: Chosen) -> dict[str, Any]:
        """Take the settings out of the parsed parameters, and check them."""
        own = [option.name for option in chosen.options]
        settings = {name.removeprefix(PREFIX): params.pop(name) for name in own if name is not None}
        for name in ("seed", "temperature"):
            if name in params:
                settings[name] = params.pop(name)
        given = {name: value for name, value in settings.items() if value is not None and value != ()}
        if chosen.config is None:
            return given
        return checked(given, chosen.config, chosen.name, chosen.base)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own options and the strategy's."""
        chosen: Chosen | None = ctx.meta.get("townhall.chosen")
        params = super().get_params(ctx)
        return [*params[:-1], *(chosen.options if chosen is not None else ()), *params[-1:]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in sections: the command's own, then those that depend on what was named."""
        chosen: Chosen | None = ctx.meta.get("townhall.chosen")
        own = chosen.options if chosen is not None else ()
        others = {*own, *own_options(ctx)}
        general = [param for param in self.get_params(ctx) if param not in others and isinstance(param, click.Option)]
        sections: list[Section] = [("Options", _records(general, ctx))]
        if chosen is not None and own:
            sections.append((f"Settings of {chosen.name}", _records(own, ctx)))
        if (name := value_of(ctx.meta["townhall.arguments"], "--task")) is not None:
            sections.append((f"Options of the task {name}", _task_rows(name, ctx)))
        for title, rows in [*sections, *self.sections(ctx.meta["townhall.arguments"])]:
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def sections(self, args: list[str]) -> Iterator[Section]:
        """Yield further sections of the help page, for what the arguments name; none here."""
        yield from ()


def _task_rows(name: str, ctx: click.Context) -> list[tuple[str, str]]:
    from ..tasks.base import TASKS

    flags = {str(option.name): option for option in own_options(ctx)}
    rows = []
    for key, text in TASKS.get(name).option_help.items():
        option = flags.get(f"{TASK_PREFIX}{key}")
        rows += _records([option], ctx) if option is not None else [(f"-T {key}=VALUE", text)]
    return rows


def _records(options: Any, ctx: click.Context) -> list[tuple[str, str]]:
    return [record for option in options if (record := option.get_help_record(ctx))]
