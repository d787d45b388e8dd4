"""Chain of thought: one model reasons, then answers. The baseline of the town hall paper, 0- or 1-shot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import dspy
from pydantic import Field

from ..signatures.demonstrations import Demonstration
from ..signatures.town_hall import SolveStepByStep
from .asking import Script
from .base import STRATEGIES, Strategy, StrategyConfig
from .decisions import decide


class ChainOfThoughtConfig(StrategyConfig):
    """Settings of `chain-of-thought`.

    Attributes:
        shots: how many of the task's worked problems are shown (0 or 1 in the paper's terms; 2 at most).
    """

    shots: int = Field(default=1, ge=0, le=2)


@STRATEGIES.register("chain-of-thought")
class ChainOfThought(Strategy):
    """One call: reasoning, then the answer. See `Strategy` for the arguments."""

    name: ClassVar[str] = "chain-of-thought"
    summary: ClassVar[str] = "one model reasons step by step and answers (0- or 1-shot); the baseline"
    Config: ClassVar[type[StrategyConfig]] = ChainOfThoughtConfig

    def _prepare(self) -> None:
        self.solve = self.role(SolveStepByStep)

    def max_calls(self) -> int:
        """One call a question."""
        return 1

    def demonstrate(self, demonstrations: Sequence[Demonstration]) -> Self:
        """Show the first `shots` worked problems."""
        self.solve.demos = [
            dspy.Example(question=item.question, reasoning=item.reasoning, answer=item.answer)
            for item in demonstrations[: self.config.shots]
        ]
        return self

    def script(self, question: str) -> Script[dspy.Prediction]:
        """Ask once; see `Strategy.script`."""
        [reply] = yield [self.ask("solve", {"question": question}, round=1, agent=0, name="Solver")]
        answers: list[Any] = [reply.answer]
        answer, decision = decide("majority", answers)
        return self.conclude(question, [reply.turn], answer, decision)
