"""ZebraLogic, grid mode: fill in who lives in which house (Lin et al., arXiv 2502.01100)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from ..errors import InputError
from ..metrics.grid import aggregate_grids, difficulty, grid_score, scale, size_name
from ..metrics.grid_extraction import GRID_RULES, aligned, extract_grid, read_grid
from ..metrics.score import Score
from ..signatures.answers import Grid
from ..signatures.demonstrations import Demonstration
from .base import TASKS, Example, HubSource, Scored, SplitName, Task, row_id, split_of
from .options import choice_option, integer_option
from .zebra.clues import parse_puzzle
from .zebra.demonstrations import grid_demonstrations
from .zebra.generator import parse_sizes
from .zebra.prompts import ANSWER_FORMATS, grid_question
from .zebra.rows import generated_rows, puzzle_key, read_puzzle_row

#: Options of the generator, shared by both ZebraLogic tasks.
GENERATOR_OPTIONS: Mapping[str, str] = {
    "sizes": 'generated puzzles: "all", or sizes (houses x attributes, 2x2 to 6x6) such as 2x2,3x4 (default: all)',
    "count": "generated puzzles: how many, spread over the sizes (default: 200)",
    "seed": "generated puzzles: seed of the generator (default: 0)",
}


class GeneratorOptions:
    """The values of `GENERATOR_OPTIONS`.

    Raises:
        InputError: for a wrong value.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.sizes = parse_sizes(options.get("sizes") or "all")
        self.count = integer_option(options, "count", 200, minimum=1)
        self.seed = integer_option(options, "seed", 0)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the generated rows."""
        return generated_rows(self.sizes, self.count, self.seed)


@TASKS.register("zebra-grid")
class ZebraGrid(Task):
    """Logic grid puzzles; the answer is the whole grid.

    Rows have `puzzle`, `header` and `rows` (and `id`, `size`), or the hub's layout, where `solution` holds the last
    two. The hub's public release blanks the solutions: such puzzles are read and solved here.
    """

    name: ClassVar[str] = "zebra-grid"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "ZebraLogic grid puzzles, 2x2 to 6x6 (generated, from a file, or from the hub)"
    hub: ClassVar[HubSource | None] = HubSource("allenai/ZebraLogicBench", "grid_mode", "test")
    answer_type: ClassVar[Any] = Grid
    primary: ClassVar[str] = "puzzle"
    extract_rules: ClassVar[tuple[str, ...]] = GRID_RULES
    option_help: ClassVar[Mapping[str, str]] = {
        **GENERATOR_OPTIONS,
        "credit": 'what a score is: "puzzle" (1 when all cells are right, else 0) or "cell" (share of right cells)',
        "answer_format": 'JSON shape that the question asks for: "grid" (typed) or "benchmark" (one object a house)',
    }
    group_fields: ClassVar[tuple[str, ...]] = ("size", "difficulty", "scale", "houses", "attributes")

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        self._generator = GeneratorOptions(self.options)
        self.credit = choice_option(self.options, "credit", "puzzle", ("puzzle", "cell"))
        self.answer_format = choice_option(self.options, "answer_format", "grid", ANSWER_FORMATS)

    def generate(self) -> Iterator[dict[str, Any]]:
        """Yield generated puzzles, see `zebra.generator.generate_rows`."""
        return self._generator.rows()

    def example(self, row: Mapping[str, Any], where: str) -> Example:
        """Build an example from a row in either layout."""
        read = read_puzzle_row(row, where)
        header, houses = read.grid.header, len(read.grid.rows)
        own = f"{houses}*{len(header) - 1}"
        return Example(
            id=row_id(row, read.puzzle),
            question=grid_question(read.puzzle, header, houses, self.answer_format),
            gold={"header": header, "rows": read.grid.rows},
            meta={"puzzle": read.puzzle, **size_fields(str(row.get("size") or own), where)},
        )

    def extract(self, text: str, example: Example, rule: str = "flexible") -> Grid | None:
        """Read the grid that a text answers with, see `metrics.grid_extraction.extract_grid`."""
        self._check_rule(rule)
        return extract_grid(text, example.gold["header"], len(example.gold["rows"]), rule)

    def score(self, answer: Any | None, example: Example) -> Score:
        """Return 1 when every cell is right (or the share of right cells, with `credit=cell`)."""
        gold = Grid.model_validate(example.gold)
        if answer is not None and not isinstance(answer, Grid):
            answer = read_grid(answer, gold.header, len(gold.rows))
        return grid_score(
            answer, gold, example.meta["size"], credit=self.credit, hint=_broken_clues(answer, gold, example)
        )

    def aggregate(self, scored: Sequence[Scored]) -> dict[str, float | None]:
        """Return puzzle, easy, hard, small, medium, large, xl, cell and blank."""
        return aggregate_grids([item.score for item in scored])

    def assign_splits(self, examples: Sequence[Example]) -> list[SplitName]:
        """Split by puzzle: a puzzle is in the same split here and in `zebra-mcq`."""
        return [split_of(puzzle_key(example.meta["puzzle"])) for example in examples]

    def demonstrations(self) -> list[Demonstration]:
        """Return two puzzles solved by hand."""
        return grid_demonstrations(self.answer_format)


def size_fields(size: str, where: str) -> dict[str, Any]:
    """Return the fields to group puzzles by: size, difficulty, scale, houses, attributes.

    Args:
        size: houses and attributes, such as "5*6".
        where: for the error's text.

    Raises:
        InputError: when it is not a size.
    """
    name = size_name(size)
    if name is None:
        raise InputError(f"{where}, field size: '{size}' is not a size such as 5*6")
    houses, attributes = (int(part) for part in name.split("*"))
    return {
        "size": name,
        "difficulty": difficulty(name),
        "scale": scale(name),
        "houses": houses,
        "attributes": attributes,
    }


def _broken_clues(answer: Grid | None, gold: Grid, example: Example) -> str:
    """Say which clues a grid breaks, three at most, and which values it does not place; "" where that is unknown."""
    grid = aligned(answer, gold.header, len(gold.rows))
    if grid is None:
        return ""
    try:
        puzzle = parse_puzzle(example.meta["puzzle"])
    except InputError:  # a puzzle in other words than the benchmark's
        return ""
    places = puzzle.places(grid.header, grid.rows)
    remarks = [
        f"Clue {number} is broken: {clue.text()}"
        for number, clue in enumerate(puzzle.clues, start=1)
        if clue.holds(places) is False
    ][:3]
    homeless = [f"{mention.attribute} {mention.value}" for mention in puzzle.mentions() if mention not in places][:5]
    if homeless:
        remarks.append(f"Not in exactly one house: {', '.join(homeless)}.")
    return " ".join(remarks)
