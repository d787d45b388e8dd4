"""ZebraLogic, multiple-choice mode: one cell of a grid (Lin et al., arXiv 2502.01100)."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from ..errors import InputError
from ..metrics.extraction import CHOICE_RULES, extract_choice
from ..metrics.score import Score
from ..signatures.answers import fold
from ..signatures.demonstrations import Demonstration
from .base import TASKS, Example, HubSource, Scored, SplitName, Task, field_of, row_id, split_of
from .sources import read_file
from .zebra.clues import Mention, parse_puzzle, phrase_of
from .zebra.demonstrations import choice_demonstrations
from .zebra.prompts import LETTERS, cell_question, choice_question
from .zebra.rows import puzzle_key, solved
from .zebra_grid import GENERATOR_OPTIONS, GeneratorOptions, size_fields

_CELL = re.compile(
    r"What is (?:the )?(?P<attribute>\w+) of the person who lives in House (?P<house>\d+)", re.IGNORECASE
)


@TASKS.register("zebra-mcq")
class ZebraMCQ(Task):
    """Multiple-choice questions on one cell of a logic grid puzzle; the answer is a letter.

    Rows have `question`, `choices` (up to six texts) and `answer` (one of them, or its letter), and the puzzle: in
    `puzzle`, or by `puzzle_id` in another file (the option `puzzles`, else the data file's sibling with "grid" instead
    of "mcq" in its name). Where the answer is missing or blanked, the puzzle is solved.
    """

    name: ClassVar[str] = "zebra-mcq"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "ZebraLogic multiple choice: one cell of a grid puzzle"
    hub: ClassVar[HubSource | None] = HubSource("allenai/ZebraLogicBench", "mc_mode", "test")
    answer_type: ClassVar[Any] = Literal["A", "B", "C", "D", "E", "F"]
    extract_rules: ClassVar[tuple[str, ...]] = CHOICE_RULES
    option_help: ClassVar[Mapping[str, str]] = {
        **GENERATOR_OPTIONS,
        "puzzles": "file with the puzzles of rows that name theirs by puzzle_id only",
    }
    group_fields: ClassVar[tuple[str, ...]] = ("size", "difficulty", "scale", "houses", "attributes")

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        self._generator = GeneratorOptions(self.options)

    def generate(self) -> Iterator[dict[str, Any]]:
        """Yield one question on each generated puzzle, about a random cell."""
        return (question_row(row) for row in self._generator.rows())

    def example(self, row: Mapping[str, Any], where: str) -> Example:
        """Build an example; see the class for the fields."""
        if row.get("gold") is not None and "question" not in row:
            return _bare_example(row, where)
        text = str(field_of(row, "question", where))
        choices = _choices(field_of(row, "choices", where), where)
        puzzle = self._puzzle(row, where)
        question = choice_question(puzzle, text, choices)
        return Example(
            id=row_id(row, question),
            question=question,
            gold=_gold_letter(row, puzzle, text, choices, where),
            meta={"choices": choices, "puzzle_key": puzzle_key(puzzle), **_size_of(row, puzzle, where)},
        )

    def extract(self, text: str, example: Example, rule: str = "flexible") -> str | None:
        """Read the letter that a text answers with, by letter or by the choice's text."""
        self._check_rule(rule)
        choices = example.meta["choices"]
        return extract_choice(text, LETTERS[: len(choices)], rule, texts=None if choices == list(LETTERS) else choices)

    def score(self, answer: Any | None, example: Example) -> Score:
        """Return 1 for the right letter or choice, else 0; what is neither a letter nor a choice is a blank."""
        choices = example.meta["choices"]
        gold = str(example.gold)
        right = f"The right answer is {gold}: {choices[LETTERS.index(gold)]}."
        letter = _letter(answer, choices)
        if letter is None:
            return Score(0.0, blank=True, feedback=f"No choice was named. {right}")
        if letter == gold:
            return Score(1.0, feedback=f"{gold} is right.")
        return Score(0.0, feedback=f"{letter} is wrong. {right}")

    def aggregate(self, scored: Sequence[Scored]) -> dict[str, float | None]:
        """Return accuracy and blank, and the paper's shares: correct, incorrect (read, but wrong) and blank."""
        scores = super().aggregate(scored)
        correct, blank = scores["accuracy"], scores["blank"]
        incorrect = None
        if scored:
            incorrect = sum(not item.score.blank and item.score.value < 1 for item in scored) / len(scored)
        return {"accuracy": correct, "blank": blank, "correct": correct, "incorrect": incorrect}

    def assign_splits(self, examples: Sequence[Example]) -> list[SplitName]:
        """Split by puzzle: all questions on a puzzle are in one split, the one it has in `zebra-grid`."""
        return [split_of(example.meta["puzzle_key"]) for example in examples]

    def demonstrations(self) -> list[Demonstration]:
        """Return two questions answered by hand."""
        return choice_demonstrations()

    # -- where the puzzle is -------------------------------------------------------------------------------------

    def _puzzle(self, row: Mapping[str, Any], where: str) -> str:
        if row.get("puzzle"):
            return str(row["puzzle"])
        if row.get("puzzle_id") is None:
            raise InputError(f"{where}: the field 'puzzle' is missing, and there is no 'puzzle_id' to find it by")
        path = self._puzzles_path
        if path is None:
            raise InputError(
                f"{where}: the field 'puzzle' is missing; name the file that has '{row['puzzle_id']}' by puzzles=FILE"
            )
        found = self._puzzles.get(str(row["puzzle_id"]))
        if found is None:
            raise InputError(f"{where}: there is no puzzle '{row['puzzle_id']}' in {path}")
        return found

    @property
    def _puzzles_path(self) -> Path | None:
        if self.options.get("puzzles"):
            return Path(self.options["puzzles"])
        if self.data is None:
            return None
        own = Path(self.data)
        sibling = own.with_name(own.name.replace("mcq", "grid"))
        return sibling if sibling != own and sibling.exists() else None

    @cached_property
    def _puzzles(self) -> dict[str, str]:
        path = self._puzzles_path
        assert path is not None
        puzzles = {}
        for row, where in read_file(path):
            puzzle = str(field_of(row, "puzzle", where))
            puzzles[row_id(row, puzzle)] = puzzle
        return puzzles


