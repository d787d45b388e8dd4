"""Runs compared example by example: effect, interval, test, how many examples it takes, and what each run costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..metrics.parity import ParityChange, parity_change
from ..metrics.statistics import PairedComparison, compare_paired, holm
from ..signatures.transcript import Usage
from .records import Record
from .run_folder import Run, load_run
from .scoring import group_of

#: With more groups than this their parities are not compared one by one: too few examples each, and too many tests.
MOST_GROUPS = 20


@dataclass(frozen=True)
class Side:
    """One of the runs compared.

    Attributes:
        name: the run folder's name; with its parents where two runs have one name.
        folder: where it is.
        strategy: name of the strategy.
        models: the models' names.
        n: examples with a record.
        score: the task's main score over all of them.
        calls: mean model calls an example, as if nothing had come from the cache; likewise the next three.
        tokens: mean tokens sent and received.
        cost: mean US dollars; None when unknown.
        seconds: mean wall-clock seconds of an example in this run; replies from the cache take none.
        paid: what the run really paid for in all.
        failed: examples that failed; they score 0.
        simulated: some model is simulated.
        parity: mean parity of its groups; None where it is not grouped, or has nothing right.
        parity_min: the least of them.
    """

    name: str
    folder: str
    strategy: str
    models: list[str]
    n: int
    score: float | None
    calls: float
    tokens: float
    cost: float | None
    seconds: float
    paid: Usage
    failed: int
    simulated: bool
    parity: float | None = None
    parity_min: float | None = None


@dataclass(frozen=True)
class Pair:
    """A run compared with the first one, over the examples that both have.

    Attributes:
        first: name of the first run.
        second: name of the other.
        result: see `metrics.statistics.PairedComparison`; differences are the second's score minus the first's.
        p_adjusted: the p-value after Holm's correction for the number of comparisons.
        only_first: examples that only the first run has, left out.
        only_second: likewise.
        parity: each group's parity in both runs, where both are grouped by the same field, there are not too many
            groups, and both runs have something right.
    """

    first: str
    second: str
    result: PairedComparison
    p_adjusted: float
    only_first: int
    only_second: int
    parity: list[ParityChange] = field(default_factory=list)

    def __str__(self) -> str:
        found = self.result
        effect = found.difference
        need = (
            "no number of examples shows no difference"
            if found.needed is None
            else (f"a difference of this size takes {found.needed} examples to see")
        )
        return (
            f"{self.second} - {self.first}: {100 * effect.estimate:+.1f} points "
            f"[{100 * effect.low:+.1f}, {100 * effect.high:+.1f}], p = {self.p_adjusted:.3g} ({found.test}), "
            f"n = {found.n}; {need}"
        )


@dataclass(frozen=True)
class Comparison:
    """Two or more runs of one task.

    Attributes:
        task: name of the task.
        primary: the score that is compared.
        by: the field that all runs are grouped by; None for none.
        sides: the runs.
        pairs: each later run against the first.
        remarks: what a reader should know before believing the figures.
        simulated: some run has a simulated model.
    """

    task: str
    primary: str
    sides: list[Side]
    pairs: list[Pair]
    remarks: list[str] = field(default_factory=list)
    simulated: bool = False
    by: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as JSON data."""
        data = asdict(self)
        for side, mine in zip(data["sides"], self.sides, strict=True):
            side["paid"] = mine.paid.model_dump()
        return data


def compare(a: Run | Path | str, b: Run | Path | str, *more: Run | Path | str) -> Comparison:
    """Compare runs of one task with the first of them, example by example.

    Examples are paired by their content; failed and blank ones count as 0. With right/wrong scores the test is
    McNemar's, otherwise a paired permutation; the intervals are 95 %. Of several runs, p-values are corrected by Holm.
    Where the runs are grouped, each group's parity is compared too.

    Args:
        a: the run that the others are compared with; a run or its folder.
        b: another run.
        *more: further ones.

    Raises:
        InputError: when a folder holds no run, the runs are of different tasks or versions, the same run is named
            twice, or two runs have no example in common.
    """
    runs = [run if isinstance(run, Run) else load_run(run) for run in (a, b, *more)]
    first = runs[0]
    for run in runs[1:]:
        _check_comparable(first, run)
    folders = [run.folder.resolve() for run in runs]
    twice = next((folder for folder in folders if folders.count(folder) > 1), None)
    if twice is not None:
        raise InputError(f"{twice}: named twice; compare different runs")
    names = _names(runs)
    results: dict[str, tuple[PairedComparison, int, int]] = {}
    for name, run in zip(names[1:], runs[1:], strict=True):
        results[name] = _paired(first, run)
    adjusted = holm({name: result.p_value for name, (result, _, _) in results.items()})
    pairs = [
        Pair(names[0], name, result, adjusted[name], only_first, only_second, _parity(first, run))
        for run, (name, (result, only_first, only_second)) in zip(runs[1:], results.items(), strict=True)
    ]
    return Comparison(
        task=first.info.task,
        primary=first.summary.primary,
        sides=[_side(name, run) for name, run in zip(names, runs, strict=True)],
        pairs=pairs,
        remarks=_remarks(names, runs, pairs),
        simulated=any(run.summary.simulated for run in runs),
        by=first.summary.by if len({run.summary.by for run in runs}) == 1 else None,
    )


