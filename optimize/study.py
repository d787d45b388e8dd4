"""A study's record: what is searched on what, and what its trials found."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import optuna
from optuna.trial import FrozenTrial, TrialState
from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import InputError
from ..programs.base import Strategy
from ..signatures.transcript import Usage
from .space import Dimension

FORMAT = 1
#: What can be minimised beside the score: per question, as if nothing had been cached.
COSTS: tuple[str, ...] = ("calls", "tokens", "cost", "seconds")
#: With fewer whole trials than this the best one is simply the one with the highest score.
LEAST_FOR_ESTIMATES = 4

State = Literal["complete", "pruned", "duplicate", "failed", "running", "waiting"]


class StudyDescription(BaseModel):
    """What a study is about. Trials of another description do not belong to it.

    Attributes:
        format: of this record.
        task: what is asked.
        task_version: of the task's rendering and scoring.
        task_fingerprint: hash of all its content.
        split: the split that trials answer.
        examples: hash of the examples' content, in their order.
        n: how many examples a whole trial answers.
        strategy: its name.
        program: hash of its prompts.
        space: the dimensions.
        fixed: settings that are not searched, where they are not the strategy's defaults.
        objectives: "score" first, then costs.
        models: names of the agents' models.
        judge: the judge's model; None when it is not set apart.
        adapter: how fields become messages.
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
    space: list[Dimension]
    fixed: dict[str, Any]
    objectives: list[str]
    models: list[str]
    judge: str | None = None
    adapter: str = "DebateAdapter"

    @property
    def dimensions(self) -> dict[str, Dimension]:
        """The dimensions by name."""
        return {dimension.name: dimension for dimension in self.space}

    def check_same(self, stored: Any, name: str) -> None:
        """Compare with the description stored under the study's name.

        Raises:
            InputError: when they differ, or it is none; the text says in what.
        """
        version = stored.get("format") if isinstance(stored, dict) else None
        if version != self.format:
            raise InputError(f"study '{name}' has format {version}; this townhall reads format {self.format}")
        try:
            other = StudyDescription.model_validate(stored)
        except ValidationError as error:
            raise InputError(f"study '{name}': its description is damaged ({error.errors()[0]['msg']})") from None
        for key in type(self).model_fields:
            mine, theirs = getattr(self, key), getattr(other, key)
            if mine != theirs:
                what = key.replace("_", " ")
                raise InputError(
                    f"study '{name}' exists with another {what}: {_short(theirs)}, not {_short(mine)}. "
                    "Use another --name, or the settings of the study"
                )


def _short(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], Dimension):
        return "; ".join(map(str, value))
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{text[:16]}..." if len(text) == 64 and " " not in text else text


@dataclass(frozen=True)
class TrialResult:
    """One trial.

    Attributes:
        number: in the study.
        state: "complete"; "pruned" (stopped early; `score` is of the examples answered until then); "duplicate" (of a
            configuration tried before; nothing was run); "failed"; "running" or "waiting".
        settings: the configuration.
        score: mean score.
        n: examples answered.
        costs: mean per question by name, as if nothing had been cached.
        calls: model calls made.
        cached: replies that came from the cache instead.
        tokens: that were paid for.
        dollars: that were paid; None where no price is known.
        scores: score by example number.
        run: number of the run's folder: that of the trial which it does again, if it does.
        problem: why it failed, in a word.
        invalid: the strategy refuses the configuration: it will not be tried again.
    """

    number: int
    state: State
    settings: dict[str, Any]
    score: float | None
    n: int
    costs: dict[str, float | None]
    calls: int
    cached: int
    tokens: int = 0
    dollars: float | None = 0.0
    scores: dict[int, float] = field(default_factory=dict)
    run: int | None = None
    problem: str | None = None
    invalid: bool = False


def read_trials(study: optuna.Study) -> list[TrialResult]:
    """Return all trials of a study in the order of their numbers; those that were withdrawn are left out."""
    trials = study.get_trials(deepcopy=False)
    return [_result(trial) for trial in trials if "withdrawn" not in trial.user_attrs]


def _result(trial: FrozenTrial) -> TrialResult:
    attrs = trial.user_attrs
    scores = {int(number): float(score) for number, score in attrs.get("scores", {}).items()}
    return TrialResult(
        number=trial.number,
        state=_state(trial),
        settings=attrs.get("settings", dict(trial.params)),
        score=sum(scores.values()) / len(scores) if scores else None,
        n=len(scores),
        costs=attrs.get("costs", {}),
        **attrs.get("paid", {"calls": 0, "cached": 0}),
        scores=scores,
        run=attrs.get("folder", trial.number),
        problem=attrs.get("failed"),
        invalid="invalid" in attrs,
    )


