"""Which candidates a teleprompter has evaluated, and how they did: for the display, the report, and a budget's end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

from ..programs.base import Strategy
from .freezing import roles_of


@dataclass(frozen=True)
class Prompts:
    """What was tuned of one role: its signature and demonstrations."""

    signature: type[dspy.Signature]
    demos: tuple[Any, ...]


@dataclass(frozen=True)
class Candidate:
    """One evaluation of a program.

    Attributes:
        score: mean score, in [0, 1].
        examples: over so many.
        prompts: of each role that is tuned.
    """

    score: float
    examples: int
    prompts: dict[str, Prompts]


class Scoreboard(BaseCallback):
    """Listens to `dspy.Evaluate`, which most teleprompters compare candidates with.

    Args:
        valid: whether results still count: those that a budget cut short do not.
        on_candidate: called after each evaluation.
    """

    def __init__(self, valid: Callable[[], bool], on_candidate: Callable[[], None] = lambda: None) -> None:
        self.candidates: list[Candidate] = []
        self._valid = valid
        self._on_candidate = on_candidate
        self._started: dict[str, tuple[dict[str, Prompts], int]] = {}
        self._lock = threading.Lock()

    def on_evaluate_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Keep a program's prompts as they are now: COPRO changes them afterwards."""
        program = inputs.get("program")
        if isinstance(program, Strategy):
            examples = inputs.get("devset") or instance.devset
            with self._lock:
                self._started[call_id] = (prompts_of(program), len(examples))

    def on_evaluate_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Book a result."""
        with self._lock:
            prompts, examples = self._started.pop(call_id, ({}, 0))
            if not examples or outputs is None or not self._valid():
                return
            self.candidates.append(Candidate(float(outputs.score) / 100, examples, prompts))
        self._on_candidate()

    @property
    def full(self) -> list[Candidate]:
        """The candidates evaluated on as many examples as any, in order; small batches do not compare with them."""
        most = max((candidate.examples for candidate in self.candidates), default=0)
        return [candidate for candidate in self.candidates if candidate.examples == most]

    @property
    def best(self) -> Candidate | None:
        """The first of the best."""
        return max(self.full, key=lambda candidate: candidate.score, default=None)


def prompts_of(program: Strategy) -> dict[str, Prompts]:
    """Return the prompts of a program's roles, frozen ones left out."""
    return {name: Prompts(predictor.signature, tuple(predictor.demos)) for name, predictor in roles_of(program).items()}
