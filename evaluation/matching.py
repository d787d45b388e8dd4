"""The majority baseline at another run's cost: as many calls, or as many tokens, for each example.

Self-consistency with the same number of calls often beats a debate; a debate's gain means little without it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InputError
from ..signatures.transcript import Usage
from ..tasks.base import Example, Task
from .fingerprints import content_hash
from .records import Record
from .run_folder import Run, load_run

if TYPE_CHECKING:
    from ..programs.base import Strategy

Measure = Literal["calls", "tokens"]
Spread = Literal["example", "mean"]


@dataclass(frozen=True)
class Match:
    """How many samples each example gets.

    Attributes:
        run: name of the run whose cost is matched.
        per: what is matched: model calls, or tokens sent and received (replies from the cache count as paid).
        spread: "example": each example gets what the run took for it; "mean": every example gets the mean, rounded.
        target: the run's mean calls or tokens an example.
        otherwise: samples of an example that the run has no cost for (it is not in it, or failed there).
        samples: samples by the example's fingerprint.
    """

    run: str
    per: Measure
    spread: Spread
    target: float
    otherwise: int
    samples: Mapping[str, int] = field(default_factory=dict)

    def samples_for(self, example: Example) -> int:
        """Return how many samples an example gets."""
        return self.samples.get(example.fingerprint, self.otherwise)

    def describe(self) -> dict[str, Any]:
        """Return what a run's record says of it."""
        return {
            "run": self.run,
            "per": self.per,
            "spread": self.spread,
            "target": self.target,
            "otherwise": self.otherwise,
            "samples": content_hash(dict(self.samples))[:16],
        }

    def __str__(self) -> str:
        counts = list(self.samples.values()) or [self.otherwise]
        mean = sum(counts) / len(counts)
        some = f"{counts[0]}" if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}, {mean:.1f} on average"
        which = "for each example" if self.spread == "example" else "for the mean example"
        return f"as many {self.per} {which} as {self.run} ({self.target:.1f} on average): {some} samples"


def match_cost(
    run: Run | Path | str,
    *,
    per: Measure = "calls",
    spread: Spread = "example",
    single: Run | None = None,
) -> Match:
    """Return how many majority samples cost what a run cost.

    A sample is one call, so that calls are matched exactly. A sample's tokens depend on the question and the model:
    they are measured by `single`, a run of the same strategy with one sample, and the number of samples is rounded to
    the nearest.

    Args:
        run: the run whose cost is matched.
        per: "calls" or "tokens".
        spread: "example" or "mean", see `Match`.
        single: needed for tokens, see above.

    Raises:
        InputError: for a run without a finished example, or one whose tokens are not known.
    """
    run = run if isinstance(run, Run) else load_run(run)
    costs = {record.fingerprint: _cost(record.full_usage, per) for record in _finished(run)}
    if not costs or not any(costs.values()):
        raise InputError(f"{run.folder}: no example with known {per}, so that nothing can be matched")
    target = sum(costs.values()) / len(costs)
    price: dict[str, float] = {}
    each = 1.0
    if per == "tokens":
        if single is None:
            raise InputError("matching tokens needs a run with one sample, which says what a sample takes")
        price = {record.fingerprint: _cost(record.full_usage, per) for record in _finished(single)}
        price = {fingerprint: tokens for fingerprint, tokens in price.items() if tokens}
        if not price:
            raise InputError(f"{single.folder}: no example with known tokens, so that nothing can be matched")
        each = sum(price.values()) / len(price)
    mean = max(1, round(target / each))
    if spread == "mean":
        return Match(run.name, per, spread, target, mean, dict.fromkeys(costs, mean))
    samples = {fingerprint: max(1, round(cost / (price.get(fingerprint, each)))) for fingerprint, cost in costs.items()}
    return Match(run.name, per, spread, target, mean, samples)


def evaluate_matched(
    program: Strategy,
    task: Task,
    run: Run | Path | str,
    *,
    per: Measure = "calls",
    spread: Spread = "example",
    out: Path | str | None = None,
    **settings: Any,
) -> Run:
    """Run the majority baseline over the examples of another run, at its cost.

    To match tokens, one sample of each example is drawn first, in a run of its own; it comes from the cache afterwards.

    Args:
        program: the strategy `majority` (or another whose call takes `samples`).
        task: as the run's.
        run: the run whose cost is matched.
        per: "calls" or "tokens".
        spread: "example" or "mean", see `Match`.
        out: as in `evaluate`; the run with one sample is kept beside it, as `OUT-single`.
        **settings: of `evaluate`; without `split`, `limit`, `order`, `seed` or `examples`, the run's own examples.

    Raises:
        InputError: when the run is of another task or other data, or the program cannot draw samples.
    """
    from .run import evaluate

    run = run if isinstance(run, Run) else load_run(run)
    if run.info.task != task.name:
        raise InputError(f"{run.folder}: a run of task '{run.info.task}', not '{task.name}'; costs do not compare")
    check_samples(program)
    if not {"split", "limit", "order", "seed", "examples"} & set(settings):
        settings["examples"] = examples_of(run, task)
    single = None
    if per == "tokens":
        beside = None if out is None else Path(out).with_name(f"{Path(out).name}-single")
        single = evaluate(program.reconfigured(samples=1), task, out=beside, **settings)
        if single.summary.status != "complete":
            return single
        if settings.get("budget") is not None:
            settings["budget"] = settings["budget"].minus(single.usage)
    return evaluate(program, task, out=out, match=match_cost(run, per=per, spread=spread, single=single), **settings)


def check_samples(program: Any) -> None:
    """Check that a program's call takes a number of samples.

    Raises:
        InputError: when it does not.
    """
    if "samples" not in inspect.signature(program.forward).parameters:
        name = getattr(program, "name", type(program).__name__)
        raise InputError(f"strategy '{name}' draws no samples; costs are matched with the strategy 'majority'")


def examples_of(run: Run, task: Task) -> list[Example]:
    """Return a run's examples, from the task's data.

    Raises:
        InputError: when the data lacks one of them.
    """
    known = {example.fingerprint: example for example in task.examples}
    missing = next((record for record in run.records if record.fingerprint not in known), None)
    if missing is not None:
        raise InputError(f"{run.folder}: the example '{missing.id}' is not in {task.source}; use the same data")
    return [known[record.fingerprint] for record in run.records]


def _finished(run: Run) -> Sequence[Record]:
    return [record for record in run.records if record.error is None]


def _cost(usage: Usage, per: Measure) -> float:
    return float(usage.calls if per == "calls" else usage.tokens)
