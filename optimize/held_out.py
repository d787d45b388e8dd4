"""Held-out evaluation: tuning reads train and dev; the test examples are opened once, for the result.

Splits are disjoint by content. Whoever opens a test set writes it down in the study's ledger (`held_out.jsonl`), for a
test set that is looked at after every tuning is a dev set: the report says how often it was used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import dspy
from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import InputError, RunError
from ..evaluation.assembly import program as assemble
from ..evaluation.budget import Budget
from ..evaluation.comparison import compare
from ..evaluation.fingerprints import content_hash, examples_fingerprint, program_fingerprint
from ..evaluation.matching import evaluate_matched
from ..evaluation.progress import Progress
from ..evaluation.provenance import all_models, models_of
from ..evaluation.records import Interval
from ..evaluation.run import Run, evaluate
from ..models import resolve
from ..programs.base import Strategy
from ..programs.majority import MAX_SAMPLES
from ..signatures.transcript import Usage
from ..tasks.base import Example, Task
from .ensemble import Ensemble

LEDGER = "held_out.jsonl"
#: Digits of an example's fingerprint that the ledger keeps.
_SHORT = 16


def check_disjoint(**splits: Sequence[Example]) -> None:
    """Check that no content is in two splits.

    Raises:
        InputError: when some is; the text names the splits and both examples.
    """
    seen: dict[str, tuple[str, str]] = {}
    for name, examples in splits.items():
        for example in examples:
            other, identity = seen.setdefault(example.fingerprint, (name, example.id))
            if other != name:
                raise InputError(
                    f"example '{identity}' of {other} and example '{example.id}' of {name} have the same content; "
                    "splits must not share examples"
                )


class Sealed:
    """Examples that nobody reads before the final evaluation: only their number and hashes are known.

    Args:
        examples: the test examples.
    """

    def __init__(self, examples: Sequence[Example]) -> None:
        self.__examples = list(examples)
        self.fingerprint = examples_fingerprint(self.__examples)
        self.fingerprints = frozenset(example.fingerprint for example in self.__examples)

    def __len__(self) -> int:
        return len(self.__examples)

    def __iter__(self) -> Iterator[NoReturn]:
        self._refuse()

    def __getitem__(self, index: Any) -> NoReturn:
        self._refuse()

    def __repr__(self) -> str:
        return f"<{len(self)} sealed test examples>"

    def _refuse(self) -> NoReturn:
        raise RunError("the test examples are sealed until the final evaluation (held_out.evaluate_held_out)")

    def unseal(self, opening: Opening, ledger: Ledger) -> list[Example]:
        """Return the examples, after the opening is written down."""
        ledger.append(opening)
        return list(self.__examples)


@dataclass(frozen=True)
class HeldOut:
    """A task's examples as tuning sees them.

    Attributes:
        task: the task.
        train: to learn from.
        dev: to compare on.
        test: sealed.
        left_out: train and dev examples that were dropped because the test split asks the same question.
    """

    task: Task
    train: list[Example]
    dev: list[Example]
    test: Sealed
    left_out: int = 0


def hold_out(
    task: Task,
    *,
    train: Sequence[Example] | None = None,
    dev: Sequence[Example] | None = None,
    test: Sequence[Example] | None = None,
    train_limit: int | None = None,
    dev_limit: int | None = None,
    test_limit: int | None = None,
    seed: int = 0,
) -> HeldOut:
    """Split a task's examples for tuning and its final evaluation.

    Args:
        task: the task.
        train: instead of the task's train split.
        dev: instead of the task's dev split.
        test: instead of the task's test split.
        train_limit: at most so many.
        dev_limit: at most so many.
        test_limit: at most so many.
        seed: of the order in which the task's splits come.

    Raises:
        InputError: for splits that share content, or an empty one.
    """
    chosen = {
        "train": list(train)[:train_limit] if train is not None else task.split("train", limit=train_limit, seed=seed),
        "dev": list(dev)[:dev_limit] if dev is not None else task.split("dev", limit=dev_limit, seed=seed),
        "test": list(test)[:test_limit] if test is not None else task.split("test", limit=test_limit, seed=seed),
    }
    check_disjoint(**chosen)
    for name, examples in chosen.items():
        if not examples:
            raise InputError(f"there are no {name} examples")
    # The same question with another gold answer is other content, but its debate would be known from tuning.
    asked = {example.question for example in chosen["test"]}
    kept = {name: [item for item in chosen[name] if item.question not in asked] for name in ("train", "dev")}
    left_out = sum(len(chosen[name]) - len(kept[name]) for name in kept)
    if not kept["train"] or not kept["dev"]:
        raise InputError("every train or dev question is in the test split too; give other examples")
    return HeldOut(task, kept["train"], kept["dev"], Sealed(chosen["test"]), left_out)


class Opening(BaseModel):
    """One line of the ledger: a test set was opened for a program.

    Attributes:
        program: the tuned program's fingerprint.
        test: the test set's fingerprint.
        examples: beginnings of the fingerprints of its examples.
        name: of the tuning, for people.
        at: UTC time, ISO 8601.
    """

    model_config = ConfigDict(extra="ignore")

    program: str
    test: str
    examples: list[str] = Field(default_factory=list)
    name: str = ""
    at: str = ""


@dataclass(frozen=True)
class Ledger:
    """Who opened which test set; one file a study.

    Attributes:
        path: a JSONL file, made by the first opening.
    """

    path: Path

    def openings(self) -> list[Opening]:
        """Return all openings, in order; a line torn by a kill is skipped.

        Raises:
            InputError: when the file cannot be read.
        """
        if not self.path.exists():
            return []
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{self.path}: the ledger of test sets cannot be read ({error})") from None
        found = []
        for line in lines:
            try:
                found.append(Opening.model_validate_json(line))
            except ValidationError:
                continue
        return found

    def append(self, opening: Opening) -> None:
        """Write an opening down, unless the same program has opened the same test set before."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(str(self.path) + ".lock"):
            if any((known.program, known.test) == (opening.program, opening.test) for known in self.openings()):
                return
            torn = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
            with self.path.open("a", encoding="utf-8") as lines:
                lines.write(("\n" if torn else "") + opening.model_dump_json() + "\n")

    def uses(self, fingerprints: Sequence[str] | frozenset[str]) -> int:
        """Return for how many programs some of these examples were opened."""
        short = {fingerprint[:_SHORT] for fingerprint in fingerprints}
        return len({opening.program for opening in self.openings() if short & set(opening.examples)})


