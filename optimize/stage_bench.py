"""Compiling and measuring the programs of a search in stages, within a budget, and writing down what they cost."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dspy
from pydantic import ValidationError

from ..errors import BudgetExceededError, InputError, RunError
from ..evaluation.accounting import only_cached, only_paid
from ..evaluation.budget import Budget
from ..evaluation.fingerprints import content_hash, examples_fingerprint
from ..evaluation.provenance import all_models, models_of
from ..evaluation.run import evaluate
from ..evaluation.run_folder import read_calls
from ..metrics.statistics import compare_paired
from ..programs.asking import Ask
from ..programs.base import Strategy
from ..programs.observer import OBSERVER, Observer
from ..signatures.transcript import Turn, Usage
from ..tasks.base import Example, Task
from .artifact import ARTIFACT, load, load_info, save_artifact
from .compile import CompileReport, compile
from .freezing import roles_of
from .held_out import Gain, HeldOut, fingerprint_of
from .metric import training_examples
from .spending import first_line
from .stage_results import StagesProgress
from .study import StudyResult, TrialResult
from .teleprompters.base import TELEPROMPTERS, Teleprompter, build_sizes


def portion(budget: Budget, share: float) -> Budget:
    """Return a share of a budget; whole calls and tokens, rounded down.

    Raises:
        BudgetExceededError: when it is less than one call or token.
    """
    calls, tokens = (
        None if limit is None else math.floor(limit * share + 1e-9) for limit in (budget.calls, budget.tokens)
    )
    if 0 in (calls, tokens):
        raise BudgetExceededError("its share of the budget is less than one call")
    return Budget(calls=calls, tokens=tokens, cost=None if budget.cost is None else budget.cost * share)


class PaidLedger(Observer):
    """Writes down what debates paid as soon as it is paid, so that a kill loses none of it.

    Args:
        path: a JSONL file of `Usage`.
        outer: another observer that wants to hear of everything too.
    """

    def __init__(self, path: Path, outer: Observer) -> None:
        self.path = path
        self.outer = outer
        self._lock = threading.Lock()

    def slot(self, ask: Ask) -> contextlib.AbstractContextManager[None]:
        """Pass it on."""
        return self.outer.slot(ask)

    def before_call(self, ask: Ask) -> None:
        """Pass it on."""
        self.outer.before_call(ask)

    def after_call(self, ask: Ask, usage: Usage) -> None:
        """Write down what was paid, and pass it on."""
        self.add(usage)
        self.outer.after_call(ask, usage)

    def on_turn(self, turn: Turn) -> None:
        """Pass it on."""
        self.outer.on_turn(turn)

    def add(self, usage: Usage) -> None:
        """Write down what was paid, if anything was."""
        if not usage.calls and not usage.tokens:
            return
        line = only_paid(usage).model_dump_json(exclude_defaults=True).encode() + b"\n"
        with self._lock:
            try:
                with self.path.open("ab") as file:
                    file.write(line)
            except OSError as error:
                raise RunError(f"{self.path}: cannot be written ({error.strerror or error})") from None

    def total(self) -> Usage:
        """Return all that was paid; a line torn by a kill is skipped."""
        found = Usage()
        for line in self.path.read_bytes().splitlines() if self.path.exists() else ():
            with contextlib.suppress(ValidationError):
                found = found + Usage.model_validate_json(line)
        return found


@dataclass(frozen=True)
class Measured:
    """One measurement on dev.

    Attributes:
        scores: by the example's fingerprint, in the order of the examples.
        full: what measuring costs without a cache.
        asked: the roles that spoke; None where that is not known.
    """

    scores: dict[str, float]
    full: Usage
    asked: frozenset[str] | None = None

    @property
    def mean(self) -> float:
        """The mean score."""
        return math.fsum(self.scores.values()) / len(self.scores)


@dataclass
class Bench:
    """Where programs of one search are compiled and measured; what was done is kept in the folder, and paid once.

    Attributes:
        task: the task.
        splits: its examples; the test split is sealed.
        dev: the dev examples, each once.
        home: the folder.
        teleprompter: what improves prompts.
        sizes: of the teleprompter.
        helpers: `prompt_lm`, `teacher_lm` and `reflection_lm`.
        lm: the model of roles that have none of their own; None for the configured one.
        adapter: None for the configured one.
        concurrency: model calls in flight at most.
        seed: of the teleprompter.
        progress: is told how it goes.
        booked: what each measurement, compilation and study took in all, by its folder.
    """

    task: Task
    splits: HeldOut
    dev: list[Example]
    home: Path
    teleprompter: str
    sizes: dict[str, Any]
    helpers: dict[str, dspy.LM | None]
    lm: dspy.LM | None
    adapter: dspy.Adapter | None
    concurrency: int | None
    seed: int
    progress: StagesProgress
    booked: dict[Path, Usage] = field(default_factory=dict)

    @property
    def kind(self) -> type[Teleprompter]:
        """The teleprompter's class."""
        return TELEPROMPTERS.get(self.teleprompter)

    @property
    def all_sizes(self) -> Any:
        """The teleprompter's sizes, those that were not given too."""
        return build_sizes(self.kind, self.sizes)

    @property
    def spent(self) -> Usage:
        """All that was paid and served."""
        return sum(self.booked.values(), Usage())

    def check(self, program: Strategy) -> None:
        """Check what can be checked before anything is spent.

        Raises:
            InputError: when something is missing or unknown.
        """
        self.task.check_scoring()
        models_of(program, self.lm)
        sizes = self.all_sizes
        if self.kind.needs_reflection_lm and self.helpers["reflection_lm"] is None:
            raise InputError(
                f"{self.teleprompter} needs a reflection model: give --reflection-lm NAME (reflection_lm=...)"
            )
        self.kind().check(sizes, training_examples(self.splits.train), self.splits.dev)

    def compile(
        self, program: Strategy, roles: Sequence[str], limit: Budget
    ) -> tuple[Strategy | None, CompileReport | None, str]:
        """Return the program with new prompts for some roles, from the folder where it is there already.

        Raises:
            BudgetExceededError: when the budget is used up and nothing was compiled.
        """
        about = content_hash(
            [
                self.key(program),
                self.teleprompter,
                self.all_sizes.model_dump(mode="json"),
                list(roles),
                self.seed,
                examples_fingerprint(self.splits.train),
                {name: model.model if model is not None else None for name, model in self.helpers.items()},
            ]
        )
        place = self.home / "prompts" / about[:16]
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{place}: the folder cannot be made: {error.strerror or error}") from None
        ledger = PaidLedger(place / "paid.jsonl", OBSERVER.get())
        artifact = place / "artifact"
        self.booked[place] = ledger.total()
        report = load_info(artifact).compilation if (artifact / ARTIFACT).exists() else None
        if report is None or (report.stopped is not None and limit.reached(self.booked[place]) is None):
            try:
                report = self._compile_now(program, roles, limit.minus(self.booked[place]), ledger, artifact)
            except RunError as error:
                # One role may have nothing to learn from; models that do not answer end the next measurement.
                return None, None, first_line(error)
            finally:
                self.booked[place] = ledger.total()
        total = report.total
        kept = ("cached", "cached_prompt_tokens", "cached_completion_tokens", "cached_cost")
        self.booked[place] = self.booked[place].model_copy(update={key: getattr(total, key) for key in kept})
        return _with_models(load(artifact, answer=program.answer_type), program), report, report.stopped or ""

    def _compile_now(
        self, program: Strategy, roles: Sequence[str], limit: Budget, ledger: PaidLedger, artifact: Path
    ) -> CompileReport:
        token = OBSERVER.set(ledger)
        try:
            compiled = compile(
                program,
                self.task,
                self.teleprompter,
                train=self.splits.train,
                dev=self.splits.dev,
                only=roles,
                budget=limit,
                seed=self.seed,
                lm=self.lm,
                concurrency=self.concurrency,
                progress=self.progress.compiling,
                **self.helpers,
                **_by_size(self.sizes),
            )
        finally:
            OBSERVER.reset(token)
        # Calls that write prompts are no debate's, and no observer hears of them.
        ledger.add(compiled.report.prompt_usage)
        save_artifact(compiled.program, self.task, artifact, report=compiled.report, overwrite=True)
        return compiled.report

    def measure(self, program: Strategy, limit: Budget) -> tuple[Measured | None, str]:
        """Evaluate a program on dev; None and the reason when the budget ends before."""
        key = content_hash([self.key(program), examples_fingerprint(self.dev)])
        place = self.home / "dev" / key[:16]
        run = evaluate(
            program,
            self.task,
            examples=self.dev,
            out=place,
            lm=self.lm,
            adapter=self.adapter,
            concurrency=self.concurrency,
            budget=limit,
            progress=self.progress.measuring,
        )
        self.booked[place] = run.usage
        if run.summary.status != "complete":
            return None, run.summary.reason or run.summary.status
        full = sum((record.full_usage for record in run.records), Usage())
        asked = frozenset(role for record in run.records for role in record.usage_by_role)
        return Measured({record.fingerprint: record.score for record in run.records}, full, asked), ""

    def key(self, program: Strategy) -> list[Any]:
        """Return what tells programs apart: settings, prompts and models."""
        own = {role: getattr(predictor.lm, "model", None) for role, predictor in program.named_predictors()}
        models = [model.model for model in all_models(program, self.lm)]
        adapter = self.adapter or dspy.settings.adapter
        return [fingerprint_of(program), own, models, type(adapter).__name__]

    def same(self, one: Strategy, other: Strategy) -> bool:
        """Return whether two programs do exactly the same."""
        return self.key(one) == self.key(other)


