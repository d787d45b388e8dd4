"""What a task is: where its examples come from, how a question is asked, how an answer is read and scored."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..errors import InputError
from ..metrics.score import Score
from ..registry import Registry
from ..signatures.answers import plain
from ..signatures.demonstrations import Demonstration

SplitName = Literal["train", "dev", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "dev", "test")

#: All tasks by name. A new task is one module in this package with `@TASKS.register("name")` on its class.
TASKS: Registry[type[Task]] = Registry("task", __package__)


class Example(BaseModel):
    """One question with its gold answer.

    Attributes:
        id: unique in its data source; from the row's `id` or `idx`, else a hash of the content.
        question: what the agents read.
        gold: the right answer, as JSON data in the shape that the task's `score` expects.
        meta: fields to group by (`size`, `subject`, `country`, `group`, `label`, ...) and what scoring needs.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    id: str
    question: str
    gold: Any
    meta: dict[str, Any] = Field(default_factory=dict)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the question and the gold answer: the same content is the same example, wherever it stands."""
        content = json.dumps([self.question, plain(self.gold)], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(content.encode("utf-8")).hexdigest()


@dataclass(frozen=True)
class HubSource:
    """A data set on the Hugging Face hub.

    Attributes:
        repo: the hub's id, such as "openai/gsm8k".
        config: its configuration, None for the default.
        split: which of its splits is read.
    """

    repo: str
    config: str | None = None
    split: str = "test"


@dataclass(frozen=True)
class Scored:
    """One example with the score of one answer; what corpus metrics are computed from."""

    example: Example
    score: Score


class Task(ABC):
    """Base of all tasks.

    Args:
        data: where examples come from. A path to a JSONL, JSON, CSV or Parquet file; "hub" or "hub:REPO" for the
            Hugging Face hub; "generated" for the task's own generator; None for the task's default source.
        **options: the task's own options (`sizes=`, `context=`, ...), see `option_help`.

    Raises:
        InputError: for an option the task does not have, or a source it cannot read.
    """

    name: ClassVar[str]
    #: Raised whenever the rendering, the reading or the scoring changes: figures of two versions do not compare.
    version: ClassVar[int] = 1
    #: One line for `townhall list tasks`.
    summary: ClassVar[str]
    hub: ClassVar[HubSource | None] = None
    #: The type of the `answer` field of every role.
    answer_type: ClassVar[Any] = str
    #: The score that `Score.value` averages to ("puzzle" for grids, "accuracy" elsewhere).
    primary: ClassVar[str] = "accuracy"
    #: Rules of `extract`; the first is the default.
    extract_rules: ClassVar[tuple[str, ...]] = ("flexible",)
    #: Option names, each with a one-line help text.
    option_help: ClassVar[Mapping[str, str]] = {}
    #: Fields of `Example.meta` that make sense for `--by`.
    group_fields: ClassVar[tuple[str, ...]] = ()
    #: The field that scores are grouped by when none is named; None for no groups.
    default_by: ClassVar[str | None] = None

    def __init__(self, data: str | Path | None = None, **options: Any) -> None:
        unknown = sorted(set(options) - set(self.option_help))
        if unknown:
            known = ", ".join(sorted(self.option_help)) or "none"
            raise InputError(f"task '{self.name}' has no option '{unknown[0]}'. Its options: {known}")
        self.data = data
        self.options = options

    # -- what a task must say ------------------------------------------------------------------------------------

    @abstractmethod
    def example(self, row: Mapping[str, Any], where: str) -> Example:
        """Build an example from one row of data.

        Args:
            row: the row's fields.
            where: "FILE, line 7" or "hub REPO, row 7", for error texts.

        Raises:
            InputError: when a field is missing or wrong; the text names `where` and the field.
        """

    @abstractmethod
    def extract(self, text: str, example: Example, rule: str = "flexible") -> Any | None:
        """Read the answer from a model's raw text; None when there is none (a blank).

        Raises:
            InputError: for a rule the task does not have.
        """

    def extracted(self, text: str, example: Example, rule: str, answer: Any | None) -> Any:
        """Return what a record shows as extracted: the answer as JSON data, unless the rule cuts out a text."""
        return plain(answer)

    @abstractmethod
    def score(self, answer: Any | None, example: Example) -> Score:
        """Score one answer (typed, or JSON data as records hold it); None is a blank."""

    def check_scoring(self) -> None:
        """Check that `score` can work here; called before a run spends anything.

        Raises:
            InputError: when what scoring needs is missing (a chess engine, a judge); the text says how to get it.
        """
        return  # most tasks need nothing

    def demonstrations(self) -> list[Demonstration]:
        """Return the task's worked problems, best first; none of them is in any split."""
        return []

    def generate(self) -> Iterator[dict[str, Any]] | None:
        """Yield rows made by the task's own generator; None when it has none."""
        return None

    def aggregate(self, scored: Sequence[Scored]) -> dict[str, float | None]:
        """Compute the corpus scores, fractions in [0, 1]; None ("n/a") where nothing is in the denominator."""
        total = len(scored)
        if not total:
            return {self.primary: None, "blank": None}
        return {
            self.primary: sum(item.score.value for item in scored) / total,
            "blank": sum(item.score.blank for item in scored) / total,
        }

    def assign_splits(self, examples: Sequence[Example]) -> list[SplitName]:
        """Return each example's split: by a hash of its content, half train, a quarter dev, a quarter test."""
        return [split_of(example.fingerprint) for example in examples]

    # -- what every task can do ----------------------------------------------------------------------------------

    def rows(self) -> Iterable[tuple[Mapping[str, Any], str]]:
        """Yield (row, where) from the task's source."""
        from .sources import rows_of

        return rows_of(self)

    @cached_property
    def examples(self) -> list[Example]:
        """All examples in the source's order; rows with the same content are kept once.

        Raises:
            InputError: for bad or no data.
        """
        seen: dict[str, Example] = {}
        ids: dict[str, str] = {}
        for row, where in self.rows():
            example = self.example(row, where)
            if example.fingerprint in seen:
                continue
            if example.id in ids:
                raise InputError(f"{where}: the id '{example.id}' stands for another example already")
            seen[example.fingerprint] = example
            ids[example.id] = example.fingerprint
        if not seen:
            raise InputError(f"{self.source}: no examples for task '{self.name}'")
        return list(seen.values())

    @property
    def source(self) -> str:
        """Where the examples come from, in words."""
        from .sources import describe_source

        return describe_source(self)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the content of all examples, whatever their order."""
        digest = hashlib.sha256(f"{self.name}/{self.version}".encode())
        for fingerprint in sorted(example.fingerprint for example in self.examples):
            digest.update(fingerprint.encode())
        return digest.hexdigest()

    def split(
        self,
        name: SplitName | Literal["all"] = "dev",
        *,
        limit: int | None = None,
        order: Literal["shuffled", "file"] = "shuffled",
        seed: int = 0,
    ) -> list[Example]:
        """Return one split's examples, or all of them.

        Args:
            name: which split; "all" for everything.
            limit: at most so many examples.
            order: "shuffled" is a fixed shuffle by content and seed; "file" is the source's order.
            seed: of the shuffle. Splits do not depend on it.

        Raises:
            InputError: for an unknown split, a limit below 1, or a split with no example in it.
        """
        if name not in (*SPLITS, "all"):
            raise InputError(f"unknown split '{name}'. Known: train, dev, test, all")
        if limit is not None and limit < 1:
            raise InputError(f"limit is {limit}; it must be at least 1")
        examples = self.examples
        if name != "all":
            splits = self.assign_splits(examples)
            examples = [example for example, split in zip(examples, splits, strict=True) if split == name]
        if order == "shuffled":
            examples = sorted(examples, key=lambda example: shuffle_key(example.fingerprint, seed))
        if not examples:
            raise InputError(f"{self.source}: the {name} split is empty; use more data or --split all")
        return list(examples[:limit])

    def _check_rule(self, rule: str) -> None:
        if rule not in self.extract_rules:
            raise InputError(
                f"task '{self.name}' has no extraction rule '{rule}'. Known: {', '.join(self.extract_rules)}"
            )


def shuffle_key(fingerprint: str, seed: int) -> str:
    """Return the sort key of a fixed shuffle."""
    return hashlib.sha256(f"{seed}:{fingerprint}".encode()).hexdigest()


def split_of(fingerprint: str) -> SplitName:
    """Return the split that a content hash belongs to: half train, a quarter dev, a quarter test."""
    # Hashed again, so that the split is independent of any order made from the fingerprint itself.
    share = int(hashlib.sha256(f"split:{fingerprint}".encode()).hexdigest()[:8], 16) / 0x1_0000_0000
    return "train" if share < 0.5 else "dev" if share < 0.75 else "test"


def field_of(row: Mapping[str, Any], name: str, where: str, *aliases: str) -> Any:
    """Return a field of a row under its name or an alias.

    Raises:
        InputError: when the row has none of them; the text lists the fields it has.
    """
    for key in (name, *aliases):
        if key in row and row[key] is not None:
            return row[key]
    raise InputError(f"{where}: the field '{name}' is missing. Fields there: {', '.join(map(str, row)) or 'none'}")


def row_id(row: Mapping[str, Any], content: str) -> str:
    """Return a row's `id` or `idx` as a text, else a short hash of its content."""
    for key in ("id", "idx"):
        if row.get(key) is not None:
            return str(row[key])
    return hashlib.sha256(content.encode("utf-8")).hexdigest()[:16]
