"""A role that shows the demonstrations nearest to its question, out of a pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dspy

from .similarity import nearest


class NearestDemos(dspy.Predict):
    """A predictor whose `demos` are a pool: each call shows the `nearest` ones that are most similar to its question.

    `dspy.KNNFewShot` bootstraps anew for every question it is asked, whose debates nobody counts, and what it compiles
    cannot be saved. Here the pool is bootstrapped once and is saved as any demonstrations are.

    Args:
        signature: the role's.
        pool: demonstrations; each has the role's `question`.
        count: how many are shown.
    """

    def __init__(self, signature: type[dspy.Signature], pool: Sequence[Any], count: int) -> None:
        super().__init__(signature)
        self.demos = list(pool)
        self.nearest = count

    def chosen(self, question: str) -> list[Any]:
        """Return the demonstrations shown with a question, nearest first; never the question itself."""
        pool = [demo for demo in self.demos if demo.get("question") != question]
        texts = [str(demo.get("question", "")) for demo in pool]
        return [pool[index] for index in nearest(question, texts, self.nearest)]

    def _forward_preprocess(self, **kwargs: Any) -> Any:
        return super()._forward_preprocess(demos=self.chosen(str(kwargs.get("question", ""))), **kwargs)
