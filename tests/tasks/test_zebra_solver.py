"""Solving puzzles: against a brute-force search, and against real puzzles."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest

from townhall.errors import InputError
from townhall.tasks.zebra.clues import Clue, Mention, Puzzle, parse_puzzle
from townhall.tasks.zebra.generator import make_puzzle
from townhall.tasks.zebra.solver import Uniqueness, solutions, superfluous, unique_rows

COLORS = ("red", "white", "yellow")
NAMES = ("Eric", "Arnold", "Peter")
ERIC, ARNOLD = Mention("Name", "Eric"), Mention("Name", "Arnold")
RED, WHITE = Mention("Color", "red"), Mention("Color", "white")


def three(*clues: Clue) -> Puzzle:
    return Puzzle(3, (("Name", NAMES), ("Color", COLORS)), clues)


def brute_force(puzzle: Puzzle) -> list[dict[Mention, int]]:
    """All solutions, by trying every arrangement, attribute after attribute."""
    partial: list[dict[Mention, int]] = [{}]
    for name, values in puzzle.attributes:
        orders = list(itertools.permutations(range(1, puzzle.houses + 1)))
        partial = [
            {**places, **{Mention(name, value): house for value, house in zip(values, order, strict=True)}}
            for places in partial
            for order in orders
        ]
        partial = [places for places in partial if all(clue.holds(places) is not False for clue in puzzle.clues)]
    return partial


def test_all_solutions_of_a_puzzle_without_clues_are_found() -> None:
    assert len(solutions(three(), limit=100)) == 36
    assert len(solutions(three(), limit=2)) == 2


def test_a_contradiction_has_no_solution() -> None:
    puzzle = three(Clue("directly left", ERIC, RED), Clue("same", ERIC, RED))
    assert solutions(puzzle) == []
    with pytest.raises(InputError, match="has no solution"):
        unique_rows(puzzle)


def test_an_open_puzzle_is_refused_where_one_solution_is_needed() -> None:
    with pytest.raises(InputError, match="more than one solution"):
        unique_rows(three(Clue("at", ERIC, house=1)))


def test_the_only_solution_is_found() -> None:
    # Eric, Arnold from the left; red two to the right of Eric; white with Eric.
    puzzle = three(Clue("directly left", ERIC, ARNOLD), Clue("one between", RED, ERIC), Clue("same", WHITE, ERIC))
    # Eric is in house 1 (house 3 leaves no room on his right), so red is in house 3.
    assert unique_rows(puzzle) == [["1", "Eric", "white"], ["2", "Arnold", "yellow"], ["3", "Peter", "red"]]


def test_superfluous_clues_are_named_by_number() -> None:
    clues = (
        Clue("at", ERIC, house=1),
        Clue("at", ARNOLD, house=2),
        Clue("same", RED, ERIC),
        Clue("same", WHITE, ARNOLD),
        Clue("not at", ERIC, house=2),
    )
    puzzle = three(*clues)
    assert superfluous(puzzle, solutions(puzzle)[0]) == [5]


@pytest.mark.parametrize("kind", ["same", "directly left", "left", "right", "next", "one between", "two between"])
@pytest.mark.parametrize("houses", [2, 3, 4])
def test_each_kind_is_solved_as_brute_force_does(kind: str, houses: int) -> None:
    names = ("Eric", "Arnold", "Peter", "Alice")[:houses]
    colors = ("red", "white", "yellow", "green")[:houses]
    clue = Clue(kind, ERIC, RED)  # type: ignore[arg-type]  # parametrised over the literal's values
    puzzle = Puzzle(houses, (("Name", names), ("Color", colors)), (clue,))
    found = solutions(puzzle, limit=1000)
    expected = brute_force(puzzle)
    assert sorted(map(puzzle.rows, found)) == sorted(map(puzzle.rows, expected))


@pytest.mark.parametrize("seed", range(6))
def test_random_puzzles_with_some_clues_missing_are_solved_as_brute_force_does(seed: int) -> None:
    rng = random.Random(seed)
    puzzle, _ = make_puzzle(4, 3, rng)
    fewer = Puzzle(4, puzzle.attributes, puzzle.clues[2:])
    found = solutions(fewer, limit=20_000)
    assert len(found) > 1
    assert sorted(map(fewer.rows, found)) == sorted(map(fewer.rows, brute_force(fewer)))


def test_uniqueness_of_subsets_does_not_depend_on_what_was_asked_before() -> None:
    puzzle, solution = make_puzzle(4, 3, random.Random(1))
    every = range(len(puzzle.clues))
    subsets = [set(chosen) for size in (len(every), len(every) - 1) for chosen in itertools.combinations(every, size)]
    forward, backward = Uniqueness(puzzle, solution), Uniqueness(puzzle, solution)
    forward.extend(puzzle.clues)
    backward.extend(puzzle.clues)
    answers = [forward.holds(subset) for subset in subsets]
    assert answers == [backward.holds(subset) for subset in reversed(subsets)][::-1]
    assert answers == [True] + [False] * len(every)


def test_all_216_real_puzzles_have_the_published_solution_only_and_no_superfluous_clue(shared: Path) -> None:
    solved = 0
    for name in ("puzzles.jsonl", "extra_grid_200.jsonl"):
        for line in (shared / "data" / "zebra" / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            puzzle = parse_puzzle(row["puzzle"])
            assert puzzle.header == row["header"]
            assert len(puzzle.clues) == row["n_clues"]
            assert puzzle.text().casefold() == row["puzzle"].casefold()
            assert unique_rows(puzzle) == row["rows"], row["id"]
            assert superfluous(puzzle, puzzle.places(row["header"], row["rows"])) == [], row["id"]
            solved += 1
    assert solved == 216
