"""Frozen roles: teleprompters neither see nor change them, and they go on speaking as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import dspy
from dspy.primitives.module import set_attribute_by_name

from ..errors import InputError
from ..programs.base import Strategy
from ..registry import nearest

StrategyT = TypeVar("StrategyT", bound=Strategy)


class FrozenRole(dspy.Module):
    """A role's predictor in a module that counts as compiled, which is DSPy's own way of keeping a part as it is.

    It answers for the predictor in everything else: calls, `signature`, `demos`, `lm`, `config`.
    """

    def __init__(self, predictor: dspy.Predict) -> None:
        super().__init__()
        self.predictor = predictor
        self._compiled = True

    def __call__(self, *args: Any, **kwargs: Any) -> dspy.Prediction:
        """Call the predictor."""
        return self.predictor(*args, **kwargs)

    async def acall(self, *args: Any, **kwargs: Any) -> dspy.Prediction:
        """Call the predictor with asyncio."""
        return await self.predictor.acall(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        predictor = self.__dict__.get("predictor")
        if predictor is None or name.startswith("__"):
            raise AttributeError(name)
        return getattr(predictor, name)


def roles_of(program: Strategy) -> dict[str, dspy.Predict]:
    """Return a program's role predictors by name, frozen ones left out."""
    return dict(program.named_predictors())


def frozen_names(program: Strategy, only: Sequence[str] | None) -> list[str]:
    """Return the roles to freeze when only some are to be tuned.

    Raises:
        InputError: for a role the program does not have, or an empty list.
    """
    if only is None:
        return []
    names = list(roles_of(program))
    if not only:
        raise InputError(f"only: name at least one role to tune. Roles: {', '.join(names)}")
    for name in only:
        if name not in names:
            raise InputError(
                f"only: strategy '{program.name}' has no role '{name}'.{nearest(name, names)} Roles: {', '.join(names)}"
            )
    return [name for name in names if name not in only]


def freeze(program: StrategyT, names: Iterable[str]) -> StrategyT:
    """Hide roles of a program from teleprompters. Returns the program."""
    predictors = roles_of(program)
    for name in names:
        set_attribute_by_name(program, name, FrozenRole(predictors[name]))
    return program
