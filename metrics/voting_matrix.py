"""Decisions over a table of answers that models gave before: the majority of any set of columns, and its bounds.

A column is a model, a row an example. A cell is an answer, a blank (the model was asked and gave no readable answer) or
not run (the model was not asked). Answers are compared by voting bucket, so "18", "18.00" and "$18" are one answer.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ..errors import InputError
from ..signatures.answers import canonical
from .statistics import Interval, share_interval

Ties = Literal["first", "blank"]
Abstentions = Literal["ignore", "count"]

#: A cell of a model that was not asked.
NOT_RUN = ""


@dataclass(frozen=True)
class VotingMatrix:
    """Answers of several models to the same examples.

    Attributes:
        gold: the right answers' buckets.
        columns: each model's answers as buckets; None for a blank, `NOT_RUN` where it was not asked.
        ids: the rows' ids, for people.
    """

    gold: list[str]
    columns: dict[str, list[str | None]]
    ids: list[str] = field(default_factory=list)

    def select(self, names: Sequence[str] | None) -> dict[str, list[str | None]]:
        """Return some columns in the order asked for, or all.

        Raises:
            InputError: for no columns or unknown ones.
        """
        chosen = list(self.columns) if names is None else list(names)
        if unknown := [name for name in chosen if name not in self.columns]:
            raise InputError(f"no column '{unknown[0]}'. Columns: {', '.join(self.columns)}")
        if not chosen:
            raise InputError("no columns to decide over; there must be at least one")
        return {name: self.columns[name] for name in chosen}


def read_voting_matrix(
    path: str | Path,
    *,
    gold: str = "gold",
    ids: Sequence[str] = ("idx",),
    other: Collection[str] = (),
    blanks: Collection[str] = ("NA",),
    answers: Collection[str] | None = None,
) -> VotingMatrix:
    """Read a CSV file with a header, a row an example and a column a model.

    Args:
        path: the file.
        gold: name of the column of right answers.
        ids: names of the columns that identify a row.
        other: names of further columns that are no model's.
        blanks: cells that stand for a blank. An empty cell is one that was not run.
        answers: the answers there are, such as A to D; other cells are blanks. None for any answer.

    Raises:
        InputError: for a file that cannot be read, a missing column, a row of another length, or no gold answer.
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            rows = list(csv.reader(lines))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as CSV: {error}") from None
    header, body = (rows[0], rows[1:]) if rows else ([], [])
    for name in (gold, *ids):
        if name not in header:
            raise InputError(f"{path}, line 1: no column '{name}'. Columns: {', '.join(header) or 'none'}")
    models = [name for name in header if name not in {gold, *ids, *other}]
    if not models or not body:
        raise InputError(f"{path}: no {'rows' if models else 'columns of answers'}")
    known = None if answers is None else frozenset(map(canonical, answers))
    matrix = VotingMatrix([], {name: [] for name in models}, [])
    for line, row in enumerate(body, start=2):
        if len(row) != len(header):
            raise InputError(f"{path}, line {line}: {len(row)} cells; the header has {len(header)}")
        cells = dict(zip(header, row, strict=True))
        if not cells[gold].strip():
            raise InputError(f"{path}, line {line}, column {gold}: empty; it must be the right answer")
        matrix.gold.append(canonical(cells[gold]))
        matrix.ids.append("/".join(cells[name] for name in ids))
        for name in models:
            matrix.columns[name].append(_bucket(cells[name].strip(), blanks, known))
    return matrix


def _bucket(cell: str, blanks: Collection[str], known: Collection[str] | None) -> str | None:
    if not cell:
        return NOT_RUN
    bucket = None if cell in blanks else canonical(cell)
    return None if known is not None and bucket not in known else bucket


@dataclass(frozen=True)
class Verdict:
    """The decision on one row.

    Attributes:
        answer: the winning bucket; None for a blank.
        tie: several answers had the most votes.
        votes: how many columns voted for the winner, or for each of the tied ones.
        voters: how many columns gave an answer.
        asked: how many columns were run.
    """

    answer: str | None
    tie: bool
    votes: int
    voters: int
    asked: int


