"""The folder of a pair grid: what it is, its runs, and the summary that is made from them.

It holds `grid.json` (what it is), `summary.json` (what it came to) and one run folder a single and a pair, under
`singles/` and `pairs/`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ..errors import InputError
from ..signatures.transcript import Usage
from .grid_summary import JUDGE, GridSummary, Outcome, ensemble_of, pair_cell, single_cell
from .records import RunInfo, Status
from .run_folder import RUN, SUMMARY, Run, load_run, read_model

GRID = "grid.json"
FORMAT_VERSION = 1
#: Characters of a model's name that a folder's name keeps.
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class GridRun(BaseModel):
    """One run of a grid: its models' names, one or two, and its folder, seen from the grid's."""

    models: list[str]
    folder: str


class GridInfo(BaseModel):
    """What a grid is (`grid.json`). It holds no key and no credential.

    Attributes:
        format_version: of the grid folder.
        models: each model by its name, described.
        judge_model: the judge's; None for each pair's first model.
        study: what the pairs have in common but for their models.
        exchange: calls that a pair makes for an example after the first decisions and before the judge.
        twins: pairs whose models have the same model name, so that samples of the second one are its own there.
        runs: the models alone, then the pairs, in the order in which they are run.
    """

    model_config = ConfigDict(extra="ignore")

    format_version: int = FORMAT_VERSION
    models: dict[str, dict[str, Any]]
    judge_model: dict[str, Any] | None = None
    study: RunInfo
    exchange: int
    twins: list[list[str]] = Field(default_factory=list)
    runs: list[GridRun] = Field(default_factory=list)

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
        for run in self.info.runs:
            if sorted(run.models) == sorted(models):
                return load_run(self.folder / run.folder)
        raise InputError(f"the grid has no run of {' and '.join(models)}. Its models: {', '.join(self.info.models)}")


def load_grid(path: Path | str) -> Grid:
    """Read a grid from its folder. A grid without a summary (still running, or killed) gets one made from its runs.

    Raises:
        InputError: when there is no grid, or a file is damaged; the text names the file.
    """
    folder = Path(path)
    info = read_info(folder)
    if (folder / SUMMARY).exists():
        return Grid(folder, info, read_model(folder / SUMMARY, GridSummary))
    outcomes = outcomes_of(folder, info)
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


# -- from runs to a summary -------------------------------------------------------------------------------------------


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


def outcomes_of(
    path: Path, info: GridInfo, known: Mapping[tuple[str, ...], Outcome] | None = None
) -> dict[tuple[str, ...], Outcome]:
    """Return the outcomes of a grid's runs: those that are known, and those that are read from the disk.

    Args:
        path: the grid's folder.
        info: what the grid is.
        known: outcomes by the models' names; they are not read again.
    """
    found = dict(known or {})
    for run in info.runs:
        if tuple(run.models) not in found and (path / run.folder / RUN).exists():
            found[tuple(run.models)] = Outcome.of(run.folder, load_run(path / run.folder))
    return found


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


def runs_of(names: Sequence[str]) -> list[GridRun]:
    """Return the runs of a grid of these models; a model's name is no path, whatever is in it."""
    short: dict[str, str] = {}
    for name in names:
        slug = _UNSAFE.sub("-", name).strip(".-")[:40] or "model"
        taken = [known.casefold() for known in short.values()]
        short[name] = slug if slug.casefold() not in taken else f"{slug}-{len(short) + 1}"
    alone = [GridRun(models=[name], folder=f"singles/{slug}") for name, slug in short.items()]
    pairs = [
        GridRun(models=[one, other], folder=f"pairs/{short[one]}+{short[other]}")
        for one, other in itertools.combinations(names, 2)
    ]
    return alone + pairs