class Gain(BaseModel):
    """How much better the tuned program is than another, over the same examples.

    Attributes:
        estimate: difference of the mean scores, tuned minus other.
        low: lower end of its 95 % interval.
        high: upper end.
        p_value: two-sided, of no difference, corrected for the number of comparisons (Holm).
        test: how it was computed, see `metrics.statistics.PairedComparison`.
        n: examples that both have.
    """

    estimate: float
    low: float
    high: float
    p_value: float
    test: str
    n: int


class Row(BaseModel):
    """One program's result on the test examples.

    Attributes:
        name: "tuned", "untuned", "single", "majority".
        strategy: its strategy.
        score: the task's main score; None for "n/a".
        interval: its confidence interval; None where it has none.
        scores: all corpus scores.
        gain: of the tuned program over this one; None for itself.
        n: examples.
        failed: examples that failed; they score 0.
        usage: what it costs without a cache.
        run: the run's folder, beside the report.
        status: "complete", or why there are fewer examples.
    """

    name: str
    strategy: str
    score: float | None
    interval: Interval | None = None
    scores: dict[str, float | None] = Field(default_factory=dict)
    gain: Gain | None = None
    n: int
    failed: int = 0
    usage: Usage = Field(default_factory=Usage)
    run: str
    status: str = "complete"


class HeldOutReport(BaseModel):
    """The final evaluation of a tuned program.

    Attributes:
        task: the task's name.
        primary: the name of its main score.
        program: the tuned program's fingerprint.
        test: the test set's fingerprint.
        n: test examples.
        uses: for how many tuned programs of this study test examples of these were opened, this one included.
        left_out: see `HeldOut`.
        rows: tuned, untuned and the baselines.
        notes: what else is worth knowing.
        simulated: some model is simulated.
    """

    model_config = ConfigDict(extra="ignore")

    task: str
    primary: str
    program: str
    test: str
    n: int
    uses: int
    left_out: int = 0
    rows: list[Row] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    simulated: bool = False

    def row(self, name: str) -> Row:
        """Return a row by its name."""
        return next(row for row in self.rows if row.name == name)


@dataclass
class _Final:
    """One final evaluation under way."""

    splits: HeldOut
    folder: Path
    settings: dict[str, Any]
    budget: Budget | None
    examples: list[Example]
    rows: list[Row] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    simulated: bool = False

    def run(self, name: str, program: Strategy, matched: Run | None = None) -> Run:
        settings = {**self.settings, "budget": self.budget, "out": self.folder / name}
        if matched is None:
            made = evaluate(program, self.splits.task, examples=self.examples, **settings)
        else:
            made = evaluate_matched(program, self.splits.task, matched, examples=self.examples, **settings)
        summary = made.summary
        self.runs.append(made)
        self.simulated = self.simulated or summary.simulated
        self.rows.append(
            Row(
                name=name,
                strategy=made.info.strategy,
                score=summary.scores.get(summary.primary),
                interval=summary.intervals.get(summary.primary),
                scores=summary.scores,
                n=summary.n,
                failed=summary.failed,
                usage=sum((record.full_usage for record in made.records), Usage()),
                run=name,
                status=summary.status if summary.status == "complete" else f"{summary.status}: {summary.reason}",
            )
        )
        if self.budget is not None:
            self.budget = self.budget.minus(made.summary.usage)
        return made

    def compare(self) -> None:
        """Compare the tuned program, which was run first, with the others."""
        first, *others = self.runs
        for row, pair in zip(self.rows[1:], compare(first, *others).pairs, strict=True):
            found = pair.result
            row.gain = Gain(
                estimate=-found.difference.estimate,
                low=-found.difference.high,
                high=-found.difference.low,
                p_value=pair.p_adjusted,
                test=found.test,
                n=found.n,
            )


