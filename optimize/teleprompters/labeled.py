"""Labeled few-shot: demonstrations that need no model call."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import dspy
from pydantic import Field

from ...errors import InputError
from ...programs.base import Strategy
from ...signatures.answers import plain
from ..freezing import roles_of
from .base import TELEPROMPTERS, Sizes, Teleprompter, Work


class LabeledSizes(Sizes):
    """Sizes of `labeled`; see also `Sizes`.

    Attributes:
        demos: demonstrations of each role.
    """

    demos: int = Field(default=2, ge=1, le=16)
    dev: int | None = Field(default=None, ge=1)


@TELEPROMPTERS.register("labeled")
class Labeled(Teleprompter):
    """Demonstrations from labels alone, as `dspy.LabeledFewShot`, for roles that have more fields than a label.

    A training example is a question and its answer; most roles of a debate also read a persona or a discussion and
    write an argument. An example cut down to what it has would teach them to leave the rest out, so:

    - every role is shown its part in the task's worked problems;
    - roles that read the question and write the answer, and nothing else, get training examples besides.
    """

    name: ClassVar[str] = "labeled"
    summary: ClassVar[str] = "labeled few-shot: the task's worked problems, and training answers where they suffice"
    Sizes: ClassVar[type[Sizes]] = LabeledSizes

    def most_debates(self, sizes: Any, *, roles: int, train: int, dev: int) -> int:
        """See `Teleprompter.most_debates`."""
        return 0

    def run(self, work: Work) -> Strategy:
        """Give each role its demonstrations; see `Teleprompter.run`."""
        wanted = work.sizes.demos
        shown = 0
        for name, predictor in roles_of(work.program).items():
            demos = work.problems.get(name, [])[:wanted]
            if answers_only(predictor.signature):
                rest = min(wanted - len(demos), len(work.train))
                chosen = random.Random(f"{work.seed}/{name}").sample(work.train, rest)
                demos = [*demos, *(dspy.Example(question=item.question, answer=plain(item.answer)) for item in chosen)]
            elif len(demos) < wanted:
                work.notes.append(
                    f"{name}: {len(demos)} of {wanted} demonstrations; the task has no more worked problems"
                )
            predictor.demos = demos
            shown += len(demos)
        if not shown:
            raise InputError(
                f"labeled: task '{work.task.name}' has no worked problems, and no role of '{work.program.name}' that "
                "is to be tuned reads a question and writes only an answer; use --teleprompter bootstrap"
            )
        return work.program


def answers_only(signature: type[dspy.Signature]) -> bool:
    """Return whether a question and its answer make a whole demonstration of a role."""
    return set(signature.input_fields) == {"question"} and set(signature.output_fields) == {"answer"}
