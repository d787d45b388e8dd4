"""Self-reflection: one agent answers, criticises its own answer and answers again, k times.

The "reflection" baseline of Multiagent Debate (section 3) and "self-reflection" (decide, reflect, decide) of Debate for
Equitable Cultural Alignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import dspy
from pydantic import Field

from ..signatures.alignment import ReflectOnAnswer, ReviseAfterReflection
from ..signatures.demonstrations import Demonstration
from .answering import AnsweringConfig, first_answer, first_answer_demos, state, statements_of, with_reasoning
from .asking import Script
from .base import STRATEGIES, Strategy, StrategyConfig, answers_of
from .decisions import decide

NAME = "Agent 1"


class SelfReflectionConfig(AnsweringConfig):
    """Settings of `self-reflection`; see also `AnsweringConfig`.

    Attributes:
        reflections: how many times the agent reflects and answers again (1 in both papers).
    """

    reflections: int = Field(default=1, ge=1, le=4)


@STRATEGIES.register("self-reflection")
class SelfReflection(Strategy):
    """One agent decides, reflects and decides again. See `Strategy` for the arguments.

    Calls for k reflections: 1 + 2*k. A reflection reads the latest answer; the next answer reads that answer and the
    reflection. A reflection that cannot be read ends the debate with the answer that stands.
    """

    name: ClassVar[str] = "self-reflection"
    summary: ClassVar[str] = "one agent answers, criticises its own answer and answers again"
    Config: ClassVar[type[StrategyConfig]] = SelfReflectionConfig

    def _prepare(self) -> None:
        self.solve = self.role(first_answer(self.config.cot))
        self.reflect = self.role(ReflectOnAnswer, answer_field=None)
        self.revise = self.role(with_reasoning(ReviseAfterReflection, self.config.cot))

    def max_calls(self) -> int:
        """See the class."""
        return 1 + 2 * int(self.config.reflections)

    def script(self, question: str) -> Script[dspy.Prediction]:
        """Decide, then reflect and decide again; see `Strategy.script`."""
        replies = yield [self.ask("solve", {"question": question}, round=1, agent=0, name=NAME)]
        turns = [replies[0].turn]
        answers: list[Any] = answers_of(replies)
        [said] = statements_of(replies, [state(None, None)])
        for number in range(2, self.config.reflections + 2):
            inputs = {"question": question, "own_answer": said}
            [reflection] = yield [self.ask("reflect", inputs, round=number, agent=0, name=NAME, answer_field=None)]
            turns.append(reflection.turn)
            if reflection.prediction is None:
                break
            inputs = {**inputs, "reflection": reflection.prediction.reflection}
            replies = yield [self.ask("revise", inputs, round=number, agent=0, name=NAME)]
            turns.append(replies[0].turn)
            answers = answers_of(replies, answers)
            [said] = statements_of(replies, [said])
        answer, decision = decide("majority", answers)
        return self.conclude(question, turns, answer, decision)

    def demonstrate(self, demonstrations: Sequence[Demonstration]) -> Self:
        """Show each role its part in the first `shots` worked problems: a mistake that reflection finds."""
        shown = demonstrations[: self.config.shots]
        self.solve.demos = first_answer_demos(shown)
        mistakes = [
            {"question": item.question, "own_answer": state(item.mistaken_reasoning, item.mistaken_answer)}
            for item in shown
        ]
        self.reflect.demos = [
            dspy.Example(**mistake, reflection=item.correction) for mistake, item in zip(mistakes, shown, strict=True)
        ]
        self.revise.demos = [
            dspy.Example(**mistake, reflection=item.correction, reasoning=item.reasoning, answer=item.answer)
            for mistake, item in zip(mistakes, shown, strict=True)
        ]
        return self