def _check_comparable(first: Run, run: Run) -> None:
    mine, other = first.info, run.info
    if mine.task != other.task:
        raise InputError(
            f"{run.folder} is a run of task '{other.task}', {first.folder} one of '{mine.task}'; they do not compare"
        )
    if mine.task_version != other.task_version:
        raise InputError(
            f"{run.folder} was scored by version {other.task_version} of task '{mine.task}', {first.folder} by version "
            f"{mine.task_version}; their figures do not compare. Run the older one again with --fresh"
        )


def _paired(first: Run, run: Run) -> tuple[PairedComparison, int, int]:
    mine, theirs = _scores(first), _scores(run)
    common = [fingerprint for fingerprint in mine if fingerprint in theirs]
    if not common:
        raise InputError(f"{first.folder} and {run.folder} have no example in common; compare runs over the same split")
    result = compare_paired([mine[key] for key in common], [theirs[key] for key in common])
    return result, len(mine) - len(common), len(theirs) - len(common)


def _scores(run: Run) -> dict[str, float]:
    return {record.fingerprint: record.score for record in run.records}


def _parity(first: Run, run: Run) -> list[ParityChange]:
    """Return how the groups' parities differ, over the examples that both runs have."""
    by, theirs = first.summary.by, _scores(run)
    if by is None or run.summary.by != by:
        return []
    before: dict[str, list[float]] = {}
    after: dict[str, list[float]] = {}
    for record in first.records:
        if record.fingerprint in theirs:
            group = group_of(record.meta, by, f"example '{record.id}'")
            before.setdefault(group, []).append(record.score)
            after.setdefault(group, []).append(theirs[record.fingerprint])
    something_right = all(any(any(scores) for scores in groups.values()) for groups in (before, after))
    if not something_right or len(before) > MOST_GROUPS:
        return []
    return [parity_change(before, after, group) for group in sorted(before)]


def _names(runs: Sequence[Run]) -> list[str]:
    """Return short names that tell the runs apart."""
    for parents in range(1, 5):
        names = ["/".join(run.folder.resolve().parts[-parents:]) for run in runs]
        if len(set(names)) == len(names):
            return names
    return [str(run.folder) for run in runs]


def _side(name: str, run: Run) -> Side:
    records: list[Record] = run.records
    n = len(records)
    usage = sum((record.full_usage for record in records), Usage())
    return Side(
        name=name,
        folder=str(run.folder),
        strategy=run.info.strategy,
        models=[str(model.get("name") or model.get("model")) for model in run.info.models],
        n=n,
        score=run.score,
        calls=usage.calls / n if n else 0.0,
        tokens=usage.tokens / n if n else 0.0,
        cost=None if usage.cost is None or not n else usage.cost / n,
        seconds=sum(record.seconds for record in records) / n if n else 0.0,
        paid=run.usage,
        failed=run.summary.failed,
        simulated=run.summary.simulated,
        parity=run.scores.get("parity") if run.summary.by else None,
        parity_min=run.scores.get("parity_min") if run.summary.by else None,
    )


def _remarks(names: Sequence[str], runs: Sequence[Run], pairs: Sequence[Pair]) -> list[str]:
    remarks = []
    for name, run in zip(names, runs, strict=True):
        if run.summary.status != "complete":
            remarks.append(f"{name} is {run.summary.status}: {run.summary.n} of {run.summary.total} examples")
        if run.summary.failed:
            remarks.append(f"{run.summary.failed} examples of {name} failed and count as 0")
        if run.info.task_options != runs[0].info.task_options:
            remarks.append(f"{name} has other task options than {names[0]}: its questions may differ")
    for pair in pairs:
        if pair.only_first or pair.only_second:
            remarks.append(
                f"{pair.result.n} examples are common to {pair.first} and {pair.second}; {pair.only_first} and "
                f"{pair.only_second} others are left out"
            )
    return remarks
