"""Stating an answer: the first answer that strategies share, and how others read it.

Strategies that open with the same prompt share their first answers through the cache: `single`, `majority`,
`self-reflection`, `society` and the two-agent debates ask the first agent the same thing in the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dspy
from pydantic import Field

from ..signatures.answers import display
from ..signatures.demonstrations import Demonstration
from ..signatures.society import Solve
from ..signatures.town_hall import SolveStepByStep
from ..signatures.transcript import Persona
from .asking import Reply
from .base import StrategyConfig
from .decisions import candidates_of


class AnsweringConfig(StrategyConfig):
    """Settings of every strategy whose agents answer the question first.

    Attributes:
        cot: chain of thought: agents reason before they answer, and others read their reasoning too.
        shots: how many of the task's worked problems are shown to each role; the papers show none.
    """

    cot: bool = True
    shots: int = Field(default=0, ge=0, le=2)


def first_answer(cot: bool) -> type[dspy.Signature]:
    """Return the signature of a first answer, with a chain of thought or without."""
    return SolveStepByStep if cot else Solve


def with_reasoning(signature: type[dspy.Signature], cot: bool) -> type[dspy.Signature]:
    """Return the signature of a later answer, its `reasoning` left out where there is no chain of thought."""
    return signature if cot else signature.delete("reasoning")


def first_answer_demos(demonstrations: Sequence[Demonstration]) -> list[dspy.Example]:
    """Return worked first answers; `reasoning` is not shown where the signature has none."""
    return [
        dspy.Example(question=item.question, reasoning=item.reasoning, answer=item.answer) for item in demonstrations
    ]


def state(reasoning: str | None, answer: Any) -> str:
    """Return an answer as others read it: the reasoning, where there is one, and the answer."""
    return f"{reasoning}\nAnswer: {display(answer)}" if reasoning else f"Answer: {display(answer)}"


def statement_of(reply: Reply) -> str | None:
    """Return what a reply says as others read it; None for an abstention."""
    if reply.prediction is None:
        return None
    return state(getattr(reply.prediction, "reasoning", None), reply.answer)


def statements_of(replies: Sequence[Reply], before: Sequence[str]) -> list[str]:
    """Return what each agent stands by after a step: an agent that abstained stands by what it said before."""
    return [statement_of(reply) or before[index] for index, reply in enumerate(replies)]


def agreed(answers: Sequence[Any]) -> bool:
    """Return whether all agents have an answer, and the same one."""
    return None not in answers and len(candidates_of(answers)) == 1


def introduce(persona: Persona, label: str) -> str:
    """Return how an agent is told who it is."""
    text = f"You are {label}."
    if persona.expertise:
        text += f" Expertise: {persona.expertise}."
    if persona.stance:
        text += f" Stance: {persona.stance}."
    return text
