"""Several compiled programs that answer together: each debates, and the majority of their answers wins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import dspy
from pydantic import Field, field_validator

from ..errors import InputError
from ..programs.asking import Ask, Reply, Script
from ..programs.base import Strategy, StrategyConfig
from ..programs.decisions import decide, known_rule
from ..signatures.transcript import Turn


class EnsembleConfig(StrategyConfig):
    """Settings of an ensemble.

    Attributes:
        decision: the rule applied to the members' answers.
    """

    decision: str = Field(default="majority", json_schema_extra={"registry": "decisions"})

    _check_decision = field_validator("decision")(known_rule)


class Ensemble(Strategy):
    """Programs of one question, asked side by side, and a vote over their answers; DSPy's `Ensemble` with a typed vote.

    Members keep their own settings, but each draws its own samples: give them different seeds.

    Args:
        members: the programs, two or more.
        config: see `EnsembleConfig`.

    Raises:
        InputError: for fewer than two members, or members whose answers are of different types.
    """

    name: ClassVar[str] = "ensemble"
    summary: ClassVar[str] = "several compiled programs and a vote over their answers"
    Config: ClassVar[type[StrategyConfig]] = EnsembleConfig

    def __init__(self, members: Sequence[Strategy], config: EnsembleConfig | None = None) -> None:
        if len(members) < 2:
            raise InputError(f"an ensemble needs at least 2 programs; there are {len(members)}")
        if any(member.answer_type != members[0].answer_type for member in members):
            raise InputError("the programs of an ensemble must all give the same type of answer")
        self.members = list(members)
        super().__init__(config, answer=members[0].answer_type)
        self.members = list(members)

    def _prepare(self) -> None:
        """Members have their roles already."""

    @property
    def agents(self) -> int:
        """All members' agents."""
        return sum(member.agents for member in self.members)

    @property
    def lms(self) -> tuple[dspy.LM, ...]:
        """The first member's models."""
        return self.members[0].lms

    def max_calls(self) -> int:
        """All members' calls."""
        return sum(member.max_calls() for member in self.members)

    def with_models(self, lms: Sequence[dspy.LM] | None = None, judge_lm: dspy.LM | None = None) -> Self:
        """Set the models of every member's agents."""
        for member in self.members:
            member.with_models(lms, judge_lm)
        return self

    def reconfigured(self, **settings: Any) -> Self:
        """Refuse: settings belong to the members.

        Raises:
            InputError: always.
        """
        raise InputError(
            "an ensemble has no settings to change; change those of its members and put them together anew"
        )

    def script(self, question: str) -> Script[dspy.Prediction]:
        """Let the members debate in step, then vote; see `Strategy.script`."""
        scripts = [member.script(question) for member in self.members]
        results: dict[int, dspy.Prediction] = {}
        asks: dict[int, Sequence[Ask]] = {}
        replies: dict[int, list[Reply] | None] = dict.fromkeys(range(len(scripts)))
        while replies:
            for number, received in replies.items():
                try:
                    asks[number] = scripts[number].send(received)  # type: ignore[arg-type]  # None starts a generator
                except StopIteration as stop:
                    results[number] = stop.value
                    asks.pop(number, None)
            if not asks:
                break
            said = yield [ask for step in asks.values() for ask in step]
            replies = {}
            for number, step in asks.items():
                replies[number], said = said[: len(step)], said[len(step) :]
        predictions = [results[number] for number in range(len(scripts))]
        answer, decision = decide(self.config.decision, [prediction.answer for prediction in predictions])
        return self.conclude(question, self._turns(predictions), answer, decision)

    def _turns(self, predictions: Sequence[dspy.Prediction]) -> list[Turn]:
        """Return what all members' agents said, numbered through, by round."""
        turns: list[Turn] = []
        before = 0
        for number, (member, prediction) in enumerate(zip(self.members, predictions, strict=True), start=1):
            for turn in prediction.transcript.turns:
                agent = None if turn.agent is None else turn.agent + before
                turns.append(turn.model_copy(update={"agent": agent, "name": f"Member {number}, {turn.name}"}))
            before += member.agents
        return sorted(turns, key=lambda turn: turn.round)