def evaluate_held_out(
    tuned: Strategy,
    splits: HeldOut,
    folder: Path | str,
    *,
    untuned: Strategy | None = None,
    before: Strategy | None = None,
    ledger: Path | str | None = None,
    name: str = "",
    lm: dspy.LM | None = None,
    adapter: dspy.Adapter | None = None,
    concurrency: int | None = None,
    budget: Budget | None = None,
    progress: Progress | bool | None = None,
) -> HeldOutReport:
    """Evaluate a tuned program on the test examples, next to what it must beat.

    Beside it stand the untuned program, a single agent of each model, and the majority of independent answers at the
    tuned program's number of calls, question by question. A program is evaluated once: the same call again returns what
    was found, and goes on where it was stopped.

    Args:
        tuned: the tuned program.
        splits: its examples.
        folder: of the study or artifact; runs are kept in `held-out` below it.
        untuned: the program that nothing was tuned of. When None, the strategy in the shape of `before`, or else with
            its default settings, and with the task's worked problems.
        before: what this tuning began with, where that had been tuned already; None where it had not. Left out where
            it is one of the two.
        ledger: where openings are written down; `held_out.jsonl` in the folder when None.
        name: of the tuning, for the ledger.
        lm: the model of roles that have none of their own; None for the configured one.
        adapter: see `evaluation.run.evaluate`.
        concurrency: likewise.
        budget: for all runs together.
        progress: see `evaluation.run.evaluate`.

    Raises:
        InputError: for bad input.
        RunError: when the models cannot be used.
        BudgetExceededError: when the budget is used up between two of the runs.
    """
    folder = Path(folder)
    task = splits.task
    fingerprint = fingerprint_of(tuned)
    book = Ledger(Path(ledger) if ledger is not None else folder / LEDGER)
    opening = Opening(
        program=fingerprint,
        test=splits.test.fingerprint,
        examples=sorted(value[:_SHORT] for value in splits.test.fingerprints),
        name=name,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    examples = splits.test.unseal(opening, book)
    plain = untuned if untuned is not None else _untuned(before or tuned, task, shape=before is not None)
    # Each comparison has its place: the same program may be tuned from another one, or asked of other models.
    compared = [fingerprint_of(program) for program in (plain, before) if program is not None]  # before stands last
    spoken = [model.model for model in all_models(tuned, lm)]
    about = content_hash([splits.test.fingerprint, compared, spoken])
    place = folder / "held-out" / f"{fingerprint[:8]}-{about[:8]}"
    settings = {"lm": lm, "adapter": adapter, "concurrency": concurrency, "progress": progress}
    final = _Final(splits, place, settings, budget, examples)
    found = final.run("tuned", tuned)
    if before is not None and compared[-1] not in (fingerprint, compared[0]):
        final.run("before", before)
    final.run("untuned", plain)
    models = models_of(tuned, lm)
    notes = [f"single-{number} is {name}" for number, name in enumerate(_names(models), start=1)]
    for number, model in enumerate(models, start=1):
        final.run("single" if len(models) == 1 else f"single-{number}", assemble(task, "single", lms=[model]))
    dearest = max((record.full_usage.calls for record in found.records), default=0)
    if dearest > MAX_SAMPLES:
        notes.append(f"no majority baseline: {dearest} calls for one question are more than its {MAX_SAMPLES} samples")
    elif dearest:
        final.run("majority", assemble(task, "majority", lms=tuned.lms), matched=found)
    final.compare()
    report = HeldOutReport(
        task=task.name,
        primary=task.primary,
        program=fingerprint,
        test=splits.test.fingerprint,
        n=len(examples),
        uses=book.uses(splits.test.fingerprints),
        left_out=splits.left_out,
        rows=final.rows,
        notes=notes,
        simulated=final.simulated,
    )
    (place / "report.json").write_text(report.model_dump_json(indent=2), encoding="utf-8")
    return report


def fingerprint_of(program: Strategy) -> str:
    """Return the hash of a program: its strategy, settings and all that its roles send."""
    settings = program.config.model_dump(mode="json")
    shown = {name: getattr(predictor, "nearest", None) for name, predictor in program.named_predictors()}
    return content_hash([program.name, settings, shown, program_fingerprint(program)])


def _untuned(program: Strategy, task: Task, *, shape: bool) -> Strategy:
    """Return the strategy as it comes, in a program's shape or its own."""
    one = program.members[0] if isinstance(program, Ensemble) else program
    settings = one.config.model_dump() if shape else {}
    return assemble(task, one.name, **settings).with_models(program.lms, program.judge_lm)


def _names(models: Sequence[dspy.LM]) -> list[str]:
    return [resolve.describe(model)["name"] for model in models] if len(models) > 1 else []


def load_report(path: Path) -> HeldOutReport:
    """Read a final evaluation's `report.json`.

    Raises:
        InputError: when it is missing or no report.
    """
    try:
        return HeldOutReport.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: no report of a final evaluation ({error})") from None
