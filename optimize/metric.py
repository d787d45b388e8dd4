"""A task's score as DSPy's teleprompters want it: one number, and for those that read text, what to do better."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.teleprompt.gepa.gepa_utils import ScoreWithFeedback

from ..metrics.score import Score
from ..signatures.answers import plain
from ..tasks.base import Example, Task
from .feedback import Judge, role_feedback

#: A score counts as full marks from here on: sums of cell scores may miss 1 by rounding.
FULL_MARKS = 1 - 1e-9


@dataclass(frozen=True)
class Failure:
    """An example that could not be scored or run, and why. It scores 0 and stays in the denominator."""

    example: str
    error: str


def training_example(example: Example) -> dspy.Example:
    """Return an example of a task as DSPy's teleprompters read it: the question, and the gold answer as a label."""
    return dspy.Example(question=example.question, answer=plain(example.gold)).with_inputs("question")


def training_examples(examples: Iterable[Example]) -> list[dspy.Example]:
    """Return examples for teleprompters, each question once.

    Two evaluations of one question at the same time cannot be told from a repeated one, see `spending`.
    """
    once: dict[str, Example] = {}
    for example in examples:
        once.setdefault(example.question, example)
    return [training_example(example) for example in once.values()]


class DebateMetric:
    """The metric handed to teleprompters: `metric(gold, prediction, trace=None, pred_name=None, pred_trace=None)`.

    It returns the task's score in [0, 1]; the same number whether or not a trace is given and whether or not feedback
    is asked for. With `pred_name` (GEPA's way of asking) it returns the score with a feedback text for that role.
    Whether a score is good enough to make a demonstration is the teleprompter's business: each is given a threshold,
    for a bare number would admit any partial credit.

    An example whose scoring raises scores 0 and is written down in `failures`; the others go on.

    Args:
        task: whose `score` is the metric.
        examples: all examples that will be scored.
    """

    def __init__(self, task: Task, examples: Iterable[Example]) -> None:
        self.task = task
        self.failures: list[Failure] = []
        self._examples = {_key(example.question, plain(example.gold)): example for example in examples}
        self._lock = threading.Lock()
        self._scores: dict[tuple[str, str], Score] = {}

    def example(self, gold: dspy.Example) -> Example:
        """Return the task's example that a teleprompter's example stands for."""
        return self._examples[_key(gold.question, gold.answer)]

    def score(self, answer: Any, example: Example) -> Score:
        """Score one answer; 0 with the reason as feedback when the task's scoring raises."""
        try:
            return self.task.score(answer, example)
        except Exception as error:  # a task's scoring may fail in any way; one example must not end the others
            failure = Failure(example.id, f"scoring failed: {type(error).__name__}: {error}")
            with self._lock:
                if failure not in self.failures:
                    self.failures.append(failure)
            return Score(0.0, feedback=f"The answer could not be scored ({error}).")

    def right(self, answer: Any, example: Example, threshold: float = FULL_MARKS) -> bool:
        """Return whether an answer that some agent gave reaches a threshold; each distinct answer is scored once."""
        if answer is None:
            return False
        key = (example.fingerprint, json.dumps(plain(answer), sort_keys=True, ensure_ascii=False, default=str))
        if key not in self._scores:
            self._scores[key] = self.score(answer, example)
        return self._scores[key].value >= min(threshold, FULL_MARKS)

    def __call__(
        self,
        gold: dspy.Example,
        pred: Any,
        trace: Any = None,
        pred_name: str | None = None,
        pred_trace: Sequence[tuple[Any, dict[str, Any], Any]] | None = None,
    ) -> float | ScoreWithFeedback:
        """Return the score of a prediction; see the class."""
        example = self.example(gold)
        score = self.score(getattr(pred, "answer", None), example)
        if pred_name is None:
            return score.value
        judge = Judge(lambda answer: self.right(answer, example))
        outputs = dict(pred_trace[0][2]) if pred_trace else {}
        text = role_feedback(pred_name, score, pred, outputs, judge)
        return ScoreWithFeedback(score=score.value, feedback=text)


def _key(question: str, answer: Any) -> str:
    return json.dumps([question, answer], sort_keys=True, ensure_ascii=False, default=str)
