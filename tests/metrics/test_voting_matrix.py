"""Votes over tables of answers."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from townhall.errors import InputError
from townhall.metrics.voting_matrix import (
    NOT_RUN,
    VotingMatrix,
    decide,
    decide_row,
    read_voting_matrix,
    vote_report,
)


@pytest.mark.parametrize(
    ("cells", "options", "answer", "tie"),
    [
        (["a", "b", "b"], {}, "b", False),
        (["a", "b"], {}, "a", True),
        (["b", "a"], {}, "b", True),
        (["a", "b", "b", "a"], {"ties": "blank"}, None, True),
        (["a", None, None], {}, "a", False),
        (["a", None, None], {"abstentions": "count"}, None, False),
        (["a", None], {"abstentions": "count"}, "a", False),
        (["a", NOT_RUN, NOT_RUN], {"abstentions": "count"}, "a", False),
        ([None, None], {}, None, False),
        ([NOT_RUN], {}, None, False),
    ],
)
def test_votes_ties_and_abstentions(cells: list, options: dict, answer: str | None, tie: bool) -> None:
    verdict = decide_row(cells, **options)
    assert (verdict.answer, verdict.tie) == (answer, tie)


MATRIX = VotingMatrix(
    gold=["a", "b", "c", "d"],
    columns={
        "one": ["a", "b", "x", NOT_RUN],
        "two": ["a", "x", None, NOT_RUN],
        "three": ["x", "b", "c", NOT_RUN],
        "late": [NOT_RUN, "b", "c", NOT_RUN],
    },
)


def test_a_report_by_hand() -> None:
    report = vote_report(MATRIX, ["one", "two", "three"])
    assert (report.n, report.not_asked) == (3, 1)
    assert {name: (found.estimate, found.n) for name, found in report.single.items()} == {
        "one": (2 / 3, 3),
        "two": (1 / 3, 3),
        "three": (2 / 3, 3),
    }
    assert report.best_single == "one"
    # a, b, then x against c: a tie that the first column wins
    assert (report.majority.estimate, report.ties, report.blanks) == (2 / 3, 1, 0)
    assert report.oracle.estimate == 1
    assert vote_report(MATRIX, ["three", "one", "two"]).majority.estimate == 1
    assert vote_report(MATRIX, ["one", "two", "three"], ties="blank").blanks == 1


def test_a_model_that_was_not_asked_everything_is_not_the_best_single_one() -> None:
    report = vote_report(MATRIX)
    assert report.single["late"].n == 2
    assert report.single["late"].estimate == 1
    assert report.best_single == "one"


def test_any_set_of_columns_may_vote() -> None:
    assert [verdict.answer for verdict in decide(MATRIX, ["two", "late"])] == ["a", "x", "c", None]
    assert [verdict.asked for verdict in decide(MATRIX, ["two", "late"])] == [1, 2, 2, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": ["four"]}, "no column 'four'. Columns: one, two, three, late"),
        ({"columns": []}, "at least one"),
        ({"ties": "last"}, "unknown way to break ties 'last'"),
        ({"abstentions": "drop"}, "unknown treatment of abstentions 'drop'"),
    ],
)
def test_bad_options_are_named(arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        vote_report(MATRIX, **arguments)


def test_a_table_is_read_with_its_blanks_and_gaps(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("idx,gold,notes,a,b\n0,18,x,18.00,NA\n1,0.5,y,1/2,\n", encoding="utf-8")
    matrix = read_voting_matrix(path, other=["notes"])
    assert matrix.gold == ["18", "1/2"]
    assert matrix.columns == {"a": ["18", "1/2"], "b": [None, NOT_RUN]}
    assert matrix.ids == ["0", "1"]
    letters = tmp_path / "letters.csv"
    letters.write_text("idx,gold,a\n0,A,This\n1,B,b\n", encoding="utf-8")
    assert read_voting_matrix(letters, answers="ABCD").columns == {"a": [None, "b"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: no column 'gold'"),
        ("idx,gold\n0,1\n", "no columns of answers"),
        ("idx,gold,a\n", "no rows"),
        ("idx,gold,a\n0,1\n", "line 2: 2 cells; the header has 3"),
        ("idx,gold,a\n0,,1\n", "line 2, column gold: empty"),
    ],
)
def test_bad_tables_are_named_by_file_and_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_voting_matrix(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_voting_matrix(tmp_path / "nowhere.csv")


def test_the_answers_of_42_models_give_their_published_accuracies(shared: Path) -> None:
    folder = shared / "data" / "gsm8k"
    matrix = read_voting_matrix(folder / "zeroeval_answer_matrix.csv", other=["n_models_correct"])
    assert (len(matrix.columns), len(matrix.gold)) == (42, 1319)
    report = vote_report(matrix)
    with (folder / "zeroeval_published.csv").open(encoding="utf-8", newline="") as lines:
        published = {row["model_file"]: row for row in csv.DictReader(lines)}
    for name, found in report.single.items():
        assert 100 * found.estimate == pytest.approx(float(published[name]["published_acc"]), abs=0.0051), name
        assert found.n == int(published[name]["n"])
    assert report.best_single == "gpt-4o-2024-08-06"
    assert (report.majority.estimate, report.oracle.estimate) == pytest.approx((1277 / 1319, 1314 / 1319))
    assert report.ties == 1


def test_the_votes_of_14_models_on_mmlu(shared: Path) -> None:
    matrix = read_voting_matrix(
        shared / "data" / "mmlu" / "helm_votes_5700.csv",
        ids=["subject", "row"],
        other=["error_type", "corrected_answer"],
        answers="ABCD",
    )
    assert (len(matrix.columns), len(matrix.gold)) == (14, 5700)
    report = vote_report(matrix)
    assert (report.n, report.not_asked) == (5676, 24)
    assert report.best_single == "anthropic_claude-3-5-sonnet-20240620"
    assert report.single[report.best_single].estimate == pytest.approx(4912 / 5676)
    blank = vote_report(matrix, ties="blank")
    assert blank.blanks == blank.ties == report.ties
    assert blank.majority.estimate < report.majority.estimate < report.oracle.estimate
