"""KNN few-shot: each question is shown the demonstrations nearest to it."""

from __future__ import annotations

from typing import Any, ClassVar

from dspy.primitives.module import set_attribute_by_name
from pydantic import Field

from ...programs.base import Strategy
from ..freezing import roles_of
from ..nearest_demos import NearestDemos
from .base import TELEPROMPTERS, Sizes, Teleprompter, Work
from .bootstrap import bootstrapped, note_empty


class KNNSizes(Sizes):
    """Sizes of `knn`; see also `Sizes`.

    Attributes:
        pool: most bootstrapped demonstrations of each role to choose from.
        demos: how many of them a question is shown.
        rounds: attempts for each training example.
    """

    pool: int = Field(default=8, ge=2, le=256)
    demos: int = Field(default=2, ge=1, le=16)
    rounds: int = Field(default=1, ge=1, le=10)
    dev: int | None = Field(default=None, ge=1)


@TELEPROMPTERS.register("knn")
class KNN(Teleprompter):
    """Bootstraps a pool of demonstrations once; every call shows those most similar to its question.

    Similarity is that of `similarity.nearest`: words and letter trigrams, no embedding model. A role that got no
    demonstration keeps what it had.
    """

    name: ClassVar[str] = "knn"
    summary: ClassVar[str] = (
        "nearest-neighbour few-shot: each question is shown the bootstrapped demonstrations nearest to it"
    )
    Sizes: ClassVar[type[Sizes]] = KNNSizes
    least_train: ClassVar[int] = 2

    def most_debates(self, sizes: Any, *, roles: int, train: int, dev: int) -> int:
        """See `Teleprompter.most_debates`."""
        return int(train * sizes.rounds)

    def run(self, work: Work) -> Strategy:
        """See `Teleprompter.run`."""
        sizes = work.sizes
        pool = bootstrapped(work, demos=sizes.pool, worked=0, rounds=sizes.rounds)
        note_empty(work, pool)
        for name, predictor in roles_of(work.program).items():
            if pool[name]:
                chooser = NearestDemos(predictor.signature, pool[name], sizes.demos)
                chooser.lm, chooser.config = predictor.lm, dict(predictor.config)
                set_attribute_by_name(work.program, name, chooser)
        return work.program
