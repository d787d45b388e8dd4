"""Answers: voting buckets, how they are shown, grids in every shape."""

from __future__ import annotations

from fractions import Fraction

import pytest
from pydantic import BaseModel, ValidationError

from townhall.signatures.answers import Grid, canonical, display, fold, house_number, plain

HOUSES = {"House 1": {"Name": "Ann", "Pet": "cat"}, "House 2": {"Name": "Bob", "Pet": "dog"}}
GRID = Grid(header=["House", "Name", "Pet"], rows=[["1", "Ann", "cat"], ["2", "Bob", "dog"]])


class Point(BaseModel):
    x: float
    y: float | None = None


# -- buckets -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "same",
    [
        [0.5, "0.5", "1/2", "\\frac12", "\\frac{1}{2}", Fraction(1, 2), ".5"],
        [1200, "1,200", "$1,200", 1200.0, "1200.00", "1200."],
        [-7, "-7", "\u22127", -7.0],
        ["Paris", "paris", " PARIS. ", "paris!"],
        ["a  b", "A B", "a\tb"],
        ["yes", "Yes.", "YES"],
        [True, "true"],
        [Point(x=1), Point(x=1.0, y=None)],
        [{"a": 1, "b": 2}, {"b": 2, "a": 1}],
        [[1, 2], (1, 2)],
    ],
)
def test_answers_that_mean_the_same_are_one_bucket(same):
    assert len({canonical(answer) for answer in same}) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [(5, -5), (711, 11), ("A", "B"), ("yes", "no"), (0.1, 0.2), ([1, 2], [2, 1]), (1, 10), ("1/3", "0.333")],
)
def test_answers_that_differ_are_two_buckets(first, second):
    assert canonical(first) != canonical(second)


def test_no_answer_has_no_bucket():
    assert canonical(None) == ""


def test_a_binary_fraction_is_the_decimal_that_was_written():
    assert canonical(0.1) == "1/10"


@pytest.mark.parametrize("text", ["9" * 5000, "1e999999999", "1/" + "9" * 5000, "nan", "inf"])
def test_what_is_too_big_to_be_a_number_still_has_a_bucket(text):
    assert canonical(text)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 1e308, 10**400])
def test_extreme_numbers_have_a_bucket(number):
    assert canonical(number)


# -- showing -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "(no answer)"),
        (42, "42"),
        (42.0, "42"),
        (0.5, "0.5"),
        (Fraction(1, 2), "0.5"),
        (Fraction(6, 2), "3"),
        ("Paris", "Paris"),
        (True, "true"),
        ([1, "b"], '[1, "b"]'),
        (Point(x=1.5), '{"x": 1.5, "y": null}'),
        (GRID, "House | Name | Pet\n1 | Ann | cat\n2 | Bob | dog"),
    ],
)
def test_answers_are_shown_as_people_write_them(answer, text):
    assert display(answer) == text


def test_plain_data_is_json_data():
    assert plain(GRID) == {"header": ["House", "Name", "Pet"], "rows": [["1", "Ann", "cat"], ["2", "Bob", "dog"]]}
    assert plain({1: Fraction(1, 4), "b": (2.0,)}) == {"1": 0.25, "b": [2]}
    assert plain(1e20) == 1e20


# -- grids -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape",
    [
        HOUSES,
        {"house1": HOUSES["House 1"], "house2": HOUSES["House 2"]},
        {"2": HOUSES["House 2"], "1": HOUSES["House 1"]},
        {1: HOUSES["House 1"], 2: HOUSES["House 2"]},
        {"solution": HOUSES},
        {"answer": {"grid": HOUSES}},
        {"reasoning": "since", "solution": HOUSES},
        {"header": ["House", "Name", "Pet"], "rows": [["1", "Ann", "cat"], ["2", "Bob", "dog"]]},
        {"header": ["House", "Name", "Pet"], "rows": [[1, "Ann", "cat"], [2, "Bob", "dog"]]},
        {"header": ["Name", "Pet"], "rows": [["Ann", "cat"], ["Bob", "dog"]]},
        {"header": ["House", "Name", "Pet"], "rows": [["Ann", "cat"], ["Bob", "dog"]]},
        {
            "header": ["House", "Name", "Pet"],
            "rows": [{"House": 1, "Name": "Ann", "Pet": "cat"}, {"Name": "Bob", "Pet": "dog"}],
        },
        [{"House": 1, "Name": "Ann", "Pet": "cat"}, {"House": "House 2", "Name": "Bob", "Pet": "dog"}],
        [{"Name": "Ann", "Pet": "cat"}, {"Name": "Bob", "Pet": "dog"}],
        {"House 1": {"Name": ["Ann"], "Pet": "cat"}, "House 2": {"Name": "Bob", "Pet": "dog"}},
        '{"House 1": {"Name": "Ann", "Pet": "cat"}, "House 2": {"Name": "Bob", "Pet": "dog"}}',
        GRID,
    ],
)
def test_grids_are_read_in_every_shape_that_models_write(shape):
    assert Grid.model_validate(shape) == GRID


@pytest.mark.parametrize("shape", ["House 1 is Ann's.", 7, None, [], {}, {"answer": "Ann"}, ["Ann"], [[1, 2]]])
def test_what_is_no_grid_is_refused(shape):
    with pytest.raises(ValidationError):
        Grid.model_validate(shape)


def test_missing_null_and_short_cells_are_blank():
    grid = Grid.model_validate({"House 1": {"Name": "Ann", "Pet": None}, "House 2": {"Name": "Bob"}, "House 3": None})
    assert grid.rows == [["1", "Ann", ""], ["2", "Bob", ""], ["3", "", ""]]
    assert grid.cell(1, "Pet") == grid.cell(3, "Name") == grid.cell(9, "Name") == grid.cell(1, "Age") == ""


@pytest.mark.parametrize("cell", ["?", "???", "___", "-", "N/A", "none", "Unknown"])
def test_cells_that_say_nothing_are_blank(cell):
    grid = Grid(header=["House", "Name"], rows=[["1", cell]])
    assert grid.cell(1, "name") == ""
    assert grid.canonical() == Grid(header=["House", "Name"], rows=[["1", ""]]).canonical()


def test_cells_are_found_whatever_the_case_and_order():
    grid = Grid(header=["House", "favourite Pet"], rows=[["2", "Dog"], ["1", "cat"]])
    assert grid.cell(2, "Favourite  pet") == "Dog"
    assert grid.cell(1, "favourite pet") == "cat"


def test_grids_that_mean_the_same_are_one_bucket():
    other = Grid(header=["House", "pet", "name"], rows=[["House 2", "DOG", "bob"], ["1", "Cat", "ann "]])
    assert canonical(other) == canonical(GRID)
    changed = Grid(header=GRID.header, rows=[["1", "Ann", "dog"], ["2", "Bob", "cat"]])
    assert canonical(changed) != canonical(GRID)


@pytest.mark.parametrize(
    ("key", "number"),
    [
        ("House 1", 1),
        ("house1", 1),
        ("HOUSE_2", 2),
        ("2", 2),
        (3, 3),
        ("#4", 4),
        ("No. 5", 5),
        ("Ann", None),
        ("", None),
    ],
)
def test_house_numbers(key, number):
    assert house_number(key) == number


def test_folding_is_of_case_and_white_space():
    assert fold("  A\n b ") == "a b"
    assert fold(12) == "12"
