"""A worked problem that a task supplies and that every strategy turns into demonstrations of its own roles."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from .transcript import Persona


class Demonstration(BaseModel):
    """One problem solved by hand, with a mistake that a debate would catch.

    Attributes:
        question: as the task renders questions.
        reasoning: a correct solution, step by step.
        answer: the right answer, of the task's answer type.
        mistaken_reasoning: a plausible wrong solution.
        mistaken_answer: what it leads to.
        correction: what a critic says against the wrong solution.
        personas: participants that suit the problem, at least three.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    question: str
    reasoning: str
    answer: Any
    mistaken_reasoning: str
    mistaken_answer: Any
    correction: str
    personas: list[Persona] = Field(min_length=3)