def decide_row(cells: Sequence[str | None], *, ties: Ties = "first", abstentions: Abstentions = "ignore") -> Verdict:
    """Return the plurality of one row's answers; see `decide` for the arguments."""
    asked = [cell for cell in cells if cell != NOT_RUN]
    counts = Counter(cell for cell in asked if cell is not None)
    most = max(counts.values(), default=0)
    leaders = [cell for cell in counts if counts[cell] == most]  # in the order of the columns
    voters = counts.total()
    tie = len(leaders) > 1
    blank = not leaders or (tie and ties == "blank")
    if abstentions == "count" and len(asked) - voters > most:
        blank = True
    return Verdict(None if blank else leaders[0], tie, most, voters, len(asked))


def decide(
    matrix: VotingMatrix,
    columns: Sequence[str] | None = None,
    *,
    ties: Ties = "first",
    abstentions: Abstentions = "ignore",
) -> list[Verdict]:
    """Return the majority vote (the answer with the most votes) of some columns on every row.

    Args:
        matrix: the answers.
        columns: which models vote, in the order that breaks ties; all of them when None.
        ties: "first": of tied answers the one whose first voter comes first among the columns wins; "blank": a tie is
            no answer.
        abstentions: "ignore": blanks do not vote; "count": there is no answer when more models abstain than vote for
            the winner. Models that were not asked never count.

    Raises:
        InputError: for unknown columns or options.
    """
    if ties not in ("first", "blank"):
        raise InputError(f"unknown way to break ties '{ties}'. Known: first, blank")
    if abstentions not in ("ignore", "count"):
        raise InputError(f"unknown treatment of abstentions '{abstentions}'. Known: ignore, count")
    chosen = matrix.select(columns)
    return [decide_row(cells, ties=ties, abstentions=abstentions) for cells in zip(*chosen.values(), strict=True)]


@dataclass(frozen=True)
class VoteReport:
    """How a set of models does alone, voting, and at best.

    Attributes:
        n: rows that some of the models was asked; the others are in no denominator.
        not_asked: rows that none of them was asked.
        single: each model's accuracy over the rows it was asked, with its interval.
        best_single: the most accurate of the models that were asked all n rows.
        majority: accuracy of the vote; a blank is wrong.
        oracle: share of rows that some model has right.
        ties: rows on which the vote was tied.
        blanks: rows on which the vote gave no answer.
    """

    n: int
    not_asked: int
    single: dict[str, Interval]
    best_single: str
    majority: Interval
    oracle: Interval
    ties: int
    blanks: int


def vote_report(
    matrix: VotingMatrix,
    columns: Sequence[str] | None = None,
    *,
    ties: Ties = "first",
    abstentions: Abstentions = "ignore",
    level: float = 0.95,
) -> VoteReport:
    """Return the accuracy of single models, of their vote and of the oracle; see `decide` for the arguments.

    Raises:
        InputError: for unknown columns or options, or where no model was asked anything.
    """
    chosen = matrix.select(columns)
    verdicts = decide(matrix, list(chosen), ties=ties, abstentions=abstentions)
    asked = [row for row, verdict in enumerate(verdicts) if verdict.asked]
    if not asked:
        raise InputError("none of the columns has an answer on any row")
    n = len(asked)
    single = {}
    for name, cells in chosen.items():
        run = [row for row in asked if cells[row] != NOT_RUN]
        if run:
            single[name] = share_interval(sum(cells[row] == matrix.gold[row] for row in run), len(run), level=level)
    whole = [name for name, found in single.items() if found.n == n] or list(single)
    voted = [verdicts[row] for row in asked]
    right = sum(verdict.answer == matrix.gold[row] for row, verdict in zip(asked, voted, strict=True))
    reached = sum(any(cells[row] == matrix.gold[row] for cells in chosen.values()) for row in asked)
    return VoteReport(
        n=n,
        not_asked=len(verdicts) - n,
        single=single,
        best_single=max(whole, key=lambda name: single[name].estimate),
        majority=share_interval(right, n, level=level),
        oracle=share_interval(reached, n, level=level),
        ties=sum(verdict.tie for verdict in voted),
        blanks=sum(verdict.answer is None for verdict in voted),
    )
