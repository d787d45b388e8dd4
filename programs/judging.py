"""Adjudication: how two agents that still disagree after their debate come to one answer.

Debate for Equitable Cultural Alignment calls a judge model that reads the history; the other rules are options.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

from ..signatures.demonstrations import Demonstration
from ..signatures.transcript import Decision, Turn
from .answering import agreed, state
from .asking import Script
from .base import Strategy
from .decisions import candidates_of, decide

Adjudication = Literal["judge", "confident", "first", "abstain"]

#: How the judge reads of the sides, in the order of `side_order`.
SIDES = ("first", "second")


def side_order(seed: int, question: str) -> tuple[int, int]:
    """Return which agent the judge reads as the first and which as the second side.

    Fixed by the seed and the question: over many questions each agent is first in about half of them.
    """
    digest = hashlib.sha256(f"sides/{seed}/{question}".encode()).digest()
    return (0, 1) if digest[0] < 128 else (1, 0)


def render_debate(history: Sequence[tuple[str, Sequence[str]]], order: Sequence[int]) -> str:
    """Return a debate as the judge reads it: what each side said in each step, without names.

    Args:
        history: each step's title and what the agents said in it, by agent index; "" for nothing.
        order: agent indices in the order of the sides.
    """
    parts = []
    for title, said in history:
        lines = [
            f"{side.capitalize()} side: {said[agent]}" for side, agent in zip(SIDES, order, strict=True) if said[agent]
        ]
        if lines:
            parts.append("\n\n".join([f"{title}:", *lines]))
    return "\n\n".join(parts)


def adjudicate(
    strategy: Strategy,
    question: str,
    rule: Adjudication,
    history: Sequence[tuple[str, Sequence[str]]],
    answers: Sequence[Any],
    confidences: Sequence[float],
    turns: list[Turn],
) -> Script[tuple[Any, Decision]]:
    """Decide a debate between two agents; the judge is called exactly when both have answers and these differ.

    - "judge": the strategy's judge reads the history and names a side. A judge that names none, even when asked again,
      leaves a blank: no side is picked in its place.
    - "confident": the agent that says it is more certain; when both say the same, the first agent, marked as a tie.
    - "first": the first agent.
    - "abstain": nobody; a blank.

    Args:
        strategy: the strategy; its role `judge` and its judge's model are used.
        question: the question as the agents read it.
        rule: see above.
        history: see `render_debate`.
        answers: the two agents' last typed answers; None for no answer.
        confidences: how certain each agent says it is, 0 to 100.
        turns: the judge's turn is added.

    Returns:
        The winning typed answer (None for a blank) and the decision.
    """
    if agreed(answers) or None in answers:
        answer, decision = decide("majority", answers)
        return answer, decision.model_copy(update={"rule": rule})
    if rule == "confident":
        # One more than stated: two agents that are not certain at all are a tie, not a blank.
        answer, decision = decide("weighted", answers, weights=[1 + confidence for confidence in confidences])
        reason = f"stated confidence: {', '.join(f'{confidence:g}' for confidence in confidences)}"
        return answer, decision.model_copy(update={"rule": rule, "reason": reason})
    if rule == "first":
        return answers[0], _decision(rule, answers, 0, reason="the two sides disagree; the first agent's answer stands")
    if rule == "abstain":
        return None, _decision(rule, answers, None, reason="the two sides disagree")
    order = side_order(strategy.config.seed, question)
    [reply] = yield [
        strategy.ask(
            "judge",
            {"question": question, "debate": render_debate(history, order)},
            round=max(turn.round for turn in turns),
            name="Judge",
            lm=strategy.judge_lm,
            answer_field=None,
        )
    ]
    # The record keeps who stood on which side; the judge was not told.
    sides = {side: f"Agent {agent + 1}" for side, agent in zip(SIDES, order, strict=True)}
    turns.append(reply.turn.model_copy(update={"said": {**reply.turn.said, "sides": sides}}))
    if reply.prediction is None:
        reason = f"the judge named neither side: {reply.turn.problem}"
        return None, _decision(rule, answers, None, judged=True, reason=reason)
    winner = order[SIDES.index(reply.prediction.side)]
    return answers[winner], _decision(rule, answers, winner, judged=True, reason=str(reply.prediction.reason))


def _decision(
    rule: str, answers: Sequence[Any], winner: int | None, *, judged: bool = False, reason: str | None = None
) -> Decision:
    candidates = candidates_of(answers)
    for candidate in candidates:
        candidate.votes = len(candidate.supporters)
    won = next((candidate for candidate in candidates if winner in candidate.supporters), None)
    return Decision(
        rule=rule,
        answer=won.answer if won else None,
        bucket=won.bucket if won else None,
        candidates=candidates,
        judged=judged,
        reason=reason,
    )


def judgement_demo(item: Demonstration, seed: int, cot: bool) -> dict[str, Any]:
    """Return the fields of a worked judgement: of two sides that disagree, one made the problem's mistake."""
    order = side_order(seed, item.question)
    right = state(item.reasoning if cot else None, item.answer)
    wrong = state(item.mistaken_reasoning if cot else None, item.mistaken_answer)
    return {
        "question": item.question,
        "debate": render_debate([("Answers", (right, wrong))], order),
        "reason": item.correction,
        "side": SIDES[order.index(0)],
    }
