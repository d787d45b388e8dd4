"""Types of option values, whose errors say what would be right."""

from __future__ import annotations

from typing import Any

import click


class Number(click.ParamType):
    """A number in a range.

    Args:
        kind: int or float.
        least: smallest value, None for no limit.
        most: greatest value, None for no limit.
        above: the value must be above `least`, not equal to it.
        below: the value must be below `most`, not equal to it.
        check: whether the range is checked here; False where others check it, with better reasons.
    """

    def __init__(
        self,
        kind: type[int] | type[float] = int,
        least: float | None = None,
        most: float | None = None,
        *,
        above: bool = False,
        below: bool = False,
        check: bool = True,
    ) -> None:
        self.name = "N" if kind is int else "X"
        self.check = check
        self.kind = kind
        self.least, self.most, self.above, self.below = least, most, above, below

    @property
    def range(self) -> str:
        """The range in words; "" when there is none."""
        least = "" if self.least is None else f"{'above' if self.above else 'at least'} {self.least:g}"
        most = "" if self.most is None else f"{'below' if self.below else 'at most'} {self.most:g}"
        if least and most and not self.above and not self.below:
            return f"from {self.least:g} to {self.most:g}"
        return " and ".join(part for part in (least, most) if part)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the number and check its range."""
        try:
            number = self.kind(value)
        except ValueError:
            self.fail(f"'{value}' is not a {'whole ' if self.kind is int else ''}number", param, ctx)
        low = self.least is not None and (number <= self.least if self.above else number < self.least)
        high = self.most is not None and (number >= self.most if self.below else number > self.most)
        if self.check and (low or high or number != number):
            self.fail(f"{value} is out of range; it must be {self.range}", param, ctx)
        return number


class KeyValue(click.ParamType):
    """KEY=VALUE."""

    name = "KEY=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Split at the first "="; the key's "-" become "_", as Python names have it."""
        if isinstance(value, tuple):
            return value
        key, sign, text = str(value).partition("=")
        if not sign or not key.strip():
            self.fail(f"'{value}' is not KEY=VALUE", param, ctx)
        return key.strip().replace("-", "_"), text


class CommaSeparated(click.ParamType):
    """Values separated by commas."""

    name = "A,B,..."

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        """Split the text and convert each value."""
        if isinstance(value, list):
            return value
        try:
            return [self.kind(part.strip()) for part in str(value).split(",") if part.strip()]
        except ValueError:
            self.fail(f"'{value}' is not a list of {self.kind.__name__} separated by commas", param, ctx)


class Option(click.Option):
    """An option whose help ends with what is taken when it is not given, and its range.

    Args:
        when_absent: the default in words, where the option's value is None then.
    """

    def __init__(self, *args: Any, when_absent: str | None = None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.when_absent = when_absent

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return what stands in brackets behind the help text."""
        extra: Any = super().get_help_extra(ctx)
        if self.when_absent is not None:
            extra["default"] = self.when_absent
        if isinstance(self.type, Number) and self.type.range:
            extra["range"] = self.type.range
        return extra
