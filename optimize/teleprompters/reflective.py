"""Teleprompters that look at what went wrong: SIMBA and GEPA."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from typing import Any, ClassVar, TextIO

import dspy
from dspy.teleprompt.simba_utils import append_a_demo, append_a_rule
from pydantic import Field

from ...errors import InputError
from ...programs.base import Strategy
from ..freezing import roles_of
from .base import NO_LIMIT, TELEPROMPTERS, Sizes, Teleprompter, Work
from .bootstrap import fresh


class SIMBASizes(Sizes):
    """Sizes of `simba`; see also `Sizes`.

    Attributes:
        batch: training examples of a step; each is debated once by every candidate.
        candidates: new programs of a step.
        steps: how many steps.
        demos: most demonstrations of each role; 0 for rules only.
    """

    dev: int | None = Field(default=None, ge=1)
    batch: int = Field(default=4, ge=1)
    candidates: int = Field(default=3, ge=2, le=32)
    steps: int = Field(default=2, ge=1, le=64)
    demos: int = Field(default=2, ge=0, le=16)


@TELEPROMPTERS.register("simba")
class SIMBA(Teleprompter):
    """`dspy.SIMBA`: where samples of one debate come out differently, it adds the good one, or a rule that tells why.

    A demonstration is only added from a debate that reaches the threshold; DSPy takes the best of a batch, however bad.
    """

    name: ClassVar[str] = "simba"
    summary: ClassVar[str] = "adds demonstrations and self-written rules where samples of a debate differ in score"
    Sizes: ClassVar[type[Sizes]] = SIMBASizes
    needs_samples: ClassVar[bool] = True

    def check(self, sizes: Any, train: Sequence[Any], dev: Sequence[Any]) -> None:
        """See `Teleprompter.check`."""
        super().check(sizes, train, dev)
        if len(train) < sizes.batch:
            raise InputError(
                f"simba: a batch takes {sizes.batch} training examples; there are {len(train)}. Give more, or a "
                "smaller --size batch=..."
            )

    def most_debates(self, sizes: Any, *, roles: int, train: int, dev: int) -> int:
        """See `Teleprompter.most_debates`."""
        step = sizes.batch * (sizes.candidates + sizes.candidates + 1)
        return int(sizes.steps * step + train * min(sizes.candidates, sizes.steps) + train)

    def run(self, work: Work) -> Strategy:
        """See `Teleprompter.run`."""
        sizes = work.sizes
        teleprompter = dspy.SIMBA(
            metric=work.metric,
            bsize=sizes.batch,
            num_candidates=sizes.candidates,
            max_steps=sizes.steps,
            max_demos=sizes.demos,
            prompt_model=work.prompt_lm,
            teacher_settings={"lm": work.teacher_lm.copy()} if work.teacher_lm is not None else None,
            num_threads=work.threads,
        )
        if sizes.demos:
            teleprompter.strategies = [admitted(append_a_demo(100_000), work.threshold), append_a_rule]
        with dspy.context(max_errors=NO_LIMIT):
            compiled = teleprompter.compile(fresh(work.program), trainset=work.train, seed=work.seed)
        work.scores += [float(candidate["score"]) for candidate in compiled.candidate_programs]
        return compiled


def admitted(strategy: Callable[..., bool], threshold: float) -> Callable[..., bool]:
    """Return SIMBA's way of adding a demonstration, for debates that reach a threshold only."""

    def append_an_admitted_demo(bucket: list[dict[str, Any]], system: Any, **settings: Any) -> bool:
        if bucket[0]["score"] < threshold:
            # SIMBA passes over a candidate whose making raises; one that came back unchanged would be evaluated again.
            raise ValueError(f"no debate of this question reached {threshold:g}")
        return strategy(bucket, system, **settings)

    return append_an_admitted_demo


class GEPASizes(Sizes):
    """Sizes of `gepa`; see also `Sizes`.

    Attributes:
        debates: about how many debates are held in all; the last evaluation is finished.
        batch: training debates that one reflection reads.
        merge: also combine the roles of two good candidates.
    """

    dev: int | None = Field(default=8, ge=1)
    debates: int = Field(default=60, ge=2)
    batch: int = Field(default=3, ge=1)
    merge: bool = True


@TELEPROMPTERS.register("gepa")
class GEPA(Teleprompter):
    """`dspy.GEPA`: a model reads what each role said and what the metric has to say on it, and rewrites instructions.

    Each role gets feedback of its own, see `feedback.role_feedback`.
    """

    name: ClassVar[str] = "gepa"
    summary: ClassVar[str] = "a reflection model rewrites instructions from feedback on each role; keeps a Pareto front"
    Sizes: ClassVar[type[Sizes]] = GEPASizes
    needs_dev: ClassVar[bool] = True
    needs_reflection_lm: ClassVar[bool] = True

    def check(self, sizes: Any, train: Sequence[Any], dev: Sequence[Any]) -> None:
        """See `Teleprompter.check`."""
        super().check(sizes, train, dev)
        if sizes.debates < len(dev) + 2 * sizes.batch:
            raise InputError(
                f"gepa: {sizes.debates} debates do not suffice for one rewrite: {len(dev)} for the program as it is "
                f"and {2 * sizes.batch} for the rewrite; give --size debates={len(dev) + 2 * sizes.batch} or more"
            )

    def most_debates(self, sizes: Any, *, roles: int, train: int, dev: int) -> int:
        """See `Teleprompter.most_debates`."""
        return int(sizes.debates + dev + 2 * sizes.batch)

    def run(self, work: Work) -> Strategy:
        """See `Teleprompter.run`."""
        sizes = work.sizes
        teleprompter = dspy.GEPA(
            metric=work.metric,
            max_metric_calls=sizes.debates,
            reflection_minibatch_size=sizes.batch,
            reflection_lm=work.reflection_lm,
            use_merge=sizes.merge and len(roles_of(work.program)) > 1,
            num_threads=work.threads,
            seed=work.seed,
            warn_on_score_mismatch=False,
            gepa_kwargs={"stop_callbacks": [lambda state: work.spending.stopped is not None]},
        )
        with redirect_stderr(_WithoutBar(sys.stderr)):
            return teleprompter.compile(fresh(work.program), trainset=work.train, valset=work.dev)


class _WithoutBar(io.TextIOBase):
    """A stream in front of another that keeps GEPA's progress bar back: a compilation has a display of its own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._after_bar = False

    def write(self, text: str) -> int:
        bar = "rollouts" in text and text.startswith("\r")
        if not bar and not (self._after_bar and text == "\n"):
            self._stream.write(text)
        self._after_bar = bar
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the base declares an attribute
        return self._stream.encoding
