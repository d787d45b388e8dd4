"""The search space of a strategy: declared by its config's fields, narrowed by ranges and fixed values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args, get_origin

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from pydantic_core import PydanticUndefined

from ..errors import InputError
from ..programs.base import Strategy, StrategyConfig, build_config
from ..programs.decisions import DECISIONS
from ..registry import nearest

#: What is searched when nothing else is named: how many speak, and for how long.
COUNTS = ("personas", "agents", "samples", "rounds", "reflections")
#: Dimensions that are no config field: how many demonstrations a role shows, and which model speaks a role.
DEMOS = "demos"
MODEL_PREFIX = "model."


@dataclass(frozen=True)
class Dimension:
    """One thing to choose.

    Attributes:
        name: the config field, "demos", or "model.ROLE".
        kind: of its values.
        low, high, step: bounds of numbers, both included.
        choices: values of a "choice".
        default: the value when it is not searched.
    """

    name: str
    kind: Literal["int", "float", "choice"]
    low: float = 0
    high: float = 0
    step: float = 1
    choices: tuple[Any, ...] = ()
    default: Any = None

    def distribution(self) -> BaseDistribution:
        """Return the dimension for Optuna."""
        if self.kind == "int":
            return IntDistribution(int(self.low), int(self.high), step=int(self.step))
        if self.kind == "float":
            return FloatDistribution(self.low, self.high, step=self.step)
        return CategoricalDistribution(list(self.choices))

    def values(self) -> list[Any]:
        """Return all values."""
        if self.kind == "choice":
            return list(self.choices)
        count = round((self.high - self.low) / self.step) + 1
        numbers = [round(self.low + index * self.step, 10) for index in range(count)]
        return [int(number) for number in numbers] if self.kind == "int" else numbers

    def __str__(self) -> str:
        if self.kind == "choice":
            return f"{self.name} in {{{', '.join(map(str, self.choices))}}}"
        step = f" step {self.step:g}" if self.step != 1 else ""
        return f"{self.name} in {self.low:g}..{self.high:g}{step}"


def declared(strategy: type[Strategy]) -> dict[str, Dimension]:
    """Return every dimension that a strategy's config declares, by field name.

    Numbers need both bounds in the config; texts are searched only where they are one of a closed set. A field marked
    `json_schema_extra={"search": False}` is left out.
    """
    dimensions = (_dimension(strategy.Config, name) for name in strategy.Config.model_fields)
    return {dimension.name: dimension for dimension in dimensions if dimension is not None}


def _dimension(config: type[StrategyConfig], name: str) -> Dimension | None:
    field = config.model_fields[name]
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    if extra.get("search") is False:
        return None
    default = None if field.default is PydanticUndefined else field.default
    if extra.get("registry") == "decisions":
        return Dimension(name, "choice", choices=tuple(DECISIONS.names()), default=default)
    options = [option for option in get_args(field.annotation) if option is not type(None)]
    kind = field.annotation
    if type(None) in get_args(field.annotation) and len(options) == 1:
        kind = options[0]
    if kind is bool:
        return Dimension(name, "choice", choices=(False, True), default=default)
    if get_origin(kind) is Literal:
        return Dimension(name, "choice", choices=get_args(kind), default=default)
    low = next((bound.ge for bound in field.metadata if getattr(bound, "ge", None) is not None), None)
    high = next((bound.le for bound in field.metadata if getattr(bound, "le", None) is not None), None)
    if kind is int and low is not None and high is not None:
        return Dimension(name, "int", low, high, default=default)
    if kind is float and low is not None and high is not None:
        return Dimension(name, "float", low, high, step=0.1, default=default)
    return None


def space_for(
    strategy: type[Strategy],
    *,
    ranges: Mapping[str, Any] | None = None,
    fixed: Mapping[str, Any] | None = None,
    search: Sequence[str] | Literal["all"] | None = None,
    demos: int | None = None,
    role_models: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Dimension]:
    """Return the dimensions to search.

    Args:
        strategy: whose config declares what can be searched.
        ranges: narrower bounds or fewer choices by name: a `range`, a (low, high) pair, a list of values or a text such
            as "2:9", "2:10:2" or "a,b". What is named here is searched.
        fixed: values by name that are not searched.
        search: further names to search over all they declare; "all" for everything; None for the counts only.
        demos: search the number of demonstrations a role shows, from 0 to this.
        role_models: names of models to choose from, by role.

    Raises:
        InputError: for a name the strategy does not declare or bounds outside its own; the text says which are.
    """
    known = declared(strategy)
    ranges, fixed = dict(ranges or {}), dict(fixed or {})
    wanted = list(known) if search == "all" else [name for name in known if name in COUNTS] + list(search or ())
    for name in (*ranges, *fixed, *wanted):
        if name not in known and name not in strategy.Config.model_fields:
            raise InputError(
                f"strategy '{strategy.name}' has nothing to search named '{name}'.{nearest(name, sorted(known))} "
                f"It can search: {', '.join(str(dimension) for dimension in known.values())}"
            )
        if name not in known and name not in fixed:
            raise InputError(f"'{name}' of strategy '{strategy.name}' cannot be searched; give it a value with --fix")
    space = {}
    for name, dimension in known.items():
        if name in fixed:
            continue
        if name in ranges:
            space[name] = narrow(dimension, ranges[name])
        elif name in wanted:
            space[name] = _accepted(strategy, dimension, fixed)
    if demos:
        space[DEMOS] = Dimension(DEMOS, "int", 0, demos, default=demos)
    for role, names in (role_models or {}).items():
        space[MODEL_PREFIX + role] = Dimension(MODEL_PREFIX + role, "choice", choices=tuple(names), default=names[0])
    if not space:
        raise InputError("nothing is left to search: every dimension has a fixed value")
    return space


def _accepted(strategy: type[Strategy], dimension: Dimension, fixed: Mapping[str, Any]) -> Dimension:
    """Leave out choices that the strategy refuses whatever else is chosen, such as personas from a list without one."""

    def accepts(choice: Any) -> bool:
        try:
            build_config(strategy.Config, {**fixed, dimension.name: choice}, strategy.name)
        except InputError:
            return False
        return True

    if dimension.kind != "choice":
        return dimension
    return replace(dimension, choices=tuple(filter(accepts, dimension.choices)) or dimension.choices)


def narrow(dimension: Dimension, wanted: Any) -> Dimension:
    """Return a dimension with narrower bounds or fewer choices.

    Raises:
        InputError: for bounds or choices outside the dimension's own.
    """
    if dimension.kind == "choice":
        values = wanted.split(",") if isinstance(wanted, str) else list(wanted)
        by_text = {str(choice).lower(): choice for choice in dimension.choices}
        unknown = [value for value in values if str(value).strip().lower() not in by_text]
        if unknown:
            raise InputError(f"{dimension.name} has no value '{unknown[0]}'. Its values: {', '.join(by_text)}")
        return replace(dimension, choices=tuple(by_text[str(value).strip().lower()] for value in values))
    low, high, step = _bounds(dimension, wanted)
    if low > high:
        raise InputError(f"{dimension.name}={wanted}: the lower bound is above the upper one")
    if low < dimension.low or high > dimension.high:
        raise InputError(
            f"{dimension.name}={wanted}: outside what the strategy allows, {dimension.low:g}..{dimension.high:g}"
        )
    return replace(dimension, low=low, high=high, step=step)


def _bounds(dimension: Dimension, wanted: Any) -> tuple[float, float, float]:
    if isinstance(wanted, range):
        values: list[float] = list(wanted)
        if not values:
            raise InputError(f"{dimension.name}: the range {wanted} is empty")
        return values[0], values[-1], abs(wanted.step)
    try:
        if isinstance(wanted, str):
            parts = [float(part) for part in wanted.split(":")]
        elif isinstance(wanted, Iterable):
            parts = [float(part) for part in wanted]
        else:
            parts = [float(wanted)]
    except (TypeError, ValueError):
        parts = []
    if not 1 <= len(parts) <= 3 or (len(parts) == 3 and parts[2] <= 0):
        raise InputError(f"{dimension.name}={wanted}: give bounds as LOW:HIGH or LOW:HIGH:STEP")
    if dimension.kind == "int" and any(not part.is_integer() for part in parts):
        raise InputError(f"{dimension.name}={wanted}: needs whole numbers")
    low = parts[0]
    return low, parts[1] if len(parts) > 1 else low, parts[2] if len(parts) > 2 else dimension.step


def nearest_value(dimension: Dimension, value: Any) -> Any:
    """Return a dimension's value nearest to some value; its first choice for one that is none of its choices."""
    if dimension.kind == "choice":
        return value if value in dimension.choices else dimension.choices[0]
    return min(dimension.values(), key=lambda own: abs(own - value))


def suggest(trial: optuna.Trial, space: Mapping[str, Dimension]) -> dict[str, Any]:
    """Return a trial's value for each dimension."""
    values: dict[str, Any] = {}
    for name, dimension in space.items():
        if dimension.kind == "int":
            values[name] = trial.suggest_int(name, int(dimension.low), int(dimension.high), step=int(dimension.step))
        elif dimension.kind == "float":
            values[name] = trial.suggest_float(name, dimension.low, dimension.high, step=dimension.step)
        else:
            values[name] = trial.suggest_categorical(name, list(dimension.choices))
    return values


def size(space: Mapping[str, Dimension]) -> int:
    """Return how many points a space has."""
    total = 1
    for dimension in space.values():
        total *= len(dimension.values())
    return total
