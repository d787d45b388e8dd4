"""Reading the benchmark's puzzle texts."""

from __future__ import annotations

import pytest

from townhall.errors import InputError
from townhall.tasks.zebra.clues import Clue, Mention, Puzzle, parse_puzzle
from townhall.tasks.zebra.vocabulary import ATTRIBUTES

INTRODUCTION = (
    "There are 4 houses, numbered 1 to 4 from left to right, as seen from across the street. Each house is occupied "
    "by a different person. Each house has a unique attribute for each of the following characteristics:\n"
    " - Each person has a unique name: `Eric`, `Arnold`, `Peter`, `Alice`\n"
    " - Each mother is accompanied by their child: `Fred`, `Timothy`, `Bella`, `Alice`\n"
    " - Each person has a favorite color: `red`, `white`, `yellow`, `green`\n"
)


def read(clue: str) -> Clue:
    return parse_puzzle(f"{INTRODUCTION}\n## Clues:\n1. {clue}\n").clues[0]


ERIC, FRED, RED, WHITE = (
    Mention("Name", "Eric"),
    Mention("Children", "Fred"),
    Mention("Color", "red"),
    Mention("Color", "white"),
)


@pytest.mark.parametrize(
    ("text", "clue"),
    [
        ("Eric is in the third house.", Clue("at", ERIC, house=3)),
        ("The person's child is named Fred is not in the first house.", Clue("not at", FRED, house=1)),
        ("The person's child is named Fred is Eric.", Clue("same", FRED, ERIC)),
        ("Eric is directly left of the person who loves white.", Clue("directly left", ERIC, WHITE)),
        ("Eric is somewhere to the left of the person who loves white.", Clue("left", ERIC, WHITE)),
        ("Eric is somewhere to the right of the person who loves white.", Clue("right", ERIC, WHITE)),
        ("Eric and the person who loves white are next to each other.", Clue("next", ERIC, WHITE)),
        ("There is one house between Eric and the person who loves white.", Clue("one between", ERIC, WHITE)),
        ("There are two houses between Eric and the person who loves white.", Clue("two between", ERIC, WHITE)),
    ],
)
def test_each_kind_of_clue_is_read(text: str, clue: Clue) -> None:
    assert read(text) == clue


def test_a_mention_that_contains_the_word_is_is_split_at_the_right_place() -> None:
    assert read("The person whose favorite color is red is The person's child is named Alice.") == Clue(
        "same", RED, Mention("Children", "Alice")
    )
    assert read("The person whose favorite color is red is directly left of Alice.") == Clue(
        "directly left", RED, Mention("Name", "Alice")
    )


def test_a_child_and_a_person_of_the_same_name_are_two_values() -> None:
    assert read("Alice is the person's child is named Alice.") == Clue(
        "same", Mention("Name", "Alice"), Mention("Children", "Alice")
    )


@pytest.mark.parametrize(
    ("kind", "first", "second", "holds"),
    [
        ("directly left", 1, 2, True),
        ("directly left", 2, 1, False),
        ("directly left", 1, 3, False),
        ("left", 1, 3, True),
        ("right", 3, 1, True),
        ("right", 1, 3, False),
        ("next", 3, 2, True),
        ("next", 2, 2, False),
        ("one between", 1, 3, True),
        ("one between", 1, 2, False),
        ("two between", 4, 1, True),
        ("two between", 3, 1, False),
        ("same", 2, 2, True),
    ],
)
def test_what_each_kind_means(kind: str, first: int, second: int, holds: bool) -> None:
    clue = Clue(kind, ERIC, WHITE)  # type: ignore[arg-type]  # parametrised over the literal's values
    assert clue.holds({ERIC: first, WHITE: second}) is holds


def test_a_clue_about_a_value_that_is_nowhere_is_undecided() -> None:
    assert Clue("next", ERIC, WHITE).holds({ERIC: 1}) is None


def test_the_vocabulary_has_25_attributes_of_6_values_and_150_different_mentions() -> None:
    phrases = [phrase.casefold() for attribute in ATTRIBUTES for phrase in attribute.phrases.values()]
    assert len(ATTRIBUTES) == 25
    assert {len(attribute.phrases) for attribute in ATTRIBUTES} == {6}
    assert len(set(phrases)) == len(phrases) == 150


def test_rendering_and_reading_are_inverse() -> None:
    clues = (Clue("one between", ERIC, RED), Clue("at", FRED, house=2), Clue("same", WHITE, FRED))
    puzzle = Puzzle(4, parse_puzzle(f"{INTRODUCTION}\n## Clues:\n1. Eric is in the first house.\n").attributes, clues)
    assert parse_puzzle(puzzle.text()) == puzzle
    assert puzzle.text().startswith(INTRODUCTION)
    assert puzzle.text().endswith("3. The person who loves white is the person's child is named Fred.\n")
    assert (puzzle.size, puzzle.header) == ("4*3", ["House", "Name", "Children", "Color"])


def test_a_grid_that_uses_a_value_twice_places_it_nowhere() -> None:
    puzzle = parse_puzzle(f"{INTRODUCTION}\n## Clues:\n1. Eric is in the first house.\n")
    places = puzzle.places(["House", "Name"], [["1", "ERIC "], ["2", "Peter"], ["3", "peter"], ["4", "Nobody"]])
    assert places == {ERIC: 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Three people.", "There are N houses"),
        ("There are 2 houses.\n## Clues:\n1. x", "lists no attributes"),
        (INTRODUCTION, "no heading '## Clues:'"),
        (f"{INTRODUCTION}\n## Clues:\n1. Eric is happy.", "clue 1 cannot be read: 'Eric is happy.'"),
        (f"{INTRODUCTION}\n## Clues:\n1. Bob is in the first house.", "clue 1 cannot be read"),
        (f"{INTRODUCTION}\n## Clues:\n1. Eric is in the fifth house.", "clue 1 cannot be read"),
        (f"{INTRODUCTION}\n## Clues:\nEric is in the first house.", "a clue is a numbered line"),
        (INTRODUCTION.replace("`green`", "`pink`") + "\n## Clues:\n", "`pink` is not a value of Color"),
        (INTRODUCTION.replace(", `green`", "") + "\n## Clues:\n", "Color must list 4 different values"),
        (INTRODUCTION.replace("a favorite color", "a shoe size") + "\n## Clues:\n", "no attribute of the benchmark"),
    ],
)
def test_a_text_in_another_format_is_refused_with_its_reason(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_puzzle(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
