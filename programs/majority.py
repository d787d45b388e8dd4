"""Majority vote over independent samples (self-consistency): the equal-cost baseline of every debate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import dspy
from pydantic import Field, field_validator

from ..errors import InputError
from ..signatures.demonstrations import Demonstration
from .answering import AnsweringConfig, first_answer, first_answer_demos
from .asking import Script, arun, run
from .base import STRATEGIES, Strategy, StrategyConfig, answers_of, with_context
from .decisions import decide, known_rule

MAX_SAMPLES = 64


class MajorityConfig(AnsweringConfig):
    """Settings of `majority`; see also `AnsweringConfig`.

    Attributes:
        samples: how many independent answers are drawn (3 in Multiagent Debate; 1 is a single agent).
        decision: the rule applied to the answers.
    """

    samples: int = Field(default=3, ge=1, le=MAX_SAMPLES)
    decision: str = Field(default="majority", json_schema_extra={"registry": "decisions"})

    _check_decision = field_validator("decision")(known_rule)


@STRATEGIES.register("majority")
class Majority(Strategy):
    """Independent samples, drawn at the same time, and a vote. See `Strategy` for the arguments.

    Calls for n samples: n. A call may draw another number of samples for its question, `program(question=...,
    samples=9)`, which is how costs are matched question by question. Samples are numbered: n samples are the first n of
    any greater number, through the cache.
    """

    name: ClassVar[str] = "majority"
    summary: ClassVar[str] = "independent samples and a majority vote (self-consistency); the equal-cost baseline"
    Config: ClassVar[type[StrategyConfig]] = MajorityConfig

    def _prepare(self) -> None:
        self.solve = self.role(first_answer(self.config.cot))

    @property
    def agents(self) -> int:
        """How many samples are drawn."""
        return self.config.samples

    def max_calls(self) -> int:
        """See the class."""
        return self.config.samples

    def forward(self, question: str, samples: int | None = None, **context: Any) -> dspy.Prediction:
        """Answer one question.

        Args:
            question: the question.
            samples: how many samples to draw for this question; None for the setting.
            **context: shown below the question.

        Raises:
            InputError: for a number of samples out of bounds.
        """
        return run(self.script(with_context(question, context), samples))

    async def aforward(self, question: str, samples: int | None = None, **context: Any) -> dspy.Prediction:
        """Answer one question with asyncio; see `forward`."""
        return await arun(self.script(with_context(question, context), samples))

    def script(self, question: str, samples: int | None = None) -> Script[dspy.Prediction]:
        """Draw the samples and vote; see `Strategy.script`."""
        count = self.config.samples if samples is None else samples
        if not 1 <= count <= MAX_SAMPLES:
            raise InputError(f"samples is {count}; it must be from 1 to {MAX_SAMPLES}")
        replies = yield [
            self.ask("solve", {"question": question}, round=1, agent=agent, name=f"Agent {agent + 1}")
            for agent in range(count)
        ]
        answer, decision = decide(self.config.decision, answers_of(replies))
        return self.conclude(question, [reply.turn for reply in replies], answer, decision)

    def demonstrate(self, demonstrations: Sequence[Demonstration]) -> Self:
        """Show the first `shots` worked problems."""
        self.solve.demos = first_answer_demos(demonstrations[: self.config.shots])
        return self
