"""Debate-only: two agents decide, give each other feedback and decide again; a judge settles what remains.

Debate for Equitable Cultural Alignment, "debate-only": two different models, one exchange of feedback.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import dspy
from pydantic import Field

from ..errors import InputError
from ..signatures.alignment import GiveFeedback, JudgeDebate, ReviseAfterFeedback
from ..signatures.demonstrations import Demonstration
from ..signatures.transcript import Turn
from .answering import (
    AnsweringConfig,
    agreed,
    first_answer,
    first_answer_demos,
    state,
    statements_of,
    with_reasoning,
)
from .asking import Ask, Reply, Script
from .base import STRATEGIES, Strategy, StrategyConfig, answers_of
from .judging import Adjudication, adjudicate, judgement_demo

NAMES = ("Agent 1", "Agent 2")
#: What agents read where the other one, or they themselves, abstained.
NOTHING_SAID = "(nothing)"


@dataclass(frozen=True)
class Move:
    """What an agent says between two decisions.

    Attributes:
        choice: "debate" for feedback on the other's answer, "reflect" for a reflection on its own.
        text: what it said; "" when it abstained.
    """

    choice: Literal["reflect", "debate"]
    text: str = ""


class DebateOnlyConfig(AnsweringConfig):
    """Settings of `debate-only`; see also `AnsweringConfig`.

    Attributes:
        rounds: how many rounds, the first decisions included: 1 is two answers and the judge, 2 one exchange of
            feedback (the paper's setting).
        adjudication: who decides when the last answers differ: the "judge"; the more "confident" agent (agents then
            state how certain they are); the "first" agent; nobody ("abstain").
        require_different: the two agents must have different models.
        stop_when_unanimous: end the rounds as soon as both agree; the paper's agents always exchange feedback.
    """

    rounds: int = Field(default=2, ge=1, le=6)
    adjudication: Adjudication = "judge"
    require_different: bool = Field(default=False, json_schema_extra={"search": False})
    stop_when_unanimous: bool = False


@STRATEGIES.register("debate-only")
class DebateOnly(Strategy):
    """Two agents decide, exchange feedback and decide again. See `Strategy` for the arguments.

    Calls for R rounds: 2 + 4*(R - 1), and 1 for a judge. In a round after the first, both agents at the same time give
    feedback on the other's answer of the round before; then each decides again, shown exactly its own answer and the
    other's of the round before, the feedback it received and the feedback it gave. First decisions depend on the model
    and the question only, so that debates of one model with several partners share them through the cache.
    """

    name: ClassVar[str] = "debate-only"
    summary: ClassVar[str] = "two agents decide, give each other feedback and decide again; a judge settles the rest"
    Config: ClassVar[type[StrategyConfig]] = DebateOnlyConfig
    #: The signature of a decision after the exchange.
    revision: ClassVar[type[dspy.Signature]] = ReviseAfterFeedback

    def _prepare(self) -> None:
        if self.lms:
            self.check_models()
        config = self.config
        self.decide = self.role(self._with_confidence(first_answer(config.cot)))
        self._prepare_exchange()
        self.revise = self.role(self._with_confidence(with_reasoning(self.revision, config.cot)))
        self.judge = self.role(JudgeDebate, answer_field=None)

    def _prepare_exchange(self) -> None:
        """Create the predictors of the roles between two decisions."""
        self.feedback = self.role(GiveFeedback, answer_field=None)

    def _with_confidence(self, signature: type[dspy.Signature]) -> type[dspy.Signature]:
        if self.config.adjudication != "confident":
            return signature
        description = "how certain you are that your answer is right, from 0 (a guess) to 100 (certain)"
        return signature.append("confidence", dspy.OutputField(desc=description), type_=float)

    @property
    def agents(self) -> int:
        """Two."""
        return 2

    def max_calls(self) -> int:
        """See the class."""
        return 2 + 4 * (int(self.config.rounds) - 1) + (self.config.adjudication == "judge")

    def with_models(self, lms: Sequence[dspy.LM] | None = None, judge_lm: dspy.LM | None = None) -> Self:
        """Set the agents' models; see `Strategy`."""
        super().with_models(lms, judge_lm)
        if self.lms:
            self.check_models()
        return self

    def check_models(self) -> None:
        """Check that there are two different models where the settings require it.

        Raises:
            InputError: when there are not.
        """
        if not self.config.require_different:
            return
        first, second = (self.lm_of(agent) or dspy.settings.lm for agent in range(2))
        if not different(first, second):
            name = getattr(first, "model", None)
            raise InputError(
                f"{self.name} requires two different models, and both agents have {name or 'none'}: "
                "give two (--lm A --lm B), or leave out --require-different"
            )

    # -- the debate ----------------------------------------------------------------------------------------------

    def script(self, question: str) -> Script[dspy.Prediction]:
        """Decide, exchange, decide again, adjudicate; see `Strategy.script`."""
        config = self.config
        self.check_models()
        replies = yield [
            self.ask("decide", {"question": question}, round=1, agent=agent, name=NAMES[agent]) for agent in range(2)
        ]
        turns = [reply.turn for reply in replies]
        answers = answers_of(replies)
        said = statements_of(replies, [state(None, None)] * 2)
        confidences = confidences_of(replies, [0.0, 0.0])
        history: list[tuple[str, Sequence[str]]] = [("Round 1, first answers", said)]
        for number in range(2, config.rounds + 1):
            if config.stop_when_unanimous and agreed(answers):
                break
            moves = yield from self._exchange(question, number, said, turns)
            history.append((f"Round {number}, comments", [judged_move(move) for move in moves]))
            replies = yield [
                self.ask(
                    "revise",
                    {
                        "question": question,
                        "own_answer": said[agent],
                        "other_answer": said[1 - agent],
                        **self._read(moves, agent),
                    },
                    round=number,
                    agent=agent,
                    name=NAMES[agent],
                )
                for agent in range(2)
            ]
            turns += [reply.turn for reply in replies]
            answers = answers_of(replies, answers)
            said = statements_of(replies, said)
            confidences = confidences_of(replies, confidences)
            history.append((f"Round {number}, answers", said))
        answer, decision = yield from adjudicate(
            self, question, config.adjudication, history, answers, confidences, turns
        )
        return self.conclude(question, turns, answer, decision)

    def _exchange(self, question: str, number: int, said: Sequence[str], turns: list[Turn]) -> Script[list[Move]]:
        """Hold the exchange between two decisions; return what each agent said in it."""
        replies = yield [self._ask_comment("feedback", question, number, said, agent) for agent in range(2)]
        turns += [reply.turn for reply in replies]
        return [Move("debate", output_of(reply, "feedback")) for reply in replies]

    def _ask_comment(self, role: str, question: str, number: int, said: Sequence[str], agent: int) -> Ask:
        """Return the ask of a role that reads both agents' answers and states none."""
        inputs = {"question": question, "own_answer": said[agent], "other_answer": said[1 - agent]}
        return self.ask(role, inputs, round=number, agent=agent, name=NAMES[agent], answer_field=None)

    def _read(self, moves: Sequence[Move], agent: int) -> dict[str, str]:
        """Return what an agent reads of the exchange before it decides again."""
        return {
            "feedback_received": moves[1 - agent].text or NOTHING_SAID,
            "feedback_given": moves[agent].text or NOTHING_SAID,
        }

    # -- demonstrations ------------------------------------------------------------------------------------------

    def demonstrate(self, demonstrations: Sequence[Demonstration]) -> Self:
        """Show each role its part in the first `shots` worked problems, between a mistaken agent and a right one."""
        shown = demonstrations[: self.config.shots]
        self.decide.demos = first_answer_demos(shown)
        self.feedback.demos = [
            dspy.Example(**self._worked_answers(item, mistaken=False), feedback=item.correction) for item in shown
        ]
        self.revise.demos = [
            dspy.Example(
                **self._worked_answers(item, mistaken=True),
                **self._read(self._worked_moves(item), 0),
                reasoning=item.reasoning,
                answer=item.answer,
            )
            for item in shown
        ]
        self.judge.demos = [dspy.Example(**judgement_demo(item, self.config.seed, self.config.cot)) for item in shown]
        return self

    def _worked_answers(self, item: Demonstration, *, mistaken: bool) -> dict[str, str]:
        """Return the question and both answers as the mistaken or the right agent reads them."""
        right = state(item.reasoning if self.config.cot else None, item.answer)
        wrong = state(item.mistaken_reasoning if self.config.cot else None, item.mistaken_answer)
        own, other = (wrong, right) if mistaken else (right, wrong)
        return {"question": item.question, "own_answer": own, "other_answer": other}

    def _worked_moves(self, item: Demonstration) -> list[Move]:
        """Return what the mistaken agent (first) and the right one said to each other."""
        given = "Your answer differs from mine. Which step of mine do you think is wrong?"
        return [Move("debate", given), Move("debate", item.correction)]


def judged_move(move: Move) -> str:
    """Return a move as the judge reads it."""
    if not move.text:
        return ""
    return f"(on its own answer) {move.text}" if move.choice == "reflect" else f"(to the other side) {move.text}"


def different(first: Any, second: Any) -> bool:
    """Return whether two models differ, by name or by the server that they are asked from."""
    return (getattr(first, "model", None), _server(first)) != (getattr(second, "model", None), _server(second))


def _server(lm: Any) -> Any:
    settings = getattr(lm, "kwargs", {})
    return settings.get("api_base") or settings.get("base_url")


def output_of(reply: Reply, field: str) -> str:
    """Return a text among a reply's output fields; "" for an abstention."""
    return str(getattr(reply.prediction, field)) if reply.prediction is not None else ""


def confidences_of(replies: Sequence[Reply], before: Sequence[float]) -> list[float]:
    """Return how certain each agent is, 0 to 100; an agent that abstained or was not asked keeps its figure of before.

    A figure between 0 and 1 is read as a share (0.8 is 80); others are cut off at 0 and 100.
    """
    found = []
    for index, reply in enumerate(replies):
        stated = getattr(reply.prediction, "confidence", None)
        if stated is None:
            found.append(before[index])
        else:
            found.append(min(100.0, max(0.0, 100 * stated if 0 < stated < 1 else float(stated))))
    return found