def _with_models(loaded: Strategy, program: Strategy) -> Strategy:
    """Give a program that was read from its artifact what no artifact holds."""
    loaded.with_models(program.lms, program.judge_lm)
    mine = roles_of(program)
    for role, predictor in loaded.named_predictors():
        predictor.lm, predictor.config = mine[role].lm, dict(mine[role].config)
    return loaded


def _by_size(sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Return sizes as `compile.compile` takes them: `train` and `dev` are names of its examples."""
    return {f"{name}_size" if name in ("train", "dev") else name: value for name, value in sizes.items()}


def gain_over(before: Mapping[str, float], after: Mapping[str, float], *, same: bool) -> Gain:
    """Compare two measurements on the same examples; a program has no doubt that it equals itself."""
    if same:
        return Gain(estimate=0.0, low=0.0, high=0.0, p_value=1.0, test="same program", n=len(before))
    found = compare_paired(list(before.values()), [after[fingerprint] for fingerprint in before])
    difference = found.difference
    return Gain(
        estimate=difference.estimate,
        low=difference.low,
        high=difference.high,
        p_value=found.p_value,
        test=found.test,
        n=found.n,
    )


def cost_of(trial: TrialResult) -> Usage:
    """Return what answering all examples takes in a trial's shape, without a cache."""
    cost = trial.costs.get("cost")
    return Usage(
        calls=math.ceil((trial.costs.get("calls") or 0) * trial.n - 1e-9),
        prompt_tokens=math.ceil((trial.costs.get("tokens") or 0) * trial.n - 1e-9),
        cost=None if cost is None else cost * trial.n,
    )


def paid_in(study: StudyResult) -> Usage:
    """Return what a study took: its trials that ended, and what one that the budget stopped has paid already."""
    ledgers = (study.folder / "trials").glob("*")
    paid = sum((call.usage for trial in ledgers for call in read_calls(trial)), Usage())
    if study.used.calls >= paid.calls:  # other workers keep their trials' folders elsewhere
        return study.used
    return paid + only_cached(study.used)


def added(now: Usage, before: Usage) -> Usage:
    """Return what was added to a usage."""
    found: dict[str, Any] = {}
    for key in Usage.model_fields:
        mine, theirs = getattr(now, key), getattr(before, key)
        found[key] = None if mine is None or theirs is None else mine - theirs
    return Usage(**found)
