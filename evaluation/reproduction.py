"""Published experiments: what was run, what came out, and the same with a model of one's own beside it.

A paper is a file in `papers/`: its experiments, each with the arms that are compared and the figures that were
published. A new one is one new file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..errors import InputError
from ..registry import nearest
from ..signatures.transcript import Usage
from .budget import Budget
from .comparison import compare
from .run_folder import Run, load_run

if TYPE_CHECKING:
    import dspy

    from ..tasks.base import Task

PAPERS = Path(__file__).with_name("papers")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Arm(_Strict):
    """One of the programs that an experiment compares.

    Attributes:
        strategy: its name.
        settings: of the strategy.
        task_options: options of the task that only this arm has.
    """

    strategy: str
    settings: dict[str, Any] = Field(default_factory=dict)
    task_options: dict[str, Any] = Field(default_factory=dict)


class Figure(_Strict):
    """Published scores of one arm with one model.

    Attributes:
        model: as the paper calls it.
        arm: whose scores they are.
        over: the arm that they are the gain over; None for scores as such.
        percent, fraction, pawns: the scores by name, in this unit.
        plus_minus: the spread that the paper states, in the same unit.
        approximate: read off a plot.
    """

    model: str
    arm: str
    over: str | None = None
    percent: dict[str, float] = Field(default_factory=dict)
    fraction: dict[str, float] = Field(default_factory=dict)
    pawns: dict[str, float] = Field(default_factory=dict)
    plus_minus: dict[str, float] = Field(default_factory=dict)
    approximate: bool = False

    @property
    def scores(self) -> dict[str, float]:
        """The scores in the unit that runs have: fractions, or pawns."""
        return {**{name: value / 100 for name, value in self.percent.items()}, **self.fraction, **self.pawns}

    @property
    def spreads(self) -> dict[str, float]:
        """What is stated as ±, in the unit that runs have."""
        return {name: value / 100 if name in self.percent else value for name, value in self.plus_minus.items()}


class Experiment(_Strict):
    """What was run, and what was published of it.

    Attributes:
        title: what is compared.
        where: its place in the paper.
        task: name of the task.
        data: where its examples come from; None for the task's own.
        task_options: options of the task.
        split: which examples.
        order: a fixed shuffle, or the source's order.
        limit: how many examples at most; None for all.
        arms: the programs that are compared, by name.
        figures: what was published.
        notes: what one should know.
    """

    title: str
    where: str
    task: str
    data: str | None = None
    task_options: dict[str, Any] = Field(default_factory=dict)
    split: Literal["train", "dev", "test", "all"] = "all"
    order: Literal["shuffled", "file"] = "shuffled"
    limit: int | None = None
    arms: dict[str, Arm]
    figures: list[Figure]
    notes: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _knows_its_arms(self) -> Experiment:
        for figure in self.figures:
            for name in (figure.arm, figure.over):
                if name is not None and name not in self.arms:
                    raise ValueError(f"a figure is of the arm '{name}', which the experiment does not have")
        return self

    @property
    def models(self) -> list[str]:
        """The models of the figures, each once."""
        return list(dict.fromkeys(figure.model for figure in self.figures))


class Paper(_Strict):
    """A paper and its experiments, by name."""

    title: str
    arxiv: str
    experiments: dict[str, Experiment]


@cache
def papers() -> dict[str, Paper]:
    """Return the papers by name."""
    return {
        file.stem: Paper.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
        for file in sorted(PAPERS.glob("*.yaml"))
    }


def experiment(name: str) -> tuple[Paper, Experiment]:
    """Return an experiment by its name, PAPER/EXPERIMENT.

    Raises:
        InputError: when there is none.
    """
    known = [f"{paper}/{one}" for paper, found in papers().items() for one in found.experiments]
    if name not in known:
        raise InputError(f"no experiment '{name}'.{nearest(name, known)} `townhall reproduce` lists them")
    paper, _, one = name.partition("/")
    return papers()[paper], papers()[paper].experiments[one]


@dataclass(frozen=True)
class Row:
    """A published score beside ours.

    Attributes:
        arm: the program.
        over: the arm that both are the gain over; None for scores as such.
        score: its name.
        model: the published one's; "" where nothing was published.
        published: None where nothing was.
        spread: what the paper states as ±; None where it states nothing.
        approximate: read off a plot.
        ours: None where the arm has not been run, or the score has nothing in its denominator.
        low, high: ends of our 95 % interval; None where there is none.
        n: examples of ours.
    """

    arm: str
    score: str
    model: str = ""
    over: str | None = None
    published: float | None = None
    spread: float | None = None
    approximate: bool = False
    ours: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0


@dataclass(frozen=True)
class Reproduction:
    """An experiment with the runs of its arms that are there.

    Attributes:
        name: PAPER/EXPERIMENT.
        paper: the paper.
        experiment: the experiment.
        folder: where the runs are.
        runs: by arm.
        stopped: why not all arms that were asked for are complete; None when they are.
    """

    name: str
    paper: Paper
    experiment: Experiment
    folder: Path
    runs: Mapping[str, Run] = field(default_factory=dict)
    stopped: str | None = None

    @property
    def rows(self) -> list[Row]:
        """Every published score with ours beside it, then the arms of which none was published."""
        made = [self._row(figure, name) for figure in self.experiment.figures for name in figure.scores]
        shown = {row.arm for row in made if row.over is None}
        for arm, run in self.runs.items():
            if arm not in shown:
                made.append(self._ours(Row(arm, run.summary.primary)))
        return made

    @property
    def usage(self) -> Usage:
        """What all its runs took."""
        return sum((run.usage for run in self.runs.values()), Usage())

    @property
    def simulated(self) -> bool:
        """Whether some model was simulated, so that our figures say nothing."""
        return any(run.summary.simulated for run in self.runs.values())

    def _row(self, figure: Figure, name: str) -> Row:
        return self._ours(
            Row(
                arm=figure.arm,
                score=name,
                model=figure.model,
                over=figure.over,
                published=figure.scores[name],
                spread=figure.spreads.get(name),
                approximate=figure.approximate,
            )
        )

    def _ours(self, row: Row) -> Row:
        run = self.runs.get(row.arm)
        if run is None:
            return row
        if row.over is None:
            found = run.summary.intervals.get(row.score)
            bounds = (found.low, found.high) if found is not None else (None, None)
            return replace(row, ours=run.scores.get(row.score), low=bounds[0], high=bounds[1], n=run.summary.n)
        base = self.runs.get(row.over)
        if base is None or row.score != run.summary.primary or not (base.records and run.records):
            return row
        result = compare(base, run).pairs[0].result
        gain = result.difference
        return replace(row, ours=gain.estimate, low=gain.low, high=gain.high, n=result.n)


def read_reproduction(name: str, folder: Path | str | None = None) -> Reproduction:
    """Return an experiment with the runs of its arms that are in the folder, finished or not.

    Raises:
        InputError: when there is no such experiment, or a run cannot be read.
    """
    paper, found = experiment(name)
    where = Path(folder) if folder is not None else default_folder(name)
    there = {arm: where / slug(arm) for arm in found.arms}
    runs = {arm: load_run(path) for arm, path in there.items() if (path / "run.json").exists()}
    return Reproduction(name, paper, found, where, runs)


def reproduce(
    name: str,
    *,
    arms: Sequence[str] = (),
    data: str | None = None,
    task_options: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    limit: int | None = None,
    lms: Sequence[dspy.LM] = (),
    judge_lm: dspy.LM | None = None,
    lm: dspy.LM | None = None,
    adapter: dspy.Adapter | None = None,
    concurrency: int | None = None,
    budget: Budget | None = None,
    out: Path | str | None = None,
    progress: bool = False,
    ready: Callable[[Task], None] | None = None,
) -> Reproduction:
    """Run the arms of a published experiment, and return its figures with ours beside them.

    Each arm is a run of its own, resumed like any other: what is finished is not asked again.

    Args:
        name: PAPER/EXPERIMENT, see `papers`.
        arms: only these; all of them when empty.
        data: where examples come from; the experiment's own source when None.
        task_options: options of the task that override the experiment's.
        settings: settings that override every arm's, such as `temperature`.
        limit: at most so many examples; the experiment's own number when None.
        lms: models of the agents, in turn, where they differ.
        judge_lm: the judge's.
        lm: the model of all that have none of their own.
        adapter: how fields become messages.
        concurrency: model calls in flight at most.
        budget: of all arms together, earlier starts included. When it is used up, the rest is left out.
        out: the folder of the runs; `runs/reproduce/NAME` when None.
        progress: show how far it is.
        ready: called with each arm's task before it is run, to give it what its scoring needs.

    Raises:
        InputError: for an unknown experiment or arm, or bad data.
    """
    from ..tasks.access import task as open_task
    from .assembly import program
    from .run import evaluate

    _, found = experiment(name)
    for arm in arms:
        if arm not in found.arms:
            hint = nearest(arm, list(found.arms))
            raise InputError(f"{name} has no arm '{arm}'.{hint} Its arms: {'; '.join(found.arms)}")
    folder = Path(out) if out is not None else default_folder(name)
    budget, used, stopped = budget or Budget(), Usage(), None
    for arm in arms or found.arms:
        if (stopped := budget.reached(used)) is not None:
            break
        chosen = found.arms[arm]
        source = open_task(
            found.task,
            data or found.data,
            **{**found.task_options, **chosen.task_options, **(task_options or {})},
        )
        if ready is not None:
            ready(source)
        run = evaluate(
            program(source, chosen.strategy, lms=lms, judge_lm=judge_lm, **{**chosen.settings, **(settings or {})}),
            source,
            split=found.split,
            order=found.order,
            limit=limit or found.limit,
            out=folder / slug(arm),
            lm=lm,
            adapter=adapter,
            concurrency=concurrency,
            budget=budget.minus(used),
            progress=progress,
        )
        used += run.usage
        if run.summary.status != "complete":
            stopped = budget.reached(used) or run.summary.reason or run.summary.status
            break
    return replace(read_reproduction(name, folder), stopped=stopped)


def default_folder(name: str) -> Path:
    """Return where an experiment's runs are when no folder is named."""
    return Path("runs") / "reproduce" / name.replace("/", "-")


def slug(arm: str) -> str:
    """Return an arm's name as the name of a folder."""
    return "-".join("".join(letter if letter.isalnum() else " " for letter in arm).split())