def question_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a multiple-choice row about one cell of a grid row; the cell is a random one, fixed by the row's id."""
    rng = random.Random(f"townhall zebra cell/{row['id']}")
    house = rng.randint(1, len(row["rows"]))
    column = rng.randint(1, len(row["header"]) - 1)
    attribute = row["header"][column]
    choices = dict(parse_puzzle(row["puzzle"]).attributes)[attribute]
    return {
        "id": f"{row['id']}#h{house}-{attribute}",
        "puzzle_id": row["id"],
        "size": row["size"],
        "puzzle": row["puzzle"],
        "question": cell_question(attribute, house),
        "choices": list(choices),
        "answer": row["rows"][house - 1][column],
    }


def _choices(value: Any, where: str) -> list[str]:
    if isinstance(value, str):  # a cell of a CSV file
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if not isinstance(value, list | tuple) or not 2 <= len(value) <= len(LETTERS):
        raise InputError(f"{where}, field choices: must be a list of 2 to {len(LETTERS)} texts")
    return [str(choice) for choice in value]


def _bare_example(row: Mapping[str, Any], where: str) -> Example:
    """Build an example from a row of outputs with its own gold and no question: the letter, or one of its `choices`."""
    choices = _choices(row["choices"], where) if row.get("choices") is not None else list(LETTERS)
    gold = _named_letter(row["gold"], choices, where, "gold")
    identity = row_id(row, str(row.get("output")))
    size = size_fields(str(row["size"]), where) if row.get("size") is not None else {}
    return Example(id=identity, question="", gold=gold, meta={"choices": choices, "puzzle_key": identity, **size})


def _named_letter(answer: Any, choices: Sequence[str], where: str, field: str) -> str:
    letter = _letter(answer, choices)
    if letter is None:
        raise InputError(f"{where}, field {field}: '{answer}' is neither a choice nor a choice's letter")
    return letter


def _gold_letter(row: Mapping[str, Any], puzzle: str, question: str, choices: Sequence[str], where: str) -> str:
    for field in ("gold", "answer"):
        if row.get(field) is not None and fold(row[field]) not in ("", "___"):
            return _named_letter(row[field], choices, where, field)
    cell = _CELL.search(question)
    if cell is None:
        raise InputError(f"{where}, field answer: it is blank, and no cell is asked for in '{question.strip()}'")
    try:
        header, rows = solved(puzzle)
    except InputError as error:
        raise InputError(f"{where}: the answer is blank, and the puzzle cannot be solved: {error}") from None
    columns = {fold(name): index for index, name in enumerate(header)}
    column, house = columns.get(fold(cell["attribute"]), 0), int(cell["house"])
    if not column or not 1 <= house <= len(rows):
        raise InputError(f"{where}, field question: the puzzle has no cell {cell['attribute']} of house {house}")
    value = rows[house - 1][column]
    letter = _letter(value, choices) or _letter(phrase_of(Mention(header[column], value)), choices)
    if letter is None:
        raise InputError(f"{where}, field choices: the right answer, {value}, is not among them")
    return letter


def _letter(answer: Any, choices: Sequence[str]) -> str | None:
    """Return the letter of an answer that is, as a whole, a choice or a letter ("B", "(b)", "B) Eric")."""
    if answer is None:
        return None
    text = fold(answer)
    folded = [fold(choice) for choice in choices]
    if text in folded:
        return LETTERS[folded.index(text)]
    match = re.fullmatch(r"\(?([a-z])[).:]?(?:\s+(.*))?", text)
    if match is None or match.group(1).upper() not in LETTERS[: len(choices)]:
        return None
    letter = match.group(1).upper()
    named = match.group(2)
    return letter if named is None or named == folded[LETTERS.index(letter)] else None


def _size_of(row: Mapping[str, Any], puzzle: str, where: str) -> dict[str, Any]:
    if row.get("size") is not None:
        return size_fields(str(row["size"]), where)
    try:
        return size_fields(parse_puzzle(puzzle).size, where)
    except InputError:  # a puzzle in other words than the benchmark's
        return {}
