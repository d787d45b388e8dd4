"""What a role is told about one of its replies: GEPA reflects on these texts, role by role."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..metrics.score import Score
from ..signatures.answers import display
from ..signatures.transcript import Transcript, states_answer


@dataclass(frozen=True)
class Judge:
    """Says of an answer to the question at hand whether it is right."""

    right: Callable[[Any], bool]

    def word(self, answer: Any) -> str:
        """Return "right" or "wrong"."""
        return "right" if self.right(answer) else "wrong"


def role_feedback(
    role: str,
    score: Score,
    prediction: Any,
    outputs: Mapping[str, Any],
    judge: Judge,
) -> str:
    """Return what one reply of a role should learn from the debate it was part of.

    Args:
        role: the predictor's name in the program.
        score: of the whole debate; its feedback names the right answer.
        prediction: of the whole debate, with its decision and transcript where it came to that.
        outputs: what it replied.
        judge: says which answers were right.
    """
    parts = [_about_reply(role, prediction, outputs, judge)]
    parts.append(_about_debate(score, prediction))
    transcript = getattr(prediction, "transcript", None)
    if isinstance(transcript, Transcript):
        parts.append(_course(transcript, judge))
    return " ".join(part for part in parts if part)


def _about_debate(score: Score, prediction: Any) -> str:
    answer = getattr(prediction, "answer", None)
    if answer is None:
        return f"The debate ended without an answer and scores 0. {score.feedback}".rstrip()
    return f"The debate ended with {display(answer)}, which scores {score.value:.3g} of 1. {score.feedback}".rstrip()


def _about_reply(role: str, prediction: Any, outputs: Mapping[str, Any], judge: Judge) -> str:
    name = role.rpartition(".")[2]
    if name == "vote" and isinstance(outputs.get("choice"), int):
        return _about_vote(int(outputs["choice"]), prediction, judge)
    if name == "identify":
        return _about_personas(prediction, judge)
    if name == "judge":
        return _about_judgement(prediction, judge)
    if outputs.get("answer") is not None:
        answer = outputs["answer"]
        return f"This reply's own answer, {display(answer)}, is {judge.word(answer)}."
    return ""


def _about_judgement(prediction: Any, judge: Judge) -> str:
    candidates = getattr(getattr(prediction, "decision", None), "candidates", None) or []
    if not candidates:
        return ""
    given = " and ".join(f"{display(candidate.answer)} ({judge.word(candidate.answer)})" for candidate in candidates)
    return f"The sides ended with {given}; this judgement made {display(getattr(prediction, 'answer', None))} win."


def _about_vote(choice: int, prediction: Any, judge: Judge) -> str:
    candidates = getattr(getattr(prediction, "decision", None), "candidates", None) or []
    chosen = next((candidate for candidate in candidates if candidate.number == choice), None)
    right = [candidate.number for candidate in candidates if judge.right(candidate.answer)]
    if chosen is None:
        return ""
    text = f"This ballot went to candidate {choice}, {display(chosen.answer)}, which is {judge.word(chosen.answer)}."
    if choice in right:
        return text
    if right:
        return f"{text} The right answer stood on the ballot as candidate {right[0]}."
    return f"{text} The right answer was not on the ballot: no vote could have saved this debate."


def _about_personas(prediction: Any, judge: Judge) -> str:
    transcript = getattr(prediction, "transcript", None)
    if not isinstance(transcript, Transcript):
        return ""
    opening = [turn for turn in transcript.of(round=1) if turn.agent is not None and states_answer(turn)]
    if not opening:
        return ""
    right = sum(judge.right(turn.answer) for turn in opening)
    distinct = len({turn.bucket for turn in opening if turn.bucket is not None})
    return (
        f"Of the {len(opening)} participants named here, {right} opened with the right answer; "
        f"they opened with {distinct} different answer{'s' if distinct != 1 else ''}."
    )


def _course(transcript: Transcript, judge: Judge) -> str:
    """Return how many agents were right after each round."""
    rounds = sorted({turn.round for turn in transcript.turns if turn.agent is not None and states_answer(turn)})
    if not rounds or len({turn.agent for turn in transcript.turns if turn.agent is not None}) < 2:
        return ""
    steps = []
    for number in rounds:
        turns = [turn for turn in transcript.of(round=number) if turn.agent is not None and states_answer(turn)]
        right = sum(judge.right(turn.answer) for turn in turns)
        steps.append(f"round {number}: {right} of {len(turns)}")
    return f"Participants with the right answer by round - {', '.join(steps)}."
