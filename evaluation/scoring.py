"""Corpus scores from scored examples, by group too, and the scoring of outputs that a file holds.

Nothing here needs DSPy: `townhall score` calls no model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ..errors import InputError
from ..metrics.score import Score
from ..registry import nearest
from ..tasks.base import Example, Scored, Task
from ..tasks.sources import read_file
from .records import Group, Interval, Record

if TYPE_CHECKING:
    from ..metrics.parity import GroupAccuracy

Scores = dict[str, float | None]


@dataclass(frozen=True)
class Row:
    """One example with the scores of its samples (one, where nothing was sampled repeatedly).

    Attributes:
        samples: at least one.
        group: the value of the field grouped by, as a text.
    """

    samples: tuple[Scored, ...]
    group: str | None = None

    @property
    def value(self) -> float:
        """The main score, averaged over the samples."""
        return sum(sample.score.value for sample in self.samples) / len(self.samples)


@dataclass(frozen=True)
class Report:
    """Corpus scores.

    Attributes:
        n: examples; blanks and failures are among them.
        scores: by name, fractions in [0, 1]; None for "n/a". With groups also `parity` and `parity_min`.
        groups: per value of the field grouped by; each with `accuracy` and `parity` among its scores.
    """

    n: int
    scores: Scores
    groups: dict[str, Group] = field(default_factory=dict)


def corpus_scores(task: Task, rows: Sequence[Row]) -> Scores:
    """Return the task's corpus scores.

    Rows with several samples count once: the scores are computed from every row's first sample, from every row's
    second sample, and so on, and averaged (a row with fewer samples than another repeats its own in turn). That is the
    score to expect of one sample.
    """
    passes = max((len(row.samples) for row in rows), default=1)
    tables = [task.aggregate([row.samples[turn % len(row.samples)] for row in rows]) for turn in range(passes)]
    if passes == 1:
        return tables[0]
    means: Scores = {}
    for name in tables[0]:
        values = [value for table in tables if (value := table.get(name)) is not None]
        means[name] = sum(values) / len(values) if values else None
    return means


def report(task: Task, rows: Sequence[Row]) -> Report:
    """Return the corpus scores of all rows and, where rows have groups, of each group.

    A group's `accuracy` is the mean of its examples' main score and its `parity` that accuracy over the best group's;
    the whole's `parity` is the mean over groups, `parity_min` the least.
    """
    scores = corpus_scores(task, rows)
    members: dict[str, list[Row]] = {}
    for row in rows:
        if row.group is not None:
            members.setdefault(row.group, []).append(row)
    if not members:
        return Report(len(rows), scores)
    from ..metrics.parity import group_report

    parity = group_report({name: [row.value for row in found] for name, found in members.items()})
    groups = {name: _group(task, found, parity.groups[name]) for name, found in sorted(members.items())}
    return Report(len(rows), {**scores, "parity": parity.mean_parity, "parity_min": parity.min_parity}, groups)


def _group(task: Task, rows: Sequence[Row], found: GroupAccuracy) -> Group:
    scores = {**corpus_scores(task, rows), "accuracy": found.accuracy, "parity": found.parity}
    intervals: dict[str, Interval] = {}
    if found.interval is not None:
        mine = Interval.of(found.interval)
        same = scores.get(task.primary) == found.accuracy
        intervals = {"accuracy": mine, **({task.primary: mine} if same else {})}
    return Group(n=len(rows), scores=scores, intervals=intervals, flags=list(found.flags))


def score_records(task: Task, records: Iterable[Record], by: str | None = None) -> Report:
    """Return the corpus scores of a run's records.

    Args:
        task: computes the corpus scores.
        records: of a run; failures and blanks are scored 0 and counted.
        by: a field of the examples' `meta` to group by.

    Raises:
        InputError: when an example lacks the field.
    """
    rows = []
    for record in records:
        group = group_of(record.meta, by, f"example '{record.id}'") if by else None
        rows.append(Row((record.scored(),), group))
    return report(task, rows)


def group_of(fields: Mapping[str, Any], by: str, where: str) -> str:
    """Return an example's group as a text.

    Raises:
        InputError: when it has no such field; the text lists those it has.
    """
    value = fields.get(by)
    if value is None:
        known = [name for name, value in fields.items() if isinstance(value, str | int | float | bool)]
        raise InputError(
            f"{where}: no field '{by}' to group by.{nearest(by, known)} Fields there: {', '.join(known) or 'none'}"
        )
    if isinstance(value, dict | list):
        raise InputError(f"{where}, field {by}: a JSON {type(value).__name__} cannot be a group; it must be one value")
    return str(value)


# -- outputs in a file ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OutputScores:
    """The scores of the outputs in a file.

    Attributes:
        task: name of the task.
        extract: the extraction rule.
        report: the scores.
        unanswered: how many examples of `--data` have no output; they are not counted.
    """

    task: str
    extract: str
    report: Report
    unanswered: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return what `townhall score --json` prints."""
        return {
            "task": self.task,
            "n": self.report.n,
            "extract": self.extract,
            "scores": self.report.scores,
            "groups": {name: {"n": group.n, "scores": group.scores} for name, group in self.report.groups.items()},
        }


