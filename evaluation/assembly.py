"""Building a strategy for a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..tasks.access import task as task_by_name
from ..tasks.base import Task

if TYPE_CHECKING:
    import dspy

    from ..programs.base import Strategy


def program(
    task: Task | str,
    strategy: str,
    *,
    lms: Sequence[dspy.LM] = (),
    judge_lm: dspy.LM | None = None,
    **settings: Any,
) -> Strategy:
    """Return a strategy that answers a task's questions: with the task's answer type and worked demonstrations.

    Args:
        task: a task, or the name of one.
        strategy: a registered strategy's name, such as "town-hall".
        lms: the agents' models, assigned in turn; none for the configured model.
        judge_lm: the judge's model; None for the first agent's.
        **settings: the strategy's settings (`personas=5, rounds=3`).

    Raises:
        InputError: for an unknown task or strategy, or a setting that is unknown or out of bounds.

    Example:
        >>> program("arithmetic", "town-hall", personas=3, rounds=2).max_calls()
        10
    """
    from ..programs.base import STRATEGIES

    if isinstance(task, str):
        task = task_by_name(task)
    made = STRATEGIES.get(strategy)(answer=task.answer_type, lms=lms, judge_lm=judge_lm, **settings)
    return made.demonstrate(task.demonstrations())
