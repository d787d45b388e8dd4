"""A single agent: one answer, the baseline of the society and the alignment papers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import dspy

from ..signatures.demonstrations import Demonstration
from .answering import AnsweringConfig, first_answer, first_answer_demos
from .asking import Script
from .base import STRATEGIES, Strategy, StrategyConfig
from .decisions import decide


class SingleConfig(AnsweringConfig):
    """Settings of `single`; see `AnsweringConfig`."""


@STRATEGIES.register("single")
class Single(Strategy):
    """One call: the answer, after a chain of thought or without. See `Strategy` for the arguments."""

    name: ClassVar[str] = "single"
    summary: ClassVar[str] = "one agent answers once, with or without chain of thought; the baseline"
    Config: ClassVar[type[StrategyConfig]] = SingleConfig

    def _prepare(self) -> None:
        self.solve = self.role(first_answer(self.config.cot))

    def max_calls(self) -> int:
        """One call a question."""
        return 1

    def demonstrate(self, demonstrations: Sequence[Demonstration]) -> Self:
        """Show the first `shots` worked problems."""
        self.solve.demos = first_answer_demos(demonstrations[: self.config.shots])
        return self

    def script(self, question: str) -> Script[dspy.Prediction]:
        """Ask once; see `Strategy.script`."""
        [reply] = yield [self.ask("solve", {"question": question}, round=1, agent=0, name="Agent 1")]
        answers: list[Any] = [reply.answer]
        answer, decision = decide("majority", answers)
        return self.conclude(question, [reply.turn], answer, decision)
