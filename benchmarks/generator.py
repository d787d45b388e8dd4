"""Puzzles per second of our ZebraLogic generator and of reasoning-gym's zebra generator, by size, in one run.

    python benchmarks/generator.py --count 5

Both make puzzles with one solution, proved by a SAT solver, and drop superfluous clues. They take turns, one puzzle
each, so that a busy machine slows both alike; one thread, nothing cached, imports not counted.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable
from statistics import mean
from typing import Any

from townhall.errors import InputError
from townhall.tasks.zebra.generator import generate_row, parse_sizes


def load_other() -> Callable[[int, int, int], str] | None:
    """Return a function (houses, attributes, seed) -> puzzle text of reasoning-gym; None when it is not installed."""
    try:
        from reasoning_gym import create_dataset
    except ImportError:
        return None

    def make(houses: int, attributes: int, seed: int) -> str:
        dataset = create_dataset("zebra_puzzles", num_people=houses, num_characteristics=attributes, seed=seed, size=1)
        return str(dataset[0]["question"])

    return make


def measure(count: int, sizes: str, seed: int, progress: bool = True) -> list[dict[str, Any]]:
    """Return a row a size: seconds a puzzle and mean number of clues, ours and theirs."""
    other = load_other()
    generate_row(2, 2, 0, seed)  # imports the solver
    if other is not None:
        other(2, 2, seed)
    rows = []
    for houses, attributes in parse_sizes(sizes):
        ours: list[tuple[float, int]] = []
        theirs: list[tuple[float, int]] = []
        for index in range(count):
            start = time.perf_counter()
            row = generate_row(houses, attributes, index, seed)
            ours.append((time.perf_counter() - start, row["n_clues"]))
            if other is not None:
                start = time.perf_counter()
                text = other(houses, attributes, seed + index)
                theirs.append((time.perf_counter() - start, len(re.findall(r"^\d+\. ", text, re.MULTILINE))))
        rows.append({"size": f"{houses}x{attributes}", "townhall": summary(ours), "reasoning_gym": summary(theirs)})
        if progress:
            print(line(rows[-1]), flush=True)
    return rows


def summary(timed: list[tuple[float, int]]) -> dict[str, float] | None:
    if not timed:
        return None
    seconds = sum(second for second, _ in timed)
    return {"per_second": len(timed) / seconds, "seconds": seconds, "clues": mean(clues for _, clues in timed)}


def line(row: dict[str, Any]) -> str:
    ours, theirs = row["townhall"], row["reasoning_gym"]
    text = f"{row['size']:>6} {ours['per_second']:>12.1f} {ours['clues']:>7.1f}"
    if theirs is None:
        return f"{text} {'-':>14} {'-':>7} {'-':>7}"
    ratio = ours["per_second"] / theirs["per_second"]
    return f"{text} {theirs['per_second']:>14.1f} {theirs['clues']:>7.1f} {ratio:>6.1f}x"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=5, help="puzzles of each size (default: 5)")
    parser.add_argument("--sizes", default="all", help='"all", or sizes such as 2x2,6x6 (default: all)')
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    if load_other() is None:
        print("reasoning-gym is not installed, only ours is timed: pip install 'townhall[bench]'", file=sys.stderr)
    if not arguments.json:
        print(f"{'size':>6} {'townhall/s':>12} {'clues':>7} {'reasoning-gym/s':>14} {'clues':>6} {'faster':>7}")
    try:
        rows = measure(arguments.count, arguments.sizes, arguments.seed, progress=not arguments.json)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return 0
    for name in ("townhall", "reasoning_gym"):
        known = [row[name] for row in rows if row[name] is not None]
        if known:
            seconds = sum(item["seconds"] for item in known)
            print(f"{name}: {len(known) * arguments.count / seconds:.1f} puzzles a second over all sizes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
