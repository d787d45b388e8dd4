"""The single-prompt town hall of the paper: one model is spliced into N personas, all in one call.

Town Hall Debate Prompting, appendix A: a system principle with the number of entities, one or two worked
demonstrations, and a task prefix with the format guide. Here the principle is the signature's instructions, the
demonstrations are made from the task's worked problems, and the format guide is the typed output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import dspy
from pydantic import Field

from ..signatures.answers import display
from ..signatures.demonstrations import Demonstration
from ..signatures.town_hall import DebateRound, HoldTownHall, NamedBallot, Statement
from .asking import Script
from .base import STRATEGIES, Strategy, StrategyConfig
from .decisions import decide


class TownHallPromptConfig(StrategyConfig):
    """Settings of `town-hall-prompt`.

    Attributes:
        personas: how many personas the model is spliced into.
        rounds: how many rounds they debate, the opening included.
        shots: how many worked demonstrations are shown (the paper uses 1 or 2).
    """

    personas: int = Field(default=5, ge=1, le=15)
    rounds: int = Field(default=3, ge=1, le=6)
    shots: int = Field(default=1, ge=0, le=2)


@STRATEGIES.register("town-hall-prompt")
class TownHallPrompt(Strategy):
    """The whole town hall in one call. See `Strategy` for the arguments.

    The personas, rounds and ballots that the model reports are in the transcript's one turn; the answer is the one it
    declares the winner.
    """

    name: ClassVar[str] = "town-hall-prompt"
    summary: ClassVar[str] = "the paper's single prompt: one model plays all personas, rounds and the vote in one call"
    Config: ClassVar[type[StrategyConfig]] = TownHallPromptConfig

    def _prepare(self) -> None:
        self.hold = self.role(HoldTownHall)

    def max_calls(self) -> int:
        """One call a question."""
        return 1

    def script(self, question: str) -> Script[dspy.Prediction]:
        """Ask once; see `Strategy.script`."""
        inputs = {"question": question, "participants": self.config.personas, "rounds": self.config.rounds}
        [reply] = yield [self.ask("hold", inputs, round=1, agent=0, name="Town hall")]
        answers: list[Any] = [reply.answer]
        answer, decision = decide("majority", answers)
        personas = list(reply.prediction.personas) if reply.prediction is not None else []
        return self.conclude(question, [reply.turn], answer, decision, personas)

    def demonstrate(self, demonstrations: Sequence[Demonstration]) -> Self:
        """Show whole debates of two rounds, made from the first `shots` worked problems."""
        self.hold.demos = [_worked_debate(item) for item in demonstrations[: self.config.shots]]
        return self


def _worked_debate(item: Demonstration) -> dspy.Example:
    first, second, third = item.personas[:3]
    right, wrong = display(item.answer), display(item.mistaken_answer)
    opening = DebateRound(
        statements=[
            Statement(speaker=first.name, statement=item.reasoning, answer=right),
            Statement(speaker=second.name, statement=item.mistaken_reasoning, answer=wrong),
            Statement(speaker=third.name, statement=f"I come to the same as {first.name}.", answer=right),
        ]
    )
    rebuttal = DebateRound(
        statements=[
            Statement(speaker=first.name, statement=f"To {second.name}: {item.correction}", answer=right),
            Statement(speaker=second.name, statement="That objection holds; I revise my answer.", answer=right),
            Statement(speaker=third.name, statement=f"To {second.name}: {item.correction}", answer=right),
        ]
    )
    ballots = [
        NamedBallot(voter=persona.name, reason=reason, vote=right)
        for persona, reason in (
            (first, "Every step follows from the question."),
            (second, "My first solution broke a condition of the question; this one breaks none."),
            (third, "It is the only answer that survived the criticism."),
        )
    ]
    return dspy.Example(
        question=item.question,
        participants=3,
        rounds=2,
        personas=[first, second, third],
        debate=[opening, rebuttal],
        ballots=ballots,
        answer=item.answer,
    )
