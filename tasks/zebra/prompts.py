"""How questions about a puzzle read."""

from __future__ import annotations

import json
from collections.abc import Sequence

#: The letters of choices, in order.
LETTERS = ("A", "B", "C", "D", "E", "F")
#: Shapes that the question can ask for: our typed grid, or the benchmark's object of houses.
ANSWER_FORMATS = ("grid", "benchmark")


def grid_question(puzzle: str, header: Sequence[str], houses: int, answer_format: str = "grid") -> str:
    """Return the question for the whole grid.

    Args:
        puzzle: the puzzle's text.
        header: the grid's column names, "House" first.
        houses: how many.
        answer_format: "grid" shows the typed answer, `{"header": [...], "rows": [[...], ...]}`; "benchmark" shows
            `{"reasoning": "...", "solution": {"House 1": {"Name": "...", ...}, ...}}`, for raw prompts.
    """
    if answer_format == "benchmark":
        row = dict.fromkeys(header[1:], "___")
        template = json.dumps(
            {"reasoning": "___", "solution": {f"House {house}": row for house in range(1, houses + 1)}}, indent=4
        )
    else:
        lines = [json.dumps([str(house), *["___"] * (len(header) - 1)]) for house in range(1, houses + 1)]
        template = f'{{"header": {json.dumps(list(header))}, "rows": [\n  ' + ",\n  ".join(lines) + "\n]}"
    return (
        f"{puzzle.strip()}\n\n## Answer format\n"
        "Work out what belongs to each house. A house has exactly one value of every characteristic, and no two houses "
        "share one. Give the complete grid as JSON in the shape below, with a value in place of every ___, spelled as "
        f"in the lists above.\n{template}"
    )


def choice_question(puzzle: str, question: str, choices: Sequence[str]) -> str:
    """Return a multiple-choice question about one cell."""
    listed = "\n".join(f"{letter}) {choice}" for letter, choice in zip(LETTERS, choices, strict=False))
    return (
        f"{puzzle.strip()}\n\n## Question\n{question.strip()}\n{listed}\n\n"
        "Exactly one choice is right. Answer with its letter alone."
    )


def cell_question(attribute: str, house: int) -> str:
    """Return the benchmark's question for one cell."""
    return f"What is {attribute} of the person who lives in House {house}?"
