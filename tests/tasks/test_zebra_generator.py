"""The puzzle generator: sizes, seeds, uniqueness, minimality, format."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from townhall.errors import InputError
from townhall.tasks.zebra.clues import Mention, Puzzle, parse_puzzle
from townhall.tasks.zebra.generator import ALL_SIZES, generate_row, generate_rows, parse_sizes


def solution_count(puzzle: Puzzle) -> int:
    """Count solutions (up to 2) by search with forward checking; shares nothing with the solver."""
    domains = {mention: frozenset(range(1, puzzle.houses + 1)) for mention in puzzle.mentions()}
    return _count(puzzle, domains, 2)


def _count(puzzle: Puzzle, domains: dict[Mention, frozenset[int]], most: int) -> int:
    narrowed = _narrow(puzzle, dict(domains))
    if narrowed is None:
        return 0
    open_mentions = [mention for mention, houses in narrowed.items() if len(houses) > 1]
    if not open_mentions:
        return 1
    mention = min(open_mentions, key=lambda item: len(narrowed[item]))
    found = 0
    for house in sorted(narrowed[mention]):
        found += _count(puzzle, {**narrowed, mention: frozenset({house})}, most - found)
        if found >= most:
            break
    return found


def _narrow(puzzle: Puzzle, domains: dict[Mention, frozenset[int]]) -> dict[Mention, frozenset[int]] | None:
    """Drop houses that no clue and no neighbour allows, until nothing changes; None when a value has none left."""
    while True:
        before = dict(domains)
        for clue in puzzle.clues:
            if clue.second is None:
                domains[clue.first] = frozenset(h for h in domains[clue.first] if clue.allows(h))
                continue
            pairs = [(a, b) for a in domains[clue.first] for b in domains[clue.second] if clue.allows(a, b)]
            domains[clue.first] = frozenset(a for a, _ in pairs)
            domains[clue.second] = frozenset(b for _, b in pairs)
        for name, values in puzzle.attributes:
            for value in values:
                house = domains[Mention(name, value)]
                if len(house) == 1:
                    for other in values:
                        if other != value:
                            domains[Mention(name, other)] -= house
        if not all(domains.values()):
            return None
        if domains == before:
            return domains


@pytest.mark.parametrize(
    ("houses", "attributes", "index"),
    [(2, 2, 0), (2, 6, 1), (3, 3, 2), (3, 5, 0), (4, 4, 1), (5, 3, 0), (6, 2, 0), (5, 6, 0), (6, 6, 0)],
)
def test_a_puzzle_has_one_solution_and_loses_it_with_any_clue(houses: int, attributes: int, index: int) -> None:
    row = generate_row(houses, attributes, index, seed=3)
    puzzle = parse_puzzle(row["puzzle"])
    places = puzzle.places(row["header"], row["rows"])
    assert (
        (row["size"], row["n_clues"]) == (puzzle.size, len(puzzle.clues)) == (f"{houses}*{attributes}", row["n_clues"])
    )
    assert puzzle.rows(places) == row["rows"]
    assert all(clue.holds(places) for clue in puzzle.clues)
    assert solution_count(puzzle) == 1
    for left_out in range(len(puzzle.clues)):
        fewer = Puzzle(houses, puzzle.attributes, puzzle.clues[:left_out] + puzzle.clues[left_out + 1 :])
        assert solution_count(fewer) == 2, f"clue {left_out + 1} is superfluous"


def test_rows_have_the_fields_and_the_text_of_the_benchmark() -> None:
    row = next(generate_rows(["3x2"], count=1, seed=7))
    assert list(row) == ["id", "size", "puzzle", "header", "rows", "n_clues"]
    lines = row["puzzle"].split("\n")
    assert lines[0] == (
        "There are 3 houses, numbered 1 to 3 from left to right, as seen from across the street. Each house is "
        "occupied by a different person. Each house has a unique attribute for each of the following characteristics:"
    )
    assert lines[1].startswith(" - Each person has a unique name: `")
    assert lines[3:5] == ["", "## Clues:"]
    assert lines[5].startswith("1. ")
    assert row["puzzle"].endswith(".\n")
    assert row["header"][:2] == ["House", "Name"]
    # Three houses always have the benchmark's first three names.
    assert sorted(cells[1] for cells in row["rows"]) == ["Arnold", "Eric", "Peter"]
    assert [cells[0] for cells in row["rows"]] == ["1", "2", "3"]


def test_a_shorter_count_is_a_prefix_and_sizes_take_turns() -> None:
    long = list(generate_rows("2x2,3x2", count=6, seed=5))
    assert [row["size"] for row in long] == ["2*2", "3*2"] * 3
    assert list(generate_rows("2x2,3x2", count=3, seed=5)) == long[:3]
    # A puzzle depends on its own size only, not on which others are asked for.
    assert list(generate_rows("3x2", count=3, seed=5)) == long[1::2]
    assert len({row["puzzle"] for row in long}) == 6


def test_another_seed_gives_other_puzzles() -> None:
    assert generate_row(3, 3, 0, seed=1)["puzzle"] != generate_row(3, 3, 0, seed=2)["puzzle"]


def test_a_seed_gives_the_same_bytes_in_another_process() -> None:
    code = (
        "import json; from townhall.tasks.zebra.generator import generate_rows; "
        "print(json.dumps(list(generate_rows('4x4,2x3', 4, 7))))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert outputs == {json.dumps(list(generate_rows("4x4,2x3", 4, 7))) + "\n"}


def test_known_puzzle_of_a_seed() -> None:
    """A change here means that seeds give other puzzles than before: raise GENERATOR_VERSION."""
    row = generate_row(2, 2, 0, seed=0)
    assert row["id"] == "zebra-2x2-s0-0"
    assert row["puzzle"].endswith(
        " - Each person has a unique name: `Eric`, `Arnold`\n"
        " - Each person lives in a unique style of house: `victorian`, `colonial`\n\n"
        "## Clues:\n1. Eric is in the first house.\n2. The person residing in a Victorian house is Arnold.\n"
    )
    assert row["rows"] == [["1", "Eric", "colonial"], ["2", "Arnold", "victorian"]]


def test_all_kinds_of_clue_occur() -> None:
    kinds = Counter(
        clue.kind for index in range(12) for clue in parse_puzzle(generate_row(4, 3, index, seed=0)["puzzle"]).clues
    )
    assert len(kinds) == 9


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("all", list(ALL_SIZES)),
        ("2x2, 3*4", [(2, 2), (3, 4)]),
        (["6X6", "2x2", "6x6"], [(6, 6), (2, 2)]),
        ([(2, 5)], [(2, 5)]),
    ],
)
def test_sizes_are_read(given: object, expected: list[tuple[int, int]]) -> None:
    assert parse_sizes(given) == expected  # type: ignore[arg-type]  # parametrised over the accepted types


def test_all_means_the_25_sizes_of_the_benchmark() -> None:
    assert len(ALL_SIZES) == 25
    assert (ALL_SIZES[0], ALL_SIZES[-1]) == ((2, 2), (6, 6))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("7x2", "size 7x2 is not available; sizes go from 2x2 to 6x6"),
        ("big", "'big' is not a size"),
        ("2x2x2", "'2x2x2' is not a size"),
        ("", "no sizes given"),
    ],
)
def test_wrong_sizes_are_refused_in_one_line(sizes: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        list(generate_rows(sizes, count=1))
    assert message in str(caught.value)


def test_a_count_below_one_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="count is 0; it must be at least 1"):
        generate_rows("2x2", count=0)
