"""The task zebra-mcq: data layouts, letters, scoring, splits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from townhall.errors import InputError
from townhall.tasks.base import TASKS, Scored
from townhall.tasks.zebra_grid import ZebraGrid
from townhall.tasks.zebra_mcq import ZebraMCQ

PUZZLE = (
    "There are 2 houses, numbered 1 to 2 from left to right, as seen from across the street. Each house is occupied "
    "by a different person. Each house has a unique attribute for each of the following characteristics:\n"
    " - Each person has a unique name: `Eric`, `Arnold`\n"
    " - Each person has a unique favorite drink: `tea`, `water`\n"
    "\n## Clues:\n1. Arnold is directly left of Eric.\n2. Eric is the one who only drinks water.\n"
)
ROW = {
    "id": "own-1#h2-Drink",
    "puzzle_id": "own-1",
    "size": "2*2",
    "puzzle": PUZZLE,
    "question": "What is Drink of the person who lives in House 2?",
    "choices": ["tea", "water"],
    "answer": "water",
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOWNHALL_CACHE", str(tmp_path / "cache"))


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in names}


def task_on(tmp_path: Path, *rows: dict[str, Any], **options: Any) -> ZebraMCQ:
    return ZebraMCQ(write(tmp_path / "questions.jsonl", *rows), **options)


def test_it_is_registered() -> None:
    assert TASKS.get("zebra-mcq") is ZebraMCQ


def test_the_question_lists_the_choices_by_letter(tmp_path: Path) -> None:
    [example] = task_on(tmp_path, ROW).examples
    assert example.question.startswith(PUZZLE.strip())
    assert "House 2?\nA) tea\nB) water\n" in example.question
    assert (example.gold, example.meta["size"], example.meta["difficulty"]) == ("B", "2*2", "easy")


@pytest.mark.parametrize("answer", ["water", "Water ", "B", "b", None, "", "___"])
def test_the_gold_answer_is_a_choice_a_letter_or_found_by_the_solver(tmp_path: Path, answer: str | None) -> None:
    [example] = task_on(tmp_path, {**ROW, "answer": answer}).examples
    assert example.gold == "B"


def test_choices_may_be_the_phrases_of_the_clues(tmp_path: Path) -> None:
    row = {**without(ROW, "answer"), "choices": ["the one who only drinks water", "the tea drinker"]}
    assert task_on(tmp_path, row).examples[0].gold == "A"


def test_the_hubs_rows_are_read_through_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    asked = []

    def load(*arguments: Any, **named: Any) -> list[dict[str, Any]]:
        asked.append((arguments, named))
        return [{**without(ROW, "puzzle_id", "size"), "answer": "___"}]

    monkeypatch.setattr(datasets, "load_dataset", load)
    [example] = ZebraMCQ("hub").examples
    assert asked == [(("allenai/ZebraLogicBench", "mc_mode"), {"split": "test"})]
    assert (example.gold, example.meta["size"]) == ("B", "2*2")


def test_the_puzzle_is_found_in_a_named_file_or_beside_the_data(tmp_path: Path) -> None:
    row = without(ROW, "puzzle")
    puzzles = write(tmp_path / "own_grid.jsonl", {"id": "own-1", "puzzle": PUZZLE})
    beside = ZebraMCQ(write(tmp_path / "own_mcq.jsonl", row)).examples[0]
    named = task_on(tmp_path, row, puzzles=str(puzzles)).examples[0]
    assert beside.question == named.question == task_on(tmp_path, ROW).examples[0].question


@pytest.mark.parametrize(
    ("row", "options", "message"),
    [
        (
            without(ROW, "puzzle"),
            {},
            "line 1: the field 'puzzle' is missing; name the file that has 'own-1' by puzzles=FILE",
        ),
        (without(ROW, "puzzle", "puzzle_id"), {}, "line 1: the field 'puzzle' is missing, and there is no 'puzzle_id'"),
        (without(ROW, "question"), {}, "line 1: the field 'question' is missing"),
        ({**ROW, "choices": "tea"}, {}, "line 1, field choices: must be a list of 2 to 6 texts"),
        ({**ROW, "answer": "milk"}, {}, "line 1, field answer: 'milk' is neither a choice nor a choice's letter"),
        ({**ROW, "answer": "C"}, {}, "line 1, field answer: 'C' is neither a choice nor a choice's letter"),
        ({**ROW, "answer": "", "question": "Who?"}, {}, "line 1, field answer: it is blank, and no cell is asked for"),
        (
            {**ROW, "answer": "", "question": "What is Pet of the person who lives in House 2?"},
            {},
            "line 1, field question: the puzzle has no cell Pet of house 2",
        ),
        ({**ROW, "answer": "", "choices": ["tea", "milk"]}, {}, "the right answer, water, is not among them"),
        ({**ROW, "answer": "", "puzzle": "Who?"}, {}, "line 1: the answer is blank, and the puzzle cannot be solved"),
    ],
)
def test_bad_rows_are_refused_in_one_line(
    tmp_path: Path, row: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        _ = task_on(tmp_path, row, **options).examples
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_puzzle_that_is_not_in_the_named_file_is_named(tmp_path: Path) -> None:
    puzzles = write(tmp_path / "puzzles.jsonl", {"id": "other", "puzzle": PUZZLE})
    with pytest.raises(InputError, match=r"line 1: there is no puzzle 'own-1' in .*puzzles\.jsonl"):
        _ = task_on(tmp_path, without(ROW, "puzzle"), puzzles=str(puzzles)).examples


@pytest.mark.parametrize("answer", ["B", "b", "(B)", "B.", "B) water", "water", " WATER "])
def test_letters_and_choices_are_right(tmp_path: Path, answer: str) -> None:
    task = task_on(tmp_path, ROW)
    score = task.score(answer, task.examples[0])
    assert (score.value, score.blank) == (1, False)


@pytest.mark.parametrize("answer", ["A", "tea"])
def test_the_other_choice_is_wrong(tmp_path: Path, answer: str) -> None:
    task = task_on(tmp_path, ROW)
    score = task.score(answer, task.examples[0])
    assert (score.value, score.blank) == (0, False)
    assert score.feedback == "A is wrong. The right answer is B: water."


@pytest.mark.parametrize("answer", [None, "", "C", "milk", "B) tea", 2])
def test_what_is_no_choice_is_a_blank(tmp_path: Path, answer: Any) -> None:
    task = task_on(tmp_path, ROW)
    score = task.score(answer, task.examples[0])
    assert (score.value, score.blank) == (0, True)


@pytest.mark.parametrize(
    "text", ["The answer is B.", "So the answer is (B) water.", '{"answer": "B"}', "Answer: water"]
)
def test_raw_text_is_read(tmp_path: Path, text: str) -> None:
    task = task_on(tmp_path, ROW)
    assert task.extract(text, task.examples[0]) == "B"


def test_text_that_names_no_choice_is_a_blank(tmp_path: Path) -> None:
    task = task_on(tmp_path, ROW)
    assert task.extract("I give up.", task.examples[0]) is None


def test_correct_incorrect_and_blank_add_up(tmp_path: Path) -> None:
    task = task_on(tmp_path, ROW)
    [example] = task.examples
    scored = [Scored(example, task.score(answer, example)) for answer in ("B", "B", "A", None)]
    assert task.aggregate(scored) == {"accuracy": 0.5, "blank": 0.25, "correct": 0.5, "incorrect": 0.25}
    assert task.aggregate([]) == {"accuracy": None, "blank": None, "correct": None, "incorrect": None}


def test_generated_questions_ask_for_a_cell_of_the_generated_grids() -> None:
    grids = {example.id: example for example in ZebraGrid(sizes="2x3,3x2", count=6, seed=4).examples}
    questions = ZebraMCQ(sizes="2x3,3x2", count=6, seed=4).examples
    assert len(questions) == 6
    for example in questions:
        puzzle_id, cell = example.id.split("#h")
        house, attribute = cell.split("-", 1)
        gold = grids[puzzle_id].gold
        value = gold["rows"][int(house) - 1][gold["header"].index(attribute)]
        assert example.meta["choices"]["ABCDEF".index(example.gold)] == value


def test_all_questions_on_a_puzzle_are_in_the_split_of_that_puzzle(tmp_path: Path) -> None:
    grids = ZebraGrid(sizes="2x2,2x3", count=10)
    questions = ZebraMCQ(sizes="2x2,2x3", count=10)
    assert grids.assign_splits(grids.examples) == questions.assign_splits(questions.examples)
    other = {**ROW, "id": "own-1#h1-Name", "question": "What is Name of the person who lives in House 1?"}
    both = task_on(tmp_path, ROW, {**other, "choices": ["Eric", "Arnold"], "answer": "Arnold"})
    assert len(set(both.assign_splits(both.examples))) == 1
    assert len(both.examples) == 2


def test_demonstrations_are_asked_as_examples_are() -> None:
    task = ZebraMCQ()
    for demonstration in task.demonstrations():
        puzzle, rest = demonstration.question.split("\n\n## Question\n")
        lines = rest.split("\n")
        choices = [line[3:] for line in lines[1:] if line[1:3] == ") "]
        row = {"puzzle": puzzle, "question": lines[0], "choices": choices}
        example = task.example(row, "here")  # no answer given: the solver finds it
        assert demonstration.question == example.question
        assert demonstration.answer == example.gold != demonstration.mistaken_answer


def test_the_real_questions_find_their_puzzles_and_the_solver_agrees(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "zebra"
    task = ZebraMCQ(folder / "extra_mcq_200.jsonl")
    assert len(task.examples) == 200
    rows = [json.loads(line) for line in (folder / "extra_mcq_200.jsonl").read_text("utf-8").splitlines()]
    assert [task.score(row["answer"], e).value for row, e in zip(rows, task.examples, strict=True)] == [1] * 200
    blanked = [without(row, "answer") for row in rows[::10]]
    solved = task_on(tmp_path, *blanked, puzzles=folder / "extra_grid_200.jsonl")
    assert [example.gold for example in solved.examples] == [example.gold for example in task.examples[::10]]


def test_a_row_of_outputs_may_have_its_own_gold_and_no_question() -> None:
    task = ZebraMCQ()
    example = task.example({"id": "o", "output": "Answer: B", "gold": "b"}, "here")
    assert task.score(task.extract("Answer: B", example), example).value == 1
    assert task.score(task.extract("Answer: C", example), example).value == 0
    with_choices = task.example({"output": "", "gold": "water", "choices": ["tea", "water"]}, "here")
    assert task.score(task.extract("Answer: water", with_choices), with_choices).value == 1
    with pytest.raises(InputError, match="here, field gold: 'milk' is neither a choice nor a choice's letter"):
        task.example({"output": "", "gold": "milk"}, "here")
