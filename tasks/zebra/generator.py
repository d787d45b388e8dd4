"""Seeded puzzles of the 25 sizes: one solution, no clue that could go, both proved by the solver.

A random grid comes first. True clues of random kinds are added until the solver proves that no other grid is left; then
each clue in turn is dropped if the grid is still the only one. What is dropped depends on proofs alone, so a seed gives
the same bytes on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import InputError
from .clues import Clue, ClueKind, Mention, Puzzle
from .solver import Uniqueness
from .vocabulary import ATTRIBUTES, LARGEST, NAME, SMALLEST

#: Raised whenever a seed would give other puzzles than before.
GENERATOR_VERSION = 1

Size = tuple[int, int]
ALL_SIZES: tuple[Size, ...] = tuple(
    (houses, attributes) for houses in range(SMALLEST, LARGEST + 1) for attributes in range(SMALLEST, LARGEST + 1)
)

#: How often each kind is drawn, in percent. Minimising drops weak clues more often than strong ones: these shares leave
#: the benchmark's mix (of 2,244 clues in 216 of its puzzles: same 41, not at 13, at 12, directly left 10, left 7,
#: right 7, next 5, one between 3, two between 2).
_WEIGHTS: dict[ClueKind, float] = {
    "same": 31,
    "not at": 29,
    "at": 10,
    "directly left": 6,
    "left": 8,
    "right": 8,
    "next": 4.5,
    "one between": 2,
    "two between": 1.5,
}
#: Kinds that need more than two houses.
_LEAST_HOUSES: dict[ClueKind, int] = {"one between": 3, "two between": 4}


def parse_sizes(sizes: str | Sequence[str | Size]) -> list[Size]:
    """Return sizes as (houses, attributes), in the order given, without repeats.

    Args:
        sizes: "all", or sizes such as "2x2,3x4" (also "2*2", also as a list).

    Raises:
        InputError: for something that is not a size from 2x2 to 6x6.
    """
    if isinstance(sizes, str):
        if sizes.strip().lower() == "all":
            return list(ALL_SIZES)
        sizes = [part for part in sizes.replace(",", " ").split() if part]
    parsed: list[Size] = []
    for size in sizes:
        parts = size.lower().replace("*", "x").replace("×", "x").split("x") if isinstance(size, str) else size
        try:
            houses, attributes = (int(part) for part in parts)
        except ValueError:
            raise InputError(f"'{size}' is not a size; write houses x attributes, such as 3x4, or 'all'") from None
        if (houses, attributes) not in ALL_SIZES:
            raise InputError(f"size {houses}x{attributes} is not available; sizes go from 2x2 to 6x6")
        if (houses, attributes) not in parsed:
            parsed.append((houses, attributes))
    if not parsed:
        raise InputError("no sizes given; write sizes such as 2x2,3x4, or 'all'")
    return parsed


def generate_rows(
    sizes: str | Sequence[str | Size] = "all", count: int = 200, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """Yield puzzles as rows of data, round-robin over the sizes.

    Each puzzle depends on its size, its place among those of its size, and the seed only: a smaller count gives the
    first rows of a larger one.

    Args:
        sizes: see `parse_sizes`.
        count: how many puzzles, over all sizes.
        seed: any whole number.

    Yields:
        `id`, `size` ("3*4"), `puzzle`, `header`, `rows`, `n_clues`; the fields of the benchmark's data.

    Raises:
        InputError: for a wrong size or a count below 1.
    """
    wanted = parse_sizes(sizes)
    if count < 1:
        raise InputError(f"count is {count}; it must be at least 1")
    return (generate_row(*wanted[number % len(wanted)], number // len(wanted), seed) for number in range(count))


def generate_row(houses: int, attributes: int, index: int, seed: int = 0) -> dict[str, Any]:
    """Return the puzzle number `index` (0-based) of a size and a seed, as a row of data."""
    rng = random.Random(f"townhall zebra {GENERATOR_VERSION}/{seed}/{houses}x{attributes}/{index}")
    puzzle, solution = make_puzzle(houses, attributes, rng)
    return {
        "id": f"zebra-{houses}x{attributes}-s{seed}-{index}",
        "size": puzzle.size,
        "puzzle": puzzle.text(),
        "header": puzzle.header,
        "rows": puzzle.rows(solution),
        "n_clues": len(puzzle.clues),
    }


def make_puzzle(houses: int, attributes: int, rng: random.Random) -> tuple[Puzzle, dict[Mention, int]]:
    """Return a random puzzle with exactly one solution and no superfluous clue, and that solution."""
    chosen = [NAME, *rng.sample(ATTRIBUTES[1:], attributes - 1)]
    listed: list[tuple[str, tuple[str, ...]]] = []
    solution: dict[Mention, int] = {}
    for attribute in chosen:
        values = list(attribute.phrases)[:houses]
        for house, value in enumerate(rng.sample(values, houses), start=1):
            solution[Mention(attribute.name, value)] = house
        listed.append((attribute.name, tuple(rng.sample(values, houses))))
    blank = Puzzle(houses, tuple(listed), ())
    clues = _minimal_clues(blank, solution, rng)
    rng.shuffle(clues)
    return Puzzle(houses, blank.attributes, tuple(clues)), solution


def _minimal_clues(blank: Puzzle, solution: dict[Mention, int], rng: random.Random) -> list[Clue]:
    check = Uniqueness(blank, solution)
    source = _true_clues(blank, solution, rng)
    clues: list[Clue] = []
    step = max(1, len(solution) // 2)
    while True:
        more = [next(source) for _ in range(step)]
        clues += more
        check.extend(more)
        if check.holds(range(len(clues))):
            break
    # Dropping a clue never makes a needed one needless, so one pass is enough.
    kept = set(range(len(clues)))
    for index in rng.sample(range(len(clues)), len(clues)):
        if check.holds(kept - {index}):
            kept.discard(index)
    return [clues[index] for index in sorted(kept)]


def _true_clues(blank: Puzzle, solution: dict[Mention, int], rng: random.Random) -> Iterator[Clue]:
    """Yield random clues that are true in the solution, none of them twice."""
    kinds = [kind for kind in _WEIGHTS if blank.houses >= _LEAST_HOUSES.get(kind, 2)]
    weights = [_WEIGHTS[kind] for kind in kinds]
    mentions = list(solution)
    seen: set[Clue] = set()
    while True:
        kind = rng.choices(kinds, weights)[0]
        clue = _draw(kind, mentions, solution, blank.houses, rng)
        # "A and B" says what "B and A" says.
        turned = Clue(clue.kind, clue.second, clue.first) if clue.second is not None else clue
        if clue not in seen and turned not in seen:
            seen.add(clue)
            yield clue


def _draw(
    kind: ClueKind, mentions: list[Mention], solution: dict[Mention, int], houses: int, rng: random.Random
) -> Clue:
    while True:
        first = rng.choice(mentions)
        if kind == "at":
            return Clue(kind, first, house=solution[first])
        if kind == "not at":
            return Clue(kind, first, house=rng.choice([h for h in range(1, houses + 1) if h != solution[first]]))
        second = rng.choice(mentions)
        clue = Clue(kind, first, second)
        if second != first and clue.allows(solution[first], solution[second]):
            return clue
