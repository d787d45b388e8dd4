"""Reflect-or-debate: in each turn each agent chooses to reflect on its own answer or to give feedback on the other's.

Debate for Equitable Cultural Alignment, "self-reflect + debate".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import dspy

from ..signatures.alignment import ChooseMove, GiveFeedback, ReflectOnAnswer, ReviseAfterMoves
from ..signatures.demonstrations import Demonstration
from ..signatures.transcript import Turn
from .asking import Ask, Script
from .base import STRATEGIES, StrategyConfig
from .debate_only import NAMES, NOTHING_SAID, DebateOnly, DebateOnlyConfig, Move, output_of

#: How a move reads to the agent that made it and to the other one.
OWN_MOVE = {
    "reflect": "You reflected on your own answer: {}",
    "debate": "You gave the other agent feedback on its answer: {}",
}
OTHER_MOVE = {
    "reflect": "The other agent reflected on its own answer: {}",
    "debate": "The other agent gave you feedback on your answer: {}",
}


class ReflectOrDebateConfig(DebateOnlyConfig):
    """Settings of `reflect-or-debate`: those of `debate-only`, see there."""


@STRATEGIES.register("reflect-or-debate")
class ReflectOrDebate(DebateOnly):
    """Two agents that choose in each round whether to reflect or to debate. See `Strategy` for the arguments.

    Calls for R rounds: 2 + 6*(R - 1), and 1 for a judge: decide; then in each round choose, reflect or give feedback,
    and decide again. Both agents choose at the same time, so neither knows the other's choice. Each decides again shown
    its own and the other's answer of the round before and what both said in the exchange. An agent whose choice cannot
    be read says nothing in that exchange.
    """

    name: ClassVar[str] = "reflect-or-debate"
    summary: ClassVar[str] = "two agents choose in each turn to reflect or to give feedback, then decide again"
    Config: ClassVar[type[StrategyConfig]] = ReflectOrDebateConfig
    revision: ClassVar[type[dspy.Signature]] = ReviseAfterMoves

    def _prepare_exchange(self) -> None:
        self.choose = self.role(ChooseMove, answer_field=None)
        self.reflect = self.role(ReflectOnAnswer, answer_field=None)
        self.feedback = self.role(GiveFeedback, answer_field=None)

    def max_calls(self) -> int:
        """See the class."""
        return 2 + 6 * (int(self.config.rounds) - 1) + (self.config.adjudication == "judge")

    def _exchange(self, question: str, number: int, said: Sequence[str], turns: list[Turn]) -> Script[list[Move]]:
        """Let both choose, then make their moves; return what each said."""
        replies = yield [self._ask_comment("choose", question, number, said, agent) for agent in range(2)]
        turns += [reply.turn for reply in replies]
        choices = {
            agent: reply.prediction.choice for agent, reply in enumerate(replies) if reply.prediction is not None
        }
        moves = [Move("debate"), Move("debate")]
        if choices:
            replies = yield [self._ask_move(choice, question, number, said, agent) for agent, choice in choices.items()]
            turns += [reply.turn for reply in replies]
            for (agent, choice), reply in zip(choices.items(), replies, strict=True):
                moves[agent] = Move(choice, output_of(reply, "reflection" if choice == "reflect" else "feedback"))
        return moves

    def _ask_move(self, choice: str, question: str, number: int, said: Sequence[str], agent: int) -> Ask:
        if choice == "debate":
            return self._ask_comment("feedback", question, number, said, agent)
        inputs = {"question": question, "own_answer": said[agent]}
        return self.ask("reflect", inputs, round=number, agent=agent, name=NAMES[agent], answer_field=None)

    def _read(self, moves: Sequence[Move], agent: int) -> dict[str, str]:
        own, other = moves[agent], moves[1 - agent]
        return {
            "own_move": OWN_MOVE[own.choice].format(own.text) if own.text else NOTHING_SAID,
            "other_move": OTHER_MOVE[other.choice].format(other.text) if other.text else NOTHING_SAID,
        }

    def demonstrate(self, demonstrations: Sequence[Demonstration]) -> Self:
        """Show roles as `debate-only` does, and reflection; `choose` gets none, for a shown choice invites itself."""
        super().demonstrate(demonstrations)
        self.reflect.demos = [
            dspy.Example(
                question=item.question,
                own_answer=self._worked_answers(item, mistaken=True)["own_answer"],
                reflection=item.correction,
            )
            for item in demonstrations[: self.config.shots]
        ]
        return self
