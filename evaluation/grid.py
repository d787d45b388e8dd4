"""Every pair of k models in debate, as one study that can be resumed: the pair grid.

After Debate for Equitable Cultural Alignment, which debates all 21 pairs of 7 models. The models alone stand on the
grid's diagonal. They run first, one after the other, and then the pairs: a first decision does not depend on the
partner, so that the debates are served the singles' replies from the cache and only pay for what comes after.

The folder of a grid holds `grid.json` (what it is), `summary.json` (what it came to) and one run folder a single and a
pair, under `singles/` and `pairs/`.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import dspy
from pydantic import BaseModel, ConfigDict, Field

from ..errors import BudgetExceededError, InputError, TownhallError
from ..programs.base import STRATEGIES, Strategy
from ..programs.debate_only import DebateOnly
from ..programs.single import Single
from ..signatures.transcript import Usage
from ..tasks.base import Example, SplitName, Task
from .assembly import program
from .budget import Budget
from .fingerprints import content_hash
from .grid_summary import JUDGE, GridSummary, Outcome, ensemble_of, pair_cell, single_cell
from .progress import Progress, Silent, State, automatic
from .provenance import describe, run_info
from .records import RunInfo, Status
from .run import RUNS, evaluate
from .run_folder import LOCK, RUN, SUMMARY, Run, load_run, lock_folder, read_model, write_model

__all__ = ["Grid", "GridInfo", "GridSummary", "load_grid", "planned_calls", "run_grid"]

GRID = "grid.json"
FORMAT_VERSION = 1
#: Characters of a model's name that a folder's name keeps.
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class GridInfo(BaseModel):
    """What a grid is (`grid.json`). It holds no key and no credential.

    Attributes:
        format_version: of the grid folder.
        models: each model by its name, described.
        judge_model: the judge's; None for each pair's first model.
        study: what the pairs have in common but for their models.
        exchange: calls that a pair makes for an example after the first decisions and before the judge.
        twins: pairs whose models have the same model name, so that samples of the second one are its own there.
        runs: folders of the runs by their models' names, joined by " + ".
    """

    model_config = ConfigDict(extra="ignore")

    format_version: int = FORMAT_VERSION
    models: dict[str, dict[str, Any]]
    judge_model: dict[str, Any] | None = None
    study: RunInfo
    exchange: int
    twins: list[list[str]] = Field(default_factory=list)
    runs: dict[str, str] = Field(default_factory=dict)

    def identity(self) -> dict[str, Any]:
        """Return what makes two starts the same grid."""
        return {"models": list(self.models.items()), "judge": self.judge_model, "study": self.study.identity()}

    def differences(self, other: GridInfo) -> list[str]:
        """Return what differs from another grid, one "name: ours, not theirs" each."""
        if list(self.models) != list(other.models):
            return [f"models: {', '.join(self.models)}, not {', '.join(other.models)}"]
        found = []
        everyone = [(f"model {name}", model, other.models[name]) for name, model in self.models.items()]
        for who, mine, theirs in [*everyone, ("judge", self.judge_model or {}, other.judge_model or {})]:
            keys = [key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)]
            found += [f"{who}, {key}: {mine.get(key)}, not {theirs.get(key)}" for key in keys]
        return found + self.study.differences(other.study)


@dataclass(frozen=True)
class Grid:
    """A pair grid.

    Attributes:
        folder: where it is kept.
        info: what it is.
        summary: what it came to.
    """

    folder: Path
    info: GridInfo
    summary: GridSummary

    def run(self, *models: str) -> Run:
        """Return the run of one model, or of two in debate, with its records.

        Raises:
            InputError: when there is none.
        """
        for names in itertools.permutations(models):
            if folder := self.info.runs.get(" + ".join(names)):
                return load_run(self.folder / folder)
        raise InputError(f"the grid has no run of {' and '.join(models)}. Its models: {', '.join(self.info.models)}")


def planned_calls(
    models: int, examples: int, exchange: int, judged: int = 0, *, twins: int = 0, reflections: int = 0
) -> int:
    """Return how many model calls a grid pays for, starting with an empty cache.

    With k models, n examples and p = k (k - 1) / 2 pairs, a grid makes

        k n  +  p n e  +  J

    calls. One first decision a model and example, which the model's run alone and its k - 1 debates share. Then e calls
    a pair and example for the exchange: e = 4 (R - 1) for `debate-only` with R rounds (two feedbacks, two decisions),
    and e = 6 (R - 1) for `reflect-or-debate` (two choices, two moves, two decisions). And J calls of the judge: one for
    each debate whose last answers differ, where adjudication is "judge". Without sharing, first decisions alone would
    be k n + 2 p n = k^2 n calls: 49 an example for 7 models, instead of 7.

    With `reflect-or-debate` it is S less: a model's reflection on its first answer does not depend on the partner
    either, so that all its debates of an example in which it chooses to reflect share one; S counts the others.

    It is exact when every reply can be read and no two further requests are the same. A reply that cannot be read is
    asked for once more. Equal requests are paid for once, unless they are under way at the same moment: examples that
    read the same; partners that say the very same (likely without a chain of thought); at temperature 0, an agent that
    reads the very same in a later round.
    `stop_when_unanimous` spares exchanges. Where two models have the same name (one model at two temperatures), the
    second one's samples in their debate are its own: n more a such pair.

    Args:
        models: k.
        examples: n.
        exchange: e.
        judged: J; at most p n.
        twins: pairs whose models have the same name.
        reflections: S.
    """
    pairs = models * (models - 1) // 2
    return examples * (models + twins + pairs * exchange) + judged - reflections


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
    names = list(lms)
    chosen = list(examples) if examples is not None else task.split(split, limit=limit, order=order, seed=seed)
    chosen = list({example.fingerprint: example for example in chosen}.values())
    if not chosen:
        raise InputError("there are no examples to run")
    programs: dict[tuple[str, ...], Strategy] = {(name,): _alone(base, lms[name]) for name in names}
    for one, other in itertools.combinations(names, 2):
        programs[one, other] = base.reconfigured().with_models([lms[one], lms[other]], judge_lm)
    pairs = [pair for models, pair in programs.items() if len(models) == 2]
    study = run_info(
        pairs[0],
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
        twins=[list(models) for models, pair in programs.items() if len(models) == 2 and pair.sample_of(1)],
        runs=_folders(names),
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


def load_grid(path: Path | str) -> Grid:
    """Read a grid from its folder. A grid without a summary (still running, or killed) gets one made from its runs.

    Raises:
        InputError: when there is no grid, or a file is damaged; the text names the file.
    """
    folder = Path(path)
    info = read_info(folder)
    if (folder / SUMMARY).exists():
        return Grid(folder, info, read_model(folder / SUMMARY, GridSummary))
    outcomes = _outcomes(folder, info)
    reason = "the grid has not ended; start it again to finish it"
    return Grid(folder, info, summarise(info, outcomes, status="interrupted", reason=reason))


def is_grid(folder: Path) -> bool:
    """Return whether a folder holds a grid."""
    return (folder / GRID).is_file()


def read_info(folder: Path) -> GridInfo:
    """Read `grid.json`.

    Raises:
        InputError: when it is missing, damaged or of a later version.
    """
    if not is_grid(folder):
        what = "no such folder" if not folder.exists() else f"not the folder of a grid (it has no {GRID})"
        raise InputError(f"{folder}: {what}")
    info = read_model(folder / GRID, GridInfo)
    if info.format_version > FORMAT_VERSION:
        raise InputError(
            f"{folder / GRID}: format version {info.format_version} is later than this townhall's {FORMAT_VERSION}; "
            "update it"
        )
    return info


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


def _alone(base: DebateOnly, lm: dspy.LM) -> Single:
    """Return the debate's first decision as a program: the same words at the same temperature, so the same replies."""
    config = base.config
    single = Single(
        answer=base.answer_type,
        lms=[lm],
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


def _folders(names: Sequence[str]) -> dict[str, str]:
    """Return each run's folder; a model's name is no path, whatever is in it."""
    short: dict[str, str] = {}
    for name in names:
        slug = _UNSAFE.sub("-", name).strip(".-")[:40] or "model"
        taken = [known.casefold() for known in short.values()]
        short[name] = slug if slug.casefold() not in taken else f"{slug}-{len(short) + 1}"
    alone = {name: f"singles/{slug}" for name, slug in short.items()}
    pairs = itertools.combinations(names, 2)
    return alone | {f"{one} + {other}": f"pairs/{short[one]}+{short[other]}" for one, other in pairs}


@dataclass
class _Study:
    """One start of a grid."""

    path: Path
    info: GridInfo
    task: Task
    programs: dict[tuple[str, ...], Strategy]
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
            for number, (models, debaters) in enumerate(self.programs.items(), start=1):
                run = self._one(number, models, debaters)
                outcomes[models] = Outcome.of(self._folder(models), run)
                if run.summary.status == "stopped":
                    return self._write(outcomes, "stopped", run.summary.reason)
        except BudgetExceededError as error:
            return self._write(outcomes, "stopped", str(error))
        except KeyboardInterrupt:
            self._write(outcomes, "interrupted", "interrupted; the same command goes on from here")
            raise
        except TownhallError as error:
            self._write(outcomes, "failed", str(error))
            raise
        return self._write(outcomes, "complete", None)

    def _folder(self, models: tuple[str, ...]) -> str:
        return self.info.runs[" + ".join(models)]

    def _one(self, number: int, models: tuple[str, ...], debaters: Strategy) -> Run:
        folder = self.path / self._folder(models)
        title = f"{' + '.join(models)} ({number} of {len(self.programs)})"
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
        others = [self.path / name for name in self.info.runs.values() if self.path / name != folder]
        spent = sum((load_run(other).usage for other in others if (other / RUN).exists()), Usage())
        try:
            return self.budget.minus(spent)
        except BudgetExceededError:
            if _is_finished(folder):
                return Budget()
            raise

    def _write(self, outcomes: dict[tuple[str, ...], Outcome], status: Status, reason: str | None) -> GridSummary:
        found = {**_outcomes(self.path, self.info, known=outcomes), **outcomes}
        summary = summarise(self.info, found, status=status, reason=reason)
        write_model(self.path / SUMMARY, summary, sync=False)
        return summary


def _is_finished(folder: Path) -> bool:
    if not (folder / SUMMARY).exists():
        return False
    summary = load_run(folder).summary
    return summary.status == "complete" and not summary.failed


def _outcomes(
    path: Path, info: GridInfo, known: Mapping[tuple[str, ...], Outcome] | None = None
) -> dict[tuple[str, ...], Outcome]:
    """Return the outcomes of the runs on the disk that are not known already."""
    found = {}
    for joined, folder in info.runs.items():
        models = _split(joined, info)
        if models not in (known or {}) and (path / folder / RUN).exists():
            found[models] = Outcome.of(folder, load_run(path / folder))
    return found


def _split(joined: str, info: GridInfo) -> tuple[str, ...]:
    """Return the models that a key of `GridInfo.runs` names; a name may have a " + " in it itself."""
    if joined in info.models:
        return (joined,)
    return next(pair for pair in itertools.combinations(info.models, 2) if " + ".join(pair) == joined)


def summarise(
    info: GridInfo, outcomes: Mapping[tuple[str, ...], Outcome], *, status: Status, reason: str | None = None
) -> GridSummary:
    """Return a grid's summary.

    Args:
        info: what the grid is.
        outcomes: of the runs that have records, by their models' names.
        status: how it ended.
        reason: why it is not complete.
    """
    # In the grid's order, whatever order the runs were read in.
    singles = {name: outcomes[name,] for name in info.models if (name,) in outcomes}
    couples = [pair for pair in itertools.combinations(info.models, 2) if pair in outcomes]
    pairs = [pair_cell((one, other), outcomes[one, other], singles) for one, other in couples]
    cells = [*(single_cell(name, outcome) for name, outcome in singles.items()), *pairs]
    summaries = [outcome.summary for outcome in outcomes.values()]
    judge = {name: sum(getattr(cell, name) for cell in pairs) for name in JUDGE}
    study = info.study
    return GridSummary(
        task=study.task,
        strategy=study.strategy,
        models=list(info.models),
        n=study.n,
        status=status,
        reason=reason,
        primary=next((summary.primary for summary in summaries), "accuracy"),
        by=next((summary.by for summary in summaries), None),
        singles=cells[: len(singles)],
        pairs=pairs,
        ensemble=ensemble_of(singles) if len(singles) == len(info.models) else None,
        **judge,
        usage=sum((cell.usage for cell in cells), Usage()),
        planned_calls=planned_calls(
            len(info.models),
            study.n,
            info.exchange,
            judge["judged"],
            twins=len(info.twins),
            reflections=_shared_reflections(info, outcomes),
        ),
        seconds=sum(cell.seconds for cell in cells),
        simulated=any(summary.simulated for summary in summaries),
    )


def _shared_reflections(info: GridInfo, outcomes: Mapping[tuple[str, ...], Outcome]) -> int:
    """Return how many reflections on first answers are those of another debate of the model."""
    made = [
        (example, models[agent], agent == 1 and list(models) in info.twins)
        for models, outcome in outcomes.items()
        for example, agent in outcome.reflections
    ]
    return len(made) - len(set(made))


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
