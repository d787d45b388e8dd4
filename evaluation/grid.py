"""Every pair of k models in debate, as one study that can be resumed: the pair grid.

After Debate for Equitable Cultural Alignment, which debates all 21 pairs of 7 models. The models alone stand on the
grid's diagonal. They run first, one after the other, and then the pairs: a first decision does not depend on the
partner, so that the debates are served the singles' replies from the cache and only pay for what comes after.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import dspy

from ..errors import BudgetExceededError, InputError, TownhallError
from ..programs.base import STRATEGIES, Strategy
from ..programs.debate_only import DebateOnly
from ..programs.single import Single
from ..signatures.transcript import Usage
from ..tasks.base import Example, SplitName, Task
from .assembly import program
from .budget import Budget
from .fingerprints import content_hash
from .grid_folder import (
    GRID,
    Grid,
    GridInfo,
    GridRun,
    is_grid,
    load_grid,
    outcomes_of,
    planned_calls,
    read_info,
    runs_of,
    summarise,
)
from .grid_summary import GridSummary, Outcome
from .progress import Progress, Silent, State, automatic
from .provenance import describe, run_info
from .records import Status
from .run import RUNS, evaluate
from .run_folder import LOCK, RUN, SUMMARY, Run, load_run, lock_folder, read_model, write_model
from .scoring import group_of

__all__ = ["Grid", "GridInfo", "GridSummary", "load_grid", "planned_calls", "run_grid"]


def run_grid(
    task: Task,
    lms: Mapping[str, dspy.LM],
    strategy: str | Strategy = "debate-only",
    *,
    judge_lm: dspy.LM | None = None,
    settings: Mapping[str, Any] | None = None,
    split: SplitName | Literal["all"] = "dev",
    limit: int | None = None,
    order: Literal["shuffled", "file"] = "shuffled",
    seed: int = 0,
    examples: Sequence[Example] | None = None,
    out: Path | str | None = None,
    adapter: dspy.Adapter | None = None,
    concurrency: int | None = None,
    budget: Budget | None = None,
    by: str | None = None,
    progress: Progress | bool | None = None,
) -> Grid:
    """Run each model alone and every pair of models in debate, over the same examples.

    The same call again resumes a grid that was stopped, interrupted or killed; no call whose reply was received is paid
    again. A finished grid is returned as it is. How many calls it takes: see `planned_calls`.

    Args:
        task: gives the examples and scores the answers.
        lms: the models by name; the order decides which agent of a pair is the first.
        strategy: of the pairs: `debate-only`, `reflect-or-debate`, or a tuned program of one of these.
        judge_lm: the judge's model; None for each pair's first model.
        settings: the strategy's settings. The models alone have those of the first decision.
        split: which examples, as the next four; see `evaluate`.
        limit: see `evaluate`.
        order: see `evaluate`.
        seed: of the shuffle.
        examples: these instead of a split.
        out: the grid's folder; `runs/TASK-grid-STRATEGY-HASH` when None, the hash being the configuration's.
        adapter: see `evaluate`.
        concurrency: see `evaluate`.
        budget: limits on the whole grid's calls, tokens or cost. When one is reached the grid ends with the status
            "stopped".
        by: a field to group the scores by; the task's `default_by` when None.
        progress: see `evaluate`.

    Returns:
        the grid; its summary says whether it is complete.

    Raises:
        InputError: for bad input, fewer than two models, models that are one and the same or keep no replies, a
            strategy that is not one of two agents, or a folder that cannot be written or holds another grid.
        RunError: when a model cannot be used at all, or the disk fails. What was recorded is kept.
        KeyboardInterrupt: likewise, with the status "interrupted".
    """
    base = _strategy(task, strategy, settings or {})
    _check_models(lms)
    chosen = list(examples) if examples is not None else task.split(split, limit=limit, order=order, seed=seed)
    chosen = list({example.fingerprint: example for example in chosen}.values())
    if not chosen:
        raise InputError("there are no examples to run")
    if by:
        for example in chosen:
            group_of(example.meta, by, f"example '{example.id}'")
    runs = runs_of(list(lms))
    programs = [_program(base, [lms[name] for name in run.models], judge_lm) for run in runs]
    study = run_info(
        programs[-1],
        task,
        chosen,
        given=examples is not None,
        split=split if examples is None else "given",
        order=order,
        limit=None if examples is not None else limit,
        seed=seed,
        lm=None,
        adapter=adapter,
        concurrency=1,
        match=None,
    )
    info = GridInfo(
        models={name: describe(model) for name, model in lms.items()},
        judge_model=describe(judge_lm) if judge_lm is not None else None,
        study=study.model_copy(update={"models": [], "judge_model": None}),
        exchange=_exchange(base),
        twins=[
            run.models for run, made in zip(runs, programs, strict=True) if len(run.models) == 2 and made.sample_of(1)
        ],
        runs=runs,
    )
    path = Path(out) if out is not None else RUNS / f"{task.name}-grid-{base.name}-{content_hash(info.identity())[:8]}"
    shared: dict[str, Any] = {"adapter": adapter, "concurrency": concurrency, "by": by}
    shared |= (
        {"examples": chosen} if examples is not None else {"split": split, "limit": limit, "order": order, "seed": seed}
    )
    with lock_folder(path, "grid"):
        _open(path, info)
        if (known := _finished(path, info, by or task.default_by)) is not None:
            return known
        shown: Progress = Silent() if not progress else automatic() if progress is True else progress
        study_run = _Study(path, info, task, programs, budget or Budget(), shared, shown)
        return Grid(path, info, study_run.run())


# -- what is run -----------------------------------------------------------------------------------------------------


def _strategy(task: Task, strategy: str | Strategy, settings: Mapping[str, Any]) -> DebateOnly:
    if isinstance(strategy, str):
        kinds = [name for name, kind in STRATEGIES if issubclass(kind, DebateOnly)]
        if strategy not in kinds and issubclass(STRATEGIES.get(strategy), Strategy):
            raise InputError(f"a grid needs a debate of two agents ({', '.join(kinds)}); '{strategy}' is none")
        return cast(DebateOnly, program(task, strategy, **settings))
    if not isinstance(strategy, DebateOnly):
        raise InputError(f"a grid needs a debate of two agents; '{strategy.name}' is none")
    return strategy.reconfigured(**settings)


def _check_models(lms: Mapping[str, dspy.LM]) -> None:
    if len(lms) < 2:
        raise InputError(f"a grid needs at least two models, and {len(lms) or 'none'} {'is' if lms else 'are'} given")
    seen: dict[str, str] = {}
    for name, model in lms.items():
        if not getattr(model, "cache", True):
            raise InputError(f"the model '{name}' keeps no replies (cache=False): its first decisions cannot be shared")
        what = json.dumps([model.model, model.kwargs], sort_keys=True, default=str)
        if what in seen:
            raise InputError(
                f"'{seen[what]}' and '{name}' are the same model with the same settings ({model.model}); a grid pairs "
                "different ones"
            )
        seen[what] = name


def _program(base: DebateOnly, lms: Sequence[dspy.LM], judge_lm: dspy.LM | None) -> Strategy:
    """Return the debate of two models, or what one of them does alone.

    That is the debate's first decision: the same words at the same temperature, so that both get the same reply.
    """
    if len(lms) == 2:
        return base.reconfigured().with_models(lms, judge_lm)
    config = base.config
    single = Single(
        answer=base.answer_type,
        lms=lms,
        seed=config.seed,
        temperature=config.temperatures.get("decide", config.temperature),
        cot=config.cot,
        shots=config.shots,
    )
    single.solve = base.decide.deepcopy()
    return single


def _exchange(base: DebateOnly) -> int:
    """Return how many calls a debate makes between the first decisions and the judge."""
    return base.max_calls() - 2 - (base.config.adjudication == "judge")


@dataclass
class _Study:
    """One start of a grid."""

    path: Path
    info: GridInfo
    task: Task
    programs: Sequence[Strategy]
    budget: Budget
    shared: dict[str, Any]
    progress: Progress

    def run(self) -> GridSummary:
        """Do the runs that are not finished, one after the other, and write the summary.

        Raises:
            TownhallError: what a run ended with; what was done is written down.
            KeyboardInterrupt: likewise.
        """
        (self.path / SUMMARY).unlink(missing_ok=True)
        outcomes: dict[tuple[str, ...], Outcome] = {}
        try:
            for number, (run, debaters) in enumerate(zip(self.info.runs, self.programs, strict=True), start=1):
                done = self._one(number, run, debaters)
                outcomes[tuple(run.models)] = Outcome.of(run.folder, done)
                if done.summary.status == "stopped":
                    return self._write(outcomes, "stopped", done.summary.reason)
        except BudgetExceededError as error:
            return self._write(outcomes, "stopped", str(error))
        except KeyboardInterrupt:
            self._write(outcomes, "interrupted", "interrupted; the same command goes on from here")
            raise
        except TownhallError as error:
            self._write(outcomes, "failed", str(error))
            raise
        return self._write(outcomes, "complete", None)

    def _one(self, number: int, run: GridRun, debaters: Strategy) -> Run:
        folder = self.path / run.folder
        title = f"{' + '.join(run.models)} ({number} of {len(self.programs)})"
        return evaluate(
            debaters,
            self.task,
            out=folder,
            budget=self._left(folder),
            progress=_Titled(self.progress, f"{self.task.name}, {title}"),
            **self.shared,
        )

    def _left(self, folder: Path) -> Budget:
        """Return a run's share of the budget: all that the others have not used.

        Raises:
            BudgetExceededError: when they have used everything and the run is not finished.
        """
        if self.budget == Budget():
            return self.budget
        others = [self.path / run.folder for run in self.info.runs if self.path / run.folder != folder]
        spent = sum((load_run(other).usage for other in others if (other / RUN).exists()), Usage())
        try:
            return self.budget.minus(spent)
        except BudgetExceededError:
            if _is_finished(folder):
                return Budget()
            raise

    def _write(self, outcomes: dict[tuple[str, ...], Outcome], status: Status, reason: str | None) -> GridSummary:
        summary = summarise(self.info, outcomes_of(self.path, self.info, outcomes), status=status, reason=reason)
        write_model(self.path / SUMMARY, summary, sync=False)
        return summary


def _is_finished(folder: Path) -> bool:
    if not (folder / SUMMARY).exists():
        return False
    summary = load_run(folder).summary
    return summary.status == "complete" and not summary.failed


class _Titled:
    """Shows a run under a title of the grid's."""

    def __init__(self, shown: Progress, title: str) -> None:
        self._shown = shown
        self._title = title

    def start(self, state: State) -> None:
        self._shown.start(replace(state, title=self._title))

    def update(self, state: State) -> None:
        self._shown.update(replace(state, title=self._title))

    def finish(self, state: State) -> None:
        self._shown.finish(replace(state, title=self._title))


# -- the folder ------------------------------------------------------------------------------------------------------


def _open(path: Path, info: GridInfo) -> None:
    """Check that a grid may be kept here, and write down what it is."""
    if not is_grid(path):
        others = sorted(item.name for item in path.iterdir() if item.name != LOCK)
        if others:
            raise InputError(f"{path}: has files but is no grid's folder ('{others[0]}'); name another --out")
        write_model(path / GRID, info, sync=True)
        return
    if different := info.differences(read_info(path)):
        more = f" (and {len(different) - 3} more)" if len(different) > 3 else ""
        raise InputError(
            f"{path} holds a grid with other settings: {'; '.join(different[:3])}{more}. Name another --out; what is "
            "paid for already comes from the cache there too"
        )


def _finished(path: Path, info: GridInfo, by: str | None) -> Grid | None:
    """Return the grid when there is nothing left to do."""
    if not (path / SUMMARY).exists():
        return None
    summary = read_model(path / SUMMARY, GridSummary)
    failed = any(cell.failed for cell in (*summary.singles, *summary.pairs))
    done = summary.status == "complete" and not failed and summary.by == by
    return Grid(path, info, summary) if done else None