def _state(trial: FrozenTrial) -> State:
    if "duplicate_of" in trial.user_attrs and trial.state.is_finished():
        return "duplicate"
    if trial.state == TrialState.COMPLETE:
        return "pruned" if "pruned_after" in trial.user_attrs else "complete"
    names: dict[TrialState, State] = {
        TrialState.PRUNED: "pruned",
        TrialState.FAIL: "failed",
        TrialState.RUNNING: "running",
        TrialState.WAITING: "waiting",
    }
    return names[trial.state]


def spent(trials: Sequence[TrialResult]) -> Usage:
    """Return what trials paid for and were served from the cache, in all.

    A trial that does another one again goes on in its run, whose usage holds the earlier calls too.
    """
    paying = [trial for trial in trials if trial.calls or trial.cached]
    latest = {trial.number if trial.run is None else trial.run: trial for trial in paying}
    known = [trial.dollars for trial in latest.values() if trial.dollars is not None]
    return Usage(
        calls=sum(trial.calls for trial in latest.values()),
        cached=sum(trial.cached for trial in latest.values()),
        prompt_tokens=sum(trial.tokens for trial in latest.values()),
        cost=sum(known) if len(known) == len(latest) else None,
    )


def paired_score(scores: Mapping[int, float], whole: Sequence[Mapping[int, float]]) -> float:
    """Return the mean score that is to be expected over all examples from the scores of some.

    A trial that was stopped early may have met the easy examples or the hard ones: the whole trials say which.

    Args:
        scores: a trial's scores by example number.
        whole: those of the trials that answered all examples.
    """
    mean = sum(scores.values()) / len(scores)
    others = [other for other in whole if all(number in other for number in scores)]
    if not others:
        return mean
    total = len(others[0])
    if total == len(scores):
        return mean
    everywhere = sum(sum(other.values()) for other in others) / (total * len(others))
    here = sum(other[number] for other in others for number in scores) / (len(scores) * len(others))
    return min(1.0, max(0.0, everywhere + mean - here))


def sampling_variance(scores: Sequence[Mapping[int, float]]) -> float:
    """Return the variance of a single score around its trial's mean, over all trials; small where all are alike."""
    squares = total = 0.0
    for trial in scores:
        mean = sum(trial.values()) / len(trial)
        squares += sum((score - mean) ** 2 for score in trial.values())
        total += len(trial)
    return max(squares / total, 1e-4) if total else 0.25


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
        name: of the study.
        folder: where its runs are kept.
        storage: where its trials are kept, without the password.
        description: what was searched.
        trials: all of them.
        build: makes the program of a configuration.
        stopped: why the search ended before its number of trials; None when it did not.
    """

    name: str
    folder: Path
    storage: str
    description: StudyDescription
    trials: list[TrialResult]
    build: Callable[[dict[str, Any]], Strategy]
    stopped: str | None = None

    @property
    def used(self) -> Usage:
        """What the study's trials paid for and were served from the cache, in all."""
        return spent(self.trials)

    @property
    def finished(self) -> list[TrialResult]:
        """The trials that ran to an end, pruned ones included."""
        return [trial for trial in self.trials if trial.state in ("complete", "pruned") and trial.n]

    @property
    def whole(self) -> list[TrialResult]:
        """The trials that answered all examples."""
        return [trial for trial in self.finished if trial.state == "complete"]

    @cached_property
    def estimates(self) -> dict[int, float]:
        """The score that each finished trial's configuration is expected to have, by trial number.

        The trial's own score, weighed with those of similar configurations by a `surrogate`. Empty while there are too
        few whole trials to say anything.
        """
        if len(self.whole) < LEAST_FOR_ESTIMATES:
            return {}
        from .surrogate import Encoder, fit

        encode = Encoder(self.description.dimensions)
        points = encode([trial.settings for trial in self.finished])
        whole = [trial.scores for trial in self.whole]
        variance = sampling_variance([trial.scores for trial in self.finished])
        values = [paired_score(trial.scores, whole) for trial in self.finished]
        model = fit(points, encode.groups, values, [variance / trial.n for trial in self.finished])
        expected, _ = model.predict(points)
        return {
            trial.number: min(1.0, max(0.0, float(score))) for trial, score in zip(self.finished, expected, strict=True)
        }

    @property
    def best_trial(self) -> TrialResult:
        """The whole trial whose configuration is expected to score best, see `estimates`.

        Among equals the one with the fewest calls, then the first. The highest score of all is often luck: of many
        trials over few examples, the luckiest comes out on top.

        Raises:
            InputError: when no trial is whole yet.
        """
        if not self.whole:
            raise InputError(f"study '{self.name}' has no finished trial yet")
        expected = self.estimates
        return min(
            self.whole,
            key=lambda trial: (
                -round(expected.get(trial.number, trial.score or 0.0), 6),
                trial.costs.get("calls") or 0.0,
                trial.number,
            ),
        )

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
        """The share of all replies that came from the cache, mostly because trials overlap."""
        replies = self.used.calls + self.used.cached
        return self.used.cached / replies if replies else 0.0