def score_outputs(
    task: Task,
    outputs: Path | str,
    rule: str | None = None,
    by: str | None = None,
    records: Path | str | None = None,
) -> OutputScores:
    """Score raw model outputs; no model is called.

    Args:
        task: reads and scores the answers. The gold comes from its data by the rows' `id` or `idx`; rows that are not
            in it, or all rows when the task was given no data, must have their own `gold`.
        outputs: a JSONL file or a JSON array of rows with `output`: a text, or a list of samples. A null output is a
            blank. Several samples are scored one by one; the row's score is their mean.
        rule: the extraction rule; the task's first when None.
        by: a field to group by: of the rows, or of the examples; the task's `default_by` when None.
        records: a JSONL file to write, one line a row in their order: `id`, `extracted`, `score`, `parts`, `blank`, and
            the field grouped by. `extracted`, `parts` and `blank` are lists where the output is a list of several.

    Raises:
        InputError: for unreadable rows, or a row whose gold is not found; the text names file, line and field.
    """
    rule = rule or task.extract_rules[0]
    by = by or task.default_by
    if rule not in task.extract_rules:
        hint, known = nearest(rule, list(task.extract_rules)), ", ".join(task.extract_rules)
        raise InputError(f"task '{task.name}' has no extraction rule '{rule}'.{hint} Known: {known}")
    task.check_scoring()
    if records is not None and Path(records).exists() and Path(records).samefile(outputs):
        raise InputError(f"{records}: would overwrite the outputs; name another file for the records")
    golds = _Golds(task)
    rows: list[Row] = []
    with _Writer(records) as writer:
        for fields, where in read_file(Path(outputs)):
            example = golds.find(fields, where)
            texts = _outputs(fields, where)
            group = group_of({**example.meta, **fields}, by, where) if by else None
            answers = [task.extract(text, example, rule) if text and text.strip() else None for text in texts]
            samples = tuple(Scored(example, task.score(answer, example)) for answer in answers)
            shown = [
                task.extracted(text or "", example, rule, answer) for text, answer in zip(texts, answers, strict=True)
            ]
            row = Row(samples, group)
            rows.append(row)
            writer.write(_line(fields, example, shown, row, by))
    return OutputScores(task.name, rule, report(task, rows), golds.unanswered)


class _Golds:
    """Finds the example that an output row is for."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._by_id: dict[str, Example] | None = None
        self._seen: set[str] = set()

    def find(self, fields: Mapping[str, Any], where: str) -> Example:
        own = fields.get("gold") is not None
        if own and self.task.data is None:
            return self.task.example(fields, where)
        key = next((str(fields[name]) for name in ("id", "idx") if fields.get(name) is not None), None)
        found = self._examples().get(key) if key is not None else None
        if found is not None:
            self._seen.add(found.id)
            return found
        if own:
            return self.task.example(fields, where)
        if key is None:
            raise InputError(
                f"{where}: needs 'id' (or 'idx') to find its gold, or a 'gold' of its own. Fields there: "
                f"{', '.join(map(str, fields)) or 'none'}"
            )
        raise InputError(f"{where}: no example '{key}' in {self.task.source}, and the row has no 'gold' of its own")

    def _examples(self) -> dict[str, Example]:
        if self._by_id is None:
            self._by_id = {example.id: example for example in self.task.examples}
        return self._by_id

    @property
    def unanswered(self) -> int:
        return len(self._by_id or ()) - len(self._seen)


def _outputs(fields: Mapping[str, Any], where: str) -> list[str | None]:
    if "output" not in fields:
        raise InputError(
            f"{where}: the field 'output' is missing. Fields there: {', '.join(map(str, fields)) or 'none'}"
        )
    output = fields["output"]
    texts = output if isinstance(output, list) else [output]
    if not texts:
        return [None]
    for text in texts:
        if text is not None and not isinstance(text, str):
            raise InputError(
                f"{where}, field output: a JSON {type(text).__name__}; it must be a text or a list of texts"
            )
    return texts


def _line(
    fields: Mapping[str, Any], example: Example, extracted: Sequence[Any], row: Row, by: str | None
) -> dict[str, Any]:
    scores: list[Score] = [sample.score for sample in row.samples]
    several = len(scores) > 1
    line = {
        "id": next((fields[name] for name in ("id", "idx") if fields.get(name) is not None), example.id),
        "extracted": list(extracted) if several else extracted[0],
        "score": row.value,
        "parts": [score.parts for score in scores] if several else scores[0].parts,
        "blank": [score.blank for score in scores] if several else scores[0].blank,
    }
    return line if by is None else {**line, by: row.group}


class _Writer:
    """Writes one line a row; nothing without a path."""

    def __init__(self, path: Path | str | None) -> None:
        self._path = None if path is None else Path(path)
        self._file: TextIO | None = None

    def __enter__(self) -> _Writer:
        if self._path is not None:
            try:
                self._file = self._path.open("w", encoding="utf-8")
            except OSError as error:
                raise InputError(f"{self._path}: cannot be written ({error.strerror or error})") from None
        return self

    def write(self, line: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()
