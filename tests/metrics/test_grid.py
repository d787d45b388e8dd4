"""Scoring grids: cells, puzzles, classes of size."""

from __future__ import annotations

import pytest

from townhall.metrics.grid import (
    GRID_SCORES,
    SCALES,
    aggregate_grids,
    by_size,
    compare,
    difficulty,
    grid_score,
    scale,
    size_name,
)
from townhall.signatures.answers import Grid

GOLD = Grid(header=["House", "Name", "BookGenre"], rows=[["1", "Eric", "science fiction"], ["2", "Arnold", "7"]])


def score_of(size: str, correct: int, total: int, blank: bool = False):
    """A score whose first `correct` cells are right."""
    header = ["House", *(f"A{column}" for column in range(total // 2))]
    gold = Grid(header=header, rows=[[str(h), *["x"] * (total // 2)] for h in (1, 2)])
    cells = ["x"] * correct + ["y"] * (total - correct)
    answer = Grid(header=header, rows=[["1", *cells[: total // 2]], ["2", *cells[total // 2 :]]])
    return grid_score(None if blank else answer, gold, size)


def test_cells_compare_without_regard_to_case_and_space() -> None:
    answer = Grid(
        header=["House", "Name", "BookGenre"], rows=[["1", " ERIC", "Science  Fiction "], ["2", "arnold", "7"]]
    )
    assert compare(answer, GOLD).correct == 4


def test_a_number_cell_equals_its_text() -> None:
    answer = Grid.model_validate({"House 1": {"Name": "Eric"}, "House 2": {"Name": "Arnold", "BookGenre": 7}})
    comparison = compare(answer, GOLD)
    assert comparison.correct == 3
    assert [(cell.house, cell.attribute, cell.given, cell.right) for cell in comparison.wrong] == [
        (1, "BookGenre", "", "science fiction")
    ]


def test_null_missing_and_placeholder_cells_are_wrong_but_counted() -> None:
    answer = Grid.model_validate({"1": {"Name": None, "BookGenre": "___"}, "2": {"Name": "Arnold"}})
    comparison = compare(answer, GOLD)
    assert (comparison.correct, comparison.total) == (1, 4)


def test_a_missing_house_is_wrong_but_counted() -> None:
    answer = Grid.model_validate({"House 2": {"Name": "Arnold", "BookGenre": "7"}})
    assert (compare(answer, GOLD).correct, compare(answer, GOLD).total) == (2, 4)


@pytest.mark.parametrize("key", ["House {}", "house{}", "HOUSE_{}", "{}"])
def test_keys_of_houses_are_understood(key: str) -> None:
    answer = Grid.model_validate(
        {
            key.format(2): {"book_genre": "7", "name": "Arnold"},
            key.format(1): {"book_genre": "science fiction", "name": "Eric"},
        }
    )
    assert compare(answer, GOLD).correct == 4


def test_columns_and_houses_may_come_in_another_order_and_more_than_asked() -> None:
    answer = Grid(
        header=["House", "Book Genre", "Shoe", "Name"],
        rows=[["2", "7", "38", "Arnold"], ["1", "science fiction", "41", "Eric"], ["3", "x", "x", "x"]],
    )
    comparison = compare(answer, GOLD)
    assert (comparison.correct, comparison.total) == (4, 4)


def test_a_gold_cell_that_looks_like_a_placeholder_can_be_right() -> None:
    gold = Grid(header=["House", "Pet"], rows=[["1", "none"]])
    assert compare(Grid(header=["House", "Pet"], rows=[["1", "None"]]), gold).correct == 1


def test_the_value_is_all_or_nothing_unless_cells_are_credited() -> None:
    answer = Grid(header=["House", "Name", "BookGenre"], rows=[["1", "Eric", "science fiction"], ["2", "Arnold", "8"]])
    assert grid_score(answer, GOLD, "2*2").value == 0
    assert grid_score(answer, GOLD, "2*2", credit="cell").value == 0.75
    assert grid_score(GOLD, GOLD, "2*2").value == grid_score(GOLD, GOLD, "2*2", credit="cell").value == 1
    assert grid_score(answer, GOLD, "2*2").parts == {"correct_cells": 3, "total_cells": 4, "solved": 0, "size": "2*2"}


def test_the_feedback_names_the_wrong_cells() -> None:
    answer = Grid(header=["House", "Name", "BookGenre"], rows=[["1", "Eric", "science fiction"], ["2", "Arnold", ""]])
    feedback = grid_score(answer, GOLD, "2*2", hint="Clue 1 is broken.").feedback
    assert feedback == "3 of 4 cells are right. Wrong: house 2 BookGenre is 7, not blank. Clue 1 is broken."


@pytest.mark.parametrize(
    "answer",
    [None, Grid(header=["House", "Name"], rows=[]), Grid(header=["House", "Shoe"], rows=[["1", "41"], ["2", "38"]])],
)
def test_no_grid_no_rows_or_no_column_asked_for_is_a_blank(answer: Grid | None) -> None:
    score = grid_score(answer, GOLD, "2*2")
    assert (score.value, score.blank) == (0, True)
    assert score.parts["total_cells"] == 4


def test_the_classes_of_size_are_those_of_the_benchmark() -> None:
    assert [size for size in ("2*2", "2*6", "3*3", "3*4", "4*2", "6*6") if difficulty(size) == "easy"] == [
        "2*2",
        "2*6",
        "3*3",
    ]
    assert {name: len(sizes) for name, sizes in SCALES.items()} == {"small": 8, "medium": 7, "large": 5, "xl": 5}
    assert [scale(size) for size in ("4*2", "5*2", "4*6", "6*4")] == ["small", "medium", "large", "xl"]
    assert difficulty("7*7") is None
    assert scale("7*7") is None


def test_sizes_are_written_one_way() -> None:
    assert [size_name(size) for size in ("5*6", "5x6", " 5 X 6 ", "5×6", "five")] == ["5*6"] * 4 + [None]


def test_the_corpus_scores_pool_cells_and_count_blanks_as_wrong() -> None:
    scores = [
        score_of("2*2", 4, 4),
        score_of("2*2", 2, 4),
        score_of("4*2", 8, 8),
        score_of("6*6", 0, 36, blank=True),
    ]
    assert aggregate_grids(scores) == {
        "puzzle": 0.5,
        "easy": 0.5,
        "hard": 0.5,
        "small": pytest.approx(2 / 3),
        "medium": None,
        "large": None,
        "xl": 0.0,
        "cell": pytest.approx(14 / 52),
        "blank": 0.25,
    }


def test_crediting_cells_does_not_change_the_corpus_scores() -> None:
    half = Grid(header=["House", "Name", "BookGenre"], rows=[["1", "Eric", "x"], ["2", "x", "7"]])
    by_puzzle, by_cell = (
        aggregate_grids([grid_score(half, GOLD, "2*2", credit=credit)]) for credit in ("puzzle", "cell")
    )
    assert by_puzzle == by_cell
    assert (by_cell["puzzle"], by_cell["cell"]) == (0, 0.5)


def test_nothing_scored_is_not_applicable_everywhere() -> None:
    assert aggregate_grids([]) == dict.fromkeys(GRID_SCORES)


def test_scores_by_size() -> None:
    scores = [score_of("4*2", 8, 8), score_of("2*2", 1, 4), score_of("2*2", 0, 4, blank=True)]
    assert by_size(scores) == {
        "2*2": {"n": 2, "puzzle": 0.0, "cell": 0.125, "blank": 0.5},
        "4*2": {"n": 1, "puzzle": 1.0, "cell": 1.0, "blank": 0.0},
    }
