"""What an exporter is given, and what all of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import dspy

from ...errors import InputError
from ...programs.base import Strategy
from ...registry import Registry
from ..artifact import ArtifactInfo
from ..nearest_demos import NearestDemos
from ..templates import role_id

#: All export formats by name. A new one is one module in this package with `@EXPORTERS.register("name")`.
EXPORTERS: Registry[type[Exporter]] = Registry("export format", __package__)


@dataclass(frozen=True)
class Question:
    """A question with its right answer, for formats that carry tests."""

    question: str
    answer: Any


@dataclass(frozen=True)
class Export:
    """What is exported.

    Attributes:
        program: the program.
        info: what its artifact says of it.
        questions: questions with right answers, for formats that carry tests; may be empty.
        model: the model's name that files name by default.
    """

    program: Strategy
    info: ArtifactInfo
    questions: Sequence[Question] = field(default_factory=tuple)
    model: str = "gpt-4o-mini"

    @property
    def roles(self) -> dict[str, dspy.Predict]:
        """The roles' predictors by name, as files name them."""
        return {role_id(name): predictor for name, predictor in self.program.named_predictors()}

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        task = f" for {self.info.task.name}" if self.info.task is not None else ""
        return f"{self.info.strategy}{task}"


class Exporter(ABC):
    """One export format."""

    name: ClassVar[str]
    #: One line for `townhall list formats`.
    summary: ClassVar[str]
    #: The name of its file; None for a format of several files, which goes into a folder.
    file: ClassVar[str | None] = None

    @abstractmethod
    def files(self, export: Export) -> dict[str, str]:
        """Return the files' texts by name.

        Raises:
            InputError: when the program cannot be written in this format; the text says which formats can.
        """


def fixed_roles(export: Export, format_name: str) -> dict[str, dspy.Predict]:
    """Return the roles, for a format whose prompts are fixed.

    Raises:
        InputError: when a role chooses its demonstrations by the question.
    """
    for name, predictor in export.roles.items():
        if isinstance(predictor, NearestDemos):
            raise InputError(
                f"{format_name}: the role '{name}' chooses its demonstrations by the question, which this format "
                "cannot say; export as python, messages or dspy, or compile with another teleprompter"
            )
    return export.roles


def target_path(out: Path, name: str) -> Path:
    """Return where a single file goes: to `out` itself when it is named like a file, else into the folder `out`."""
    is_file = out.suffix != "" and not out.is_dir()
    return out if is_file else out / name
