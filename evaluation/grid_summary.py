"""What a grid of pairs came to: matrices of accuracy, gain and parity, the oracle, and the judge's part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..metrics.parity import Complementarity, complementarity, unanimous_wrong
from ..metrics.statistics import compare_paired
from ..signatures.transcript import Usage
from .records import Group, Interval, Status, Summary
from .run_folder import Run

#: The figures that `GridSummary.matrix` gives.
Figure = Literal["accuracy", "gain", "parity", "parity_min", "oracle", "complementarity"]
FIGURES: tuple[Figure, ...] = ("accuracy", "gain", "parity", "parity_min", "oracle", "complementarity")
#: What dynamics count of the judge.
JUDGE = ("judged", "judged_right", "judge_could")


class Cell(BaseModel):
    """One run of a grid: a model alone, or (as a `PairCell`) a pair.

    Attributes:
        models: the names of its models, one or two.
        run: its folder, seen from the grid's.
        n: examples with a record; failed and blank ones are among them and count as wrong.
        total: examples it has in all.
        status: see `Summary`.
        accuracy: the task's main score.
        interval: its confidence interval.
        parity: mean of the groups' parities; None without groups or with nothing right.
        parity_min: the least of them.
        groups: scores by group, `accuracy` and `parity` among them.
        failed: failed examples.
        blank: examples without a readable answer.
        usage: what was paid, and served from the cache.
        seconds: wall-clock time.
    """

    model_config = ConfigDict(extra="ignore")

    models: list[str]
    run: str
    n: int
    total: int
    status: Status
    accuracy: float | None
    interval: Interval | None = None
    parity: float | None = None
    parity_min: float | None = None
    groups: dict[str, Group] = Field(default_factory=dict)
    failed: int = 0
    blank: int = 0
    usage: Usage = Field(default_factory=Usage)
    seconds: float = 0.0


class PairCell(Cell):
    """A debate of two models. Figures beside the debate's own are over the examples that it and both singles have.

    Attributes:
        better: the model that is more accurate alone; the first of equals. It is chosen by the very examples on which
            the gain is measured, so that the gain is rather under- than overstated.
        gain: accuracy of the debate minus that of the better single.
        gain_interval: paired 95 % interval of the gain.
        p_value: of no gain, two-sided and paired; not corrected for the number of pairs.
        oracle: share of examples that at least one of the two has right alone.
        complementarity: the oracle minus the better single: the most that choosing the right model could gain.
        exactly_one: share that exactly one of the two has right alone.
        both_right: share that both have right alone.
        unanimous_wrong: share on which both give the same wrong answer alone.
        judged: debates that the judge was called for.
        judged_right: those of them that ended with the right answer.
        judge_could: those of them in which one side was right, so that the judge could be.
        dynamics: what the debates show, see `metrics.dynamics`.
    """

    better: str | None = None
    gain: float | None = None
    gain_interval: Interval | None = None
    p_value: float | None = None
    oracle: float | None = None
    complementarity: float | None = None
    exactly_one: float | None = None
    both_right: float | None = None
    unanimous_wrong: float | None = None
    judged: int = 0
    judged_right: int = 0
    judge_could: int = 0
    dynamics: dict[str, Any] = Field(default_factory=dict)


class Ensemble(BaseModel):
    """What all models of a grid have right alone, over the examples that each of them has.

    Attributes:
        n: examples.
        best: the most accurate model; the first of equals.
        accuracy: its accuracy.
        oracle: share of examples that some model has right.
        complementarity: the oracle minus the best model's accuracy.
        exactly_one: share that exactly one model has right.
        all_right: share that every model has right.
        none_right: share that no model has right.
        unanimous_wrong: share on which all give the same wrong answer.
    """

    n: int
    best: str
    accuracy: float
    oracle: float
    complementarity: float
    exactly_one: float
    all_right: float
    none_right: float
    unanimous_wrong: float


class GridSummary(BaseModel):
    """What a grid came to (`summary.json` of its folder).

    Attributes:
        task: name of the task.
        strategy: the pairs' strategy.
        models: the models' names, in order.
        n: examples of each run.
        status: "complete", or why it is not.
        reason: likewise, in one line.
        primary: name of the task's main score.
        by: the field grouped by.
        singles: the models alone, as far as there are records.
        pairs: the debates, likewise.
        ensemble: all models together; None until each has some example in common with the others.
        judged: debates of all pairs that the judge was called for.
        judged_right: those of them that ended with the right answer.
        judge_could: those of them in which one side was right.
        usage: all that the grid paid for and was served from the cache.
        planned_calls: calls by the formula of `grid.planned_calls`, with the judge's as far as they are known.
        seconds: wall-clock time of all runs.
        simulated: some model is simulated: none of the figures say anything about a real one.
    """

    model_config = ConfigDict(extra="ignore")

    task: str
    strategy: str
    models: list[str]
    n: int
    status: Status
    reason: str | None = None
    primary: str
    by: str | None = None
    singles: list[Cell] = Field(default_factory=list)
    pairs: list[PairCell] = Field(default_factory=list)
    ensemble: Ensemble | None = None
    judged: int = 0
    judged_right: int = 0
    judge_could: int = 0
    usage: Usage = Field(default_factory=Usage)
    planned_calls: int = 0
    seconds: float = 0.0
    simulated: bool = False

    def single(self, model: str) -> Cell | None:
        """Return a model's own run; None when it has no record yet."""
        return next((cell for cell in self.singles if cell.models == [model]), None)

    def pair(self, one: str, other: str) -> PairCell | None:
        """Return two models' debate, in whichever order they are named; None when it has no record yet."""
        return next((cell for cell in self.pairs if set(cell.models) == {one, other}), None)

    def matrix(self, figure: Figure) -> list[list[float | None]]:
        """Return a figure of every pair, symmetric, in the order of `models`; None where there is none.

        The diagonal holds the models alone: their accuracy and parity, their accuracy again as their oracle, and no
        gain and complementarity.
        """
        alone = "accuracy" if figure == "oracle" else figure
        return [
            [
                getattr(
                    self.single(one) if one == other else self.pair(one, other), alone if one == other else figure, None
                )
                for other in self.models
            ]
            for one in self.models
        ]


