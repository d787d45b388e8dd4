"""What a teleprompter is given, what it must say of itself, and what all of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import dspy
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...errors import InputError
from ...programs.base import Strategy
from ...registry import Registry, nearest
from ...tasks.base import Task
from ..freezing import roles_of
from ..metric import FULL_MARKS, DebateMetric
from ..spending import Spending

#: All teleprompters by name. A new one is one module in this package with `@TELEPROMPTERS.register("name")`.
TELEPROMPTERS: Registry[type[Teleprompter]] = Registry("teleprompter", __package__)
#: Examples that fail score 0; no number of them ends a teleprompter.
NO_LIMIT = 10**9


class Sizes(BaseModel):
    """How much a teleprompter does. A debate takes many calls a question, so the defaults are small.

    Attributes:
        train: at most so many training examples; None for all that are given.
        dev: likewise for the examples on which candidates are compared.
        threshold: the score from which on a debate makes demonstrations; partial credit below it makes none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    train: int | None = Field(default=20, ge=1)
    dev: int | None = Field(default=12, ge=1)
    threshold: float = Field(default=1.0, gt=0, le=1)


@dataclass
class Work:
    """One compilation.

    Attributes:
        program: the student: a copy, its frozen roles hidden, watched by `spending`. May be changed.
        teacher: makes demonstrations; of the same structure.
        task: the task.
        metric: of the task.
        train: training examples.
        dev: examples to compare candidates on; empty where the teleprompter compares none.
        prompt_lm: writes prompts; counted.
        reflection_lm: reflects on failures; counted. None when none was given.
        teacher_lm: the teacher's model; None when it is the program's own.
        seed: of everything that is drawn.
        threads: how many debates may run at once.
        spending: counts and holds the budget.
        sizes: of this teleprompter's own class.
        worked: demonstrations of each role that came with the program.
        problems: each role's part in all of the task's worked problems.
        notes: what the report should say; may be added to.
        scores: mean scores of candidates that were compared by other means than `dspy.Evaluate`; may be added to.
    """

    program: Strategy
    teacher: Strategy
    task: Task
    metric: DebateMetric
    train: list[dspy.Example]
    dev: list[dspy.Example]
    prompt_lm: dspy.LM
    reflection_lm: dspy.LM | None
    teacher_lm: dspy.LM | None
    seed: int
    threads: int
    spending: Spending
    sizes: Any
    worked: dict[str, list[dspy.Example]]
    problems: dict[str, list[dspy.Example]]
    notes: list[str] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)

    def right(self, answer: Any, example: dspy.Example) -> bool:
        """Return whether an answer of some agent is good enough for a demonstration."""
        return self.metric.right(answer, self.metric.example(example), self.sizes.threshold)

    @property
    def threshold(self) -> float:
        """The score from which on a debate makes demonstrations; full marks allow for rounding."""
        return min(float(self.sizes.threshold), FULL_MARKS)

    def evaluate(self, program: Strategy) -> float:
        """Return a candidate's mean score over the dev examples, in [0, 1]; the budget may cut it short."""
        evaluator = dspy.Evaluate(
            devset=self.dev, metric=self.metric, num_threads=self.threads, max_errors=NO_LIMIT, provide_traceback=False
        )
        return float(evaluator(program).score) / 100


class Teleprompter(ABC):
    """One way of improving prompts."""

    name: ClassVar[str]
    #: One line for `townhall list teleprompters`.
    summary: ClassVar[str]
    Sizes: ClassVar[type[Sizes]] = Sizes
    #: Whether candidates are compared on dev examples.
    needs_dev: ClassVar[bool] = False
    needs_reflection_lm: ClassVar[bool] = False
    #: Whether it lives on different samples of the same debate, which temperature 0 does not give.
    needs_samples: ClassVar[bool] = False
    #: Fewest training examples.
    least_train: ClassVar[int] = 1

    def check(self, sizes: Any, train: Sequence[Any], dev: Sequence[Any]) -> None:
        """Check that there is enough to work with, before anything is spent.

        Raises:
            InputError: when there is not; the text says what would be enough.
        """
        if len(train) < self.least_train:
            raise InputError(f"{self.name} needs at least {self.least_train} training examples; there are {len(train)}")
        if self.needs_dev and not dev:
            raise InputError(f"{self.name} compares candidates on dev examples; there are none")

    @abstractmethod
    def most_debates(self, sizes: Any, *, roles: int, train: int, dev: int) -> int:
        """Return how many debates are held at most, for the notice before a long compilation.

        Args:
            sizes: of this teleprompter.
            roles: how many roles are tuned.
            train: training examples.
            dev: dev examples.
        """

    @abstractmethod
    def run(self, work: Work) -> Strategy:
        """Return the improved program: the student or a copy of it, or a program of its own kind.

        Raises:
            InputError: when something that it needs turns out to be missing.
        """


def build_sizes(kind: type[Teleprompter], values: Mapping[str, Any]) -> Any:
    """Build a teleprompter's sizes.

    Raises:
        InputError: for an unknown size or a value out of bounds; the text says what would be right.
    """
    known = list(kind.Sizes.model_fields)
    for name in values:
        if name not in known:
            raise InputError(
                f"teleprompter '{kind.name}' has no size '{name}'.{nearest(name, known)} Its sizes: {', '.join(known)}"
            )
    try:
        return kind.Sizes(**values)
    except ValidationError as error:
        problem = error.errors()[0]
        name = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        given = f"{name} is {problem['input']!r}: " if name else ""
        raise InputError(f"{kind.name}: {given}{message[0].lower()}{message[1:]}") from None


def use_demos(program: Strategy, demos: Mapping[str, Sequence[Any]]) -> Strategy:
    """Give roles their demonstrations by name. Returns the program."""
    for name, predictor in roles_of(program).items():
        if name in demos:
            predictor.demos = list(demos[name])
    return program


def merged(demos: Sequence[Any], worked: Sequence[Any], total: int) -> list[Any]:
    """Return a role's demonstrations, filled up to `total` with worked ones; none is dropped."""
    return [*demos, *worked[: max(0, total - len(demos))]]
