"""A study's record: what is searched on what, and what its trials found."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import optuna
from optuna.trial import TrialState
from pydantic import BaseModel, ConfigDict

from ..errors import InputError
from ..programs.base import Strategy
from ..signatures.transcript import Usage

FORMAT = 1
#: What can be minimised beside the score: per question, as if nothing had been cached.
COSTS: tuple[str, ...] = ("calls", "tokens", "cost", "seconds")


class StudyDescription(BaseModel):
    """What a study is about. Trials of another description do not belong to it.

    Attributes:
        format: of this record.
        task, task_version, task_fingerprint: what is asked, and a hash of all its content.
        split, examples: the split that trials answer, and a hash of its examples in their order.
        n: how many examples a whole trial answers.
        strategy, program: name of the strategy, and a hash of its prompts.
        space, fixed: the dimensions in words, and the values that are not searched.
        objectives: "score" first, then costs.
        models: names of the agents' models; judge: the judge's.
    """

    model_config = ConfigDict(extra="ignore")

    format: int = FORMAT
    task: str
    task_version: int
    task_fingerprint: str
    split: str
    examples: str
    n: int
    strategy: str
    program: str
    space: list[str]
    fixed: dict[str, Any]
    objectives: list[str]
    models: list[str]
    judge: str | None = None

    def check_same(self, other: StudyDescription, name: str) -> None:
        """Compare with the description stored under the study's name.

        Raises:
            InputError: when they differ; the text says in what.
        """
        if other.format != self.format:
            raise InputError(f"study '{name}' has format {other.format}; this townhall reads format {self.format}")
        for key, mine in self.model_dump().items():
            theirs = getattr(other, key)
            if mine != theirs:
                what = key.replace("_", " ")
                raise InputError(
                    f"study '{name}' exists with another {what}: {_short(theirs)}, not {_short(mine)}. "
                    "Use another --name, or the settings of the study"
                )


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{text[:16]}..." if len(text) == 64 and " " not in text else text


@dataclass(frozen=True)
class TrialResult:
    """One trial.

    Attributes:
        number: in the study.
        state: "complete", "pruned" (stopped early; `score` is of the examples answered until then), "duplicate" (of
            a configuration tried before; nothing was run), "failed" or "running".
        settings: the configuration.
        score: mean score.
        n: examples answered.
        costs: mean per question by name, as if nothing had been cached.
        paid: model calls made, and replies that came from the cache instead.
        scores: score by example number.
    """

    number: int
    state: Literal["complete", "pruned", "duplicate", "failed", "running", "waiting"]
    settings: dict[str, Any]
    score: float | None
    n: int
    costs: dict[str, float | None]
    calls: int
    cached: int
    scores: dict[int, float] = field(default_factory=dict)


def read_trials(study: optuna.Study) -> list[TrialResult]:
    """Return all trials of a study in the order of their numbers."""
    results = []
    for trial in study.get_trials(deepcopy=False):
        attrs = trial.user_attrs
        state: Any = {
            TrialState.COMPLETE: "complete",
            TrialState.PRUNED: "pruned",
            TrialState.FAIL: "failed",
            TrialState.RUNNING: "running",
            TrialState.WAITING: "waiting",
        }[trial.state]
        if state == "complete" and "duplicate_of" in attrs:
            state = "duplicate"
        elif state == "complete" and "pruned_after" in attrs:
            state = "pruned"
        results.append(
            TrialResult(
                number=trial.number,
                state=state,
                settings=attrs.get("settings", dict(trial.params)),
                score=trial.values[0] if trial.values else None,
                n=len(attrs.get("scores", {})),
                costs=attrs.get("costs", {}),
                calls=attrs.get("calls", 0),
                cached=attrs.get("cached", 0),
                scores={int(number): score for number, score in attrs.get("scores", {}).items()},
            )
        )
    return results


def pareto_front(trials: Sequence[TrialResult], objectives: Sequence[str]) -> list[TrialResult]:
    """Return the whole trials that no other whole trial beats in every objective, cheapest first.

    With the score alone as the objective, calls are taken as the cost: a front is useful all the same.
    """
    costs = [name for name in objectives if name != "score"] or ["calls"]
    whole = [trial for trial in trials if trial.state == "complete" and trial.score is not None]

    def point(trial: TrialResult) -> tuple[float, ...]:
        prices = [trial.costs.get(name) for name in costs]
        return (-(trial.score or 0.0), *(float("inf") if price is None else price for price in prices))

    front = []
    for trial in whole:
        mine = point(trial)
        beaten = any(
            all(a <= b for a, b in zip(point(other), mine, strict=True)) and point(other) != mine for other in whole
        )
        if not beaten:
            front.append(trial)
    return sorted(front, key=lambda trial: (point(trial)[1:], trial.number))


@dataclass
class StudyResult:
    """What a search found.

    Attributes:
        name, folder, storage: where it is kept; the storage is without its password.
        description: what was searched.
        trials: all of them.
        build: makes the program of a configuration.
        stopped: why the search ended before its number of trials; None when it did not.
        used: what this call of the search paid for and was served from the cache.
    """

    name: str
    folder: Path
    storage: str
    description: StudyDescription
    trials: list[TrialResult]
    build: Callable[[dict[str, Any]], Strategy]
    stopped: str | None = None
    used: Usage = field(default_factory=Usage)

    @property
    def finished(self) -> list[TrialResult]:
        """The trials that ran to an end, pruned ones included."""
        return [trial for trial in self.trials if trial.state in ("complete", "pruned")]

    @property
    def best_trial(self) -> TrialResult:
        """The whole trial with the best score; among equals the one with the fewest calls, then the first.

        Raises:
            InputError: when no trial is whole yet.
        """
        whole = [trial for trial in self.trials if trial.state == "complete" and trial.score is not None]
        if not whole:
            raise InputError(f"study '{self.name}' has no finished trial yet")
        return min(whole, key=lambda trial: (-(trial.score or 0.0), trial.costs.get("calls") or 0.0, trial.number))

    @property
    def best(self) -> Strategy:
        """The program of the best trial."""
        return self.build(self.best_trial.settings)

    @property
    def front(self) -> list[TrialResult]:
        """The Pareto front, see `pareto_front`."""
        return pareto_front(self.trials, self.description.objectives)

    @property
    def saved(self) -> float:
        """The share of all replies that came from the cache, because trials overlap."""
        calls = sum(trial.calls for trial in self.trials)
        cached = sum(trial.cached for trial in self.trials)
        return cached / (calls + cached) if calls + cached else 0.0