@dataclass(frozen=True)
class Outcome:
    """What a grid keeps of a run in memory: figures, not transcripts.

    Attributes:
        folder: the run's, seen from the grid's.
        summary: the run's.
        scores: the main score by example fingerprint.
        buckets: the answers' voting buckets, None for a blank.
        reflections: example and index of the agents that reflected on their first answers.
    """

    folder: str
    summary: Summary
    scores: dict[str, float]
    buckets: dict[str, str | None]
    reflections: list[tuple[str, int]]

    @classmethod
    def of(cls, folder: str, run: Run) -> Outcome:
        """Return what is kept of a run."""
        said = {record.fingerprint: record.transcript for record in run.records if record.transcript is not None}
        return cls(
            folder=folder,
            summary=run.summary,
            scores={record.fingerprint: record.score for record in run.records},
            buckets={key: found.decision.bucket if found.decision else None for key, found in said.items()},
            reflections=[
                (key, turn.agent)
                for key, found in said.items()
                for turn in found.of(round=2, role="reflect")
                if turn.agent is not None
            ],
        )

    def cell(self, models: Sequence[str]) -> dict[str, Any]:
        """Return the fields of a `Cell`."""
        summary = self.summary
        return {
            "models": list(models),
            "run": self.folder,
            "n": summary.n,
            "total": summary.total,
            "status": summary.status,
            "accuracy": summary.scores.get(summary.primary),
            "interval": summary.intervals.get(summary.primary),
            "parity": summary.scores.get("parity"),
            "parity_min": summary.scores.get("parity_min"),
            "groups": summary.groups,
            "failed": summary.failed,
            "blank": summary.blank,
            "usage": summary.usage,
            "seconds": summary.seconds,
        }


def single_cell(name: str, outcome: Outcome) -> Cell:
    """Return the cell of a model alone."""
    return Cell(**outcome.cell([name]))


def pair_cell(names: tuple[str, str], debate: Outcome, singles: Mapping[str, Outcome]) -> PairCell:
    """Return the cell of a pair.

    Args:
        names: of its models.
        debate: their debates.
        singles: outcomes of the models alone, by name; further ones are ignored.
    """
    dynamics = debate.summary.dynamics
    judge = {name: dynamics.get(name, 0) for name in JUDGE}
    cell = PairCell(**debate.cell(names), **judge, dynamics=dynamics)
    alone = {name: singles[name] for name in names if name in singles}
    common = _common([debate, *alone.values()])
    if len(alone) < 2 or not common:
        return cell
    found, wrong = _together(alone, common)
    gain = compare_paired([alone[found.best].scores[key] for key in common], [debate.scores[key] for key in common])
    return cell.model_copy(
        update={
            "better": found.best,
            "gain": gain.difference.estimate,
            "gain_interval": Interval.of(gain.difference),
            "p_value": gain.p_value,
            "oracle": found.oracle,
            "complementarity": found.oracle - found.accuracy[found.best],
            "exactly_one": found.exactly_one,
            "both_right": found.all_right,
            "unanimous_wrong": wrong,
        }
    )


def ensemble_of(singles: Mapping[str, Outcome]) -> Ensemble | None:
    """Return what all models have right together; None when no example is common to them."""
    common = _common(list(singles.values()))
    if not common:
        return None
    found, wrong = _together(singles, common)
    return Ensemble(
        n=found.n,
        best=found.best,
        accuracy=found.accuracy[found.best],
        oracle=found.oracle,
        complementarity=found.oracle - found.accuracy[found.best],
        exactly_one=found.exactly_one,
        all_right=found.all_right,
        none_right=found.none_right,
        unanimous_wrong=wrong,
    )


def _common(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the examples that all runs have, in the first one's order."""
    if not outcomes:
        return []
    return [key for key in outcomes[0].scores if all(key in outcome.scores for outcome in outcomes)]


def _together(singles: Mapping[str, Outcome], common: Sequence[str]) -> tuple[Complementarity, float]:
    found = complementarity({name: [run.scores[key] for key in common] for name, run in singles.items()})
    answers = {name: [run.buckets.get(key) for key in common] for name, run in singles.items()}
    # What a model has right is the right answer; where none has, no answer is.
    gold = [
        next((run.buckets.get(key) for run in singles.values() if run.scores[key] == 1), None) or "" for key in common
    ]
    return found, unanimous_wrong(answers, gold)
