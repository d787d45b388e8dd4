"""What a search in stages found, step by step, and how it is watched."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import dspy
from pydantic import BaseModel, ConfigDict, Field

from ..evaluation.fingerprints import examples_fingerprint
from ..evaluation.progress import Progress
from ..programs.base import Strategy
from ..signatures.transcript import Usage
from ..tasks.base import Task
from .artifact import ArtifactInfo, save_artifact
from .compile import CompileReport, CompileState
from .held_out import Gain, HeldOut
from .search import SearchProgress
from .study import StudyResult

Outcome = Literal["kept", "did not pay", "not measured", "not tried"]


class Step(BaseModel):
    """What one change of the program did: a role's new prompts, or all that a stage changed.

    Attributes:
        name: the role's, or the stage's.
        outcome: "kept"; "did not pay" (no better on dev, and undone); "not measured" (undone, for the budget
            ended before); "not tried".
        gain: over the program before it, on the dev examples; None where it was not measured.
        usage: what was paid, and served from the cache.
        note: what else is worth knowing; empty for nothing.
    """

    model_config = ConfigDict(extra="ignore")

    name: str
    outcome: Outcome = "not tried"
    gain: Gain | None = None
    usage: Usage = Field(default_factory=Usage)
    note: str = ""

    @property
    def certain(self) -> bool:
        """Whether the interval of the gain lies above 0."""
        return self.gain is not None and self.gain.low > 0


class Stage(Step):
    """One stage.

    Attributes:
        roles: its steps, where it went through the roles in turn.
        score: of the program after it, on the dev examples; None before it was measured.
    """

    roles: list[Step] = Field(default_factory=list)
    score: float | None = None


class StagesProgress:
    """Watches a search in stages; the base does nothing.

    Attributes:
        search: watches the search for the shape.
        measuring: is shown how far a measurement on dev is, see `evaluation.run.evaluate`.
    """

    search: SearchProgress | None = None
    measuring: Progress | bool | None = None

    def start(self, stage: str, what: str) -> None:
        """Run when a stage begins something: measuring, a role, the search."""

    def compiling(self, state: CompileState) -> None:
        """Run while prompts are improved; it may be called from several threads."""

    def finished(self, step: Step) -> None:
        """Run when a step or a stage has ended."""


@dataclass
class Staged:
    """What a search in stages found.

    Attributes:
        task: the task.
        strategy: the strategy's name.
        teleprompter: what improved the prompts.
        stages: prompts of each role, shape, prompts again.
        before: the program as it came, in the shape that the search began with.
        best: the program that the stages end with.
        splits: the examples; the test split is still sealed.
        baseline: score of `before` on the dev examples; None when the budget ended before it was measured.
        study: of the shape; None where none was searched.
        report: of the last compilation whose prompts were kept; None where none were.
        settings: how it was done, for the artifact.
        folder: where all of it is kept.
        lm: the model of roles that have none of their own.
        simulated: some model is simulated.
    """

    task: Task
    strategy: str
    teleprompter: str
    stages: list[Stage]
    before: Strategy
    best: Strategy
    splits: HeldOut
    baseline: float | None
    study: StudyResult | None
    report: CompileReport | None
    settings: dict[str, Any]
    folder: Path
    lm: dspy.LM | None
    simulated: bool

    @property
    def used(self) -> Usage:
        """All that was paid and served, earlier starts of the same search included."""
        return sum((stage.usage for stage in self.stages), Usage())

    @property
    def rows(self) -> list[tuple[int, Step]]:
        """Stages and below them their roles, for a table: (depth, step)."""
        return [row for stage in self.stages for row in [(0, stage), *((1, role) for role in stage.roles)]]

    def record(self) -> dict[str, Any]:
        """Return what an artifact says of it: JSON data."""
        shape = self.study.best_trial.settings if self.study is not None and self.study.whole else None
        return {
            "staged": True,
            **self.settings,
            "dev": examples_fingerprint(self.splits.dev),
            "baseline": self.baseline,
            "stages": [stage.model_dump(mode="json") for stage in self.stages],
            "study": self.study.name if self.study is not None else None,
            "best_shape": shape,
            "calls": self.used.calls,
        }

    def save(self, folder: Path | str, *, overwrite: bool = False) -> ArtifactInfo:
        """Save the best program with the record of its stages, see `artifact.save_artifact`."""
        with dspy.context(**({"lm": self.lm} if self.lm is not None else {})):
            return save_artifact(
                self.best, self.task, folder, report=self.report, tuning=self.record(), overwrite=overwrite
            )
