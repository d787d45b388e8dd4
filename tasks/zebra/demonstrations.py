"""Two puzzles solved by hand, for both ZebraLogic tasks."""

from __future__ import annotations

from dataclasses import dataclass

from ...signatures.answers import Grid
from ...signatures.demonstrations import Demonstration
from ...signatures.transcript import Persona
from .clues import Clue, Mention, Puzzle
from .prompts import LETTERS, cell_question, choice_question, grid_question

_PERSONAS = [
    Persona(name="Deducer", expertise="constraint puzzles", stance="writes down only what a clue forces"),
    Persona(name="Checker", expertise="proofreading solutions", stance="tests every clue against every proposed grid"),
    Persona(name="Surveyor", expertise="positions and order", stance="draws the houses before placing anyone"),
]


@dataclass(frozen=True)
class _Worked:
    """A puzzle, its solution, a wrong one, and the cell that the multiple-choice question asks for."""

    puzzle: Puzzle
    rows: list[list[str]]
    reasoning: str
    mistaken_rows: list[list[str]]
    mistaken_reasoning: str
    correction: str
    house: int
    attribute: str


_TWO_HOUSES = _Worked(
    puzzle=Puzzle(
        houses=2,
        attributes=(("Name", ("Eric", "Arnold")), ("Drink", ("water", "tea")), ("Pet", ("cat", "dog"))),
        clues=(
            Clue("directly left", Mention("Pet", "dog"), Mention("Drink", "tea")),
            Clue("same", Mention("Name", "Eric"), Mention("Pet", "cat")),
            Clue("same", Mention("Drink", "water"), Mention("Name", "Arnold")),
        ),
    ),
    rows=[["1", "Arnold", "water", "dog"], ["2", "Eric", "tea", "cat"]],
    reasoning=(
        "Clue 1: with two houses, the dog owner can only be in house 1 and the tea drinker in house 2. So water is in "
        "house 1 and the cat in house 2. Clue 2: Eric has the cat, so Eric is in house 2 and Arnold in house 1. "
        "Clue 3 agrees: Arnold drinks water."
    ),
    mistaken_rows=[["1", "Eric", "tea", "cat"], ["2", "Arnold", "water", "dog"]],
    mistaken_reasoning=(
        "Clue 1 has tea next to the dog on its left, so tea is in house 1 and the dog in house 2. The cat is then in "
        "house 1, and by clue 2 so is Eric."
    ),
    correction=(
        "Clue 1 is read the wrong way round. It is the dog owner who is on the left; with the dog in house 2 there is "
        "no house to its right for the tea drinker."
    ),
    house=2,
    attribute="Name",
)

_THREE_HOUSES = _Worked(
    puzzle=Puzzle(
        houses=3,
        attributes=(
            ("Name", ("Peter", "Eric", "Arnold")),
            ("Color", ("white", "yellow", "red")),
            ("Hobby", ("cooking", "photography", "gardening")),
        ),
        clues=(
            Clue("one between", Mention("Name", "Peter"), Mention("Color", "yellow")),
            Clue("right", Mention("Hobby", "gardening"), Mention("Color", "red")),
            Clue("same", Mention("Name", "Arnold"), Mention("Hobby", "cooking")),
            Clue("same", Mention("Name", "Peter"), Mention("Hobby", "photography")),
            Clue("same", Mention("Color", "white"), Mention("Hobby", "cooking")),
        ),
    ),
    rows=[
        ["1", "Peter", "red", "photography"],
        ["2", "Arnold", "white", "cooking"],
        ["3", "Eric", "yellow", "gardening"],
    ],
    reasoning=(
        "Clues 3 and 4 leave gardening for Eric. Clues 3 and 5: Arnold loves cooking and white. Clue 1: Peter and "
        "yellow are in houses 1 and 3, one each, so Peter does not love yellow, nor white: he loves red, and Eric "
        "yellow. Clue 2: Eric, the gardener, is to the right of Peter, who loves red. So Peter is in house 1, Eric in "
        "house 3 and Arnold in house 2."
    ),
    mistaken_rows=[
        ["1", "Eric", "yellow", "gardening"],
        ["2", "Arnold", "white", "cooking"],
        ["3", "Peter", "red", "photography"],
    ],
    mistaken_reasoning=(
        "Clues 3 and 5: Arnold loves cooking and white. Clue 4: Peter loves photography, so Eric loves gardening. "
        "Clue 1: Peter and yellow are at the ends, so yellow is Eric's in house 1 and Peter is in house 3, with red."
    ),
    correction=(
        "Clue 2 was not checked. Gardening in house 1 is to the left of red in house 3, not to its right; the two ends "
        "must change places."
    ),
    house=1,
    attribute="Color",
)

#: Short ones first: a small model's context must hold the demonstration, too. Each has a superfluous clue, as no puzzle
#: of the benchmark or the generator has: neither is ever in a split.
WORKED = (_TWO_HOUSES, _THREE_HOUSES)


def grid_demonstrations(answer_format: str = "grid") -> list[Demonstration]:
    """Return the puzzles, asked for the whole grid."""
    return [
        Demonstration(
            question=grid_question(worked.puzzle.text(), worked.puzzle.header, worked.puzzle.houses, answer_format),
            reasoning=worked.reasoning,
            answer=Grid(header=worked.puzzle.header, rows=worked.rows),
            mistaken_reasoning=worked.mistaken_reasoning,
            mistaken_answer=Grid(header=worked.puzzle.header, rows=worked.mistaken_rows),
            correction=worked.correction,
            personas=_PERSONAS,
        )
        for worked in WORKED
    ]


def choice_demonstrations() -> list[Demonstration]:
    """Return the puzzles, asked for one cell."""
    demonstrations = []
    for worked in WORKED:
        choices = dict(worked.puzzle.attributes)[worked.attribute]
        column = worked.puzzle.header.index(worked.attribute)
        right, wrong = (rows[worked.house - 1][column] for rows in (worked.rows, worked.mistaken_rows))
        demonstrations.append(
            Demonstration(
                question=choice_question(worked.puzzle.text(), cell_question(worked.attribute, worked.house), choices),
                reasoning=f"{worked.reasoning} So the {worked.attribute} of house {worked.house} is {right}.",
                answer=LETTERS[choices.index(right)],
                mistaken_reasoning=worked.mistaken_reasoning,
                mistaken_answer=LETTERS[choices.index(wrong)],
                correction=worked.correction,
                personas=_PERSONAS,
            )
        )
    return demonstrations
