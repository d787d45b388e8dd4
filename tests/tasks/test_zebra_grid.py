"""The task zebra-grid: data layouts, questions, scoring, splits, demonstrations, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from townhall.errors import InputError
from townhall.signatures.answers import Grid
from townhall.tasks.base import TASKS, Scored
from townhall.tasks.zebra.clues import parse_puzzle
from townhall.tasks.zebra.demonstrations import WORKED
from townhall.tasks.zebra.files import verify_file
from townhall.tasks.zebra.generator import generate_rows
from townhall.tasks.zebra.rows import solved
from townhall.tasks.zebra.solver import solutions, superfluous
from townhall.tasks.zebra_grid import ZebraGrid

PUZZLE = (
    "There are 2 houses, numbered 1 to 2 from left to right, as seen from across the street. Each house is occupied "
    "by a different person. Each house has a unique attribute for each of the following characteristics:\n"
    " - Each person has a unique name: `Eric`, `Arnold`\n"
    " - Each person has a unique favorite drink: `tea`, `water`\n"
    "\n## Clues:\n1. Arnold is directly left of Eric.\n2. Eric is the one who only drinks water.\n"
)
HEADER = ["House", "Name", "Drink"]
ROWS = [["1", "Arnold", "tea"], ["2", "Eric", "water"]]
ROW = {"id": "own-1", "size": "2*2", "puzzle": PUZZLE, "header": HEADER, "rows": ROWS}
WRONG = [["1", "Eric", "water"], ["2", "Arnold", "tea"]]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOWNHALL_CACHE", str(tmp_path / "cache"))


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def task_on(tmp_path: Path, *rows: Any, **options: Any) -> ZebraGrid:
    return ZebraGrid(write(tmp_path / "puzzles.jsonl", *rows), **options)


# -- data -----------------------------------------------------------------------------------------------------------


def test_it_is_registered() -> None:
    assert TASKS.get("zebra-grid") is ZebraGrid


def test_a_row_with_its_solution_is_taken_as_it_is(tmp_path: Path) -> None:
    [example] = task_on(tmp_path, ROW).examples
    assert example.id == "own-1"
    assert example.gold == {"header": HEADER, "rows": ROWS}
    assert {key: example.meta[key] for key in ZebraGrid.group_fields} == {
        "size": "2*2",
        "difficulty": "easy",
        "scale": "small",
        "houses": 2,
        "attributes": 2,
    }


@pytest.mark.parametrize(
    "solution",
    [
        {"header": HEADER, "rows": [["___"] * 3] * 2},
        {"header": HEADER, "rows": [["1", "___", "___"], ["2", None, ""]]},
        json.dumps({"header": HEADER, "rows": [["___"] * 3] * 2}),
        None,
    ],
)
def test_a_blanked_solution_of_the_hub_is_supplied_by_the_solver(tmp_path: Path, solution: Any) -> None:
    [example] = task_on(tmp_path, {"id": "hub-1", "size": "2*2", "puzzle": PUZZLE, "solution": solution}).examples
    assert example.gold == {"header": HEADER, "rows": ROWS}


def test_the_hubs_layout_with_its_solution_is_read(tmp_path: Path) -> None:
    [example] = task_on(tmp_path, {"id": "x", "puzzle": PUZZLE, "solution": {"header": HEADER, "rows": WRONG}}).examples
    assert example.gold["rows"] == WRONG
    assert example.meta["size"] == "2*2"


def test_the_hub_is_read_through_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    asked = []

    def load(*arguments: Any, **named: Any) -> list[dict[str, Any]]:
        asked.append((arguments, named))
        return [{"id": "h", "size": "2*2", "puzzle": PUZZLE, "solution": {"header": HEADER, "rows": [["___"] * 3] * 2}}]

    monkeypatch.setattr(datasets, "load_dataset", load)
    [example] = ZebraGrid("hub").examples
    assert asked == [(("allenai/ZebraLogicBench", "grid_mode"), {"split": "test"})]
    assert example.gold["rows"] == ROWS


def test_solved_puzzles_are_kept_and_a_damaged_copy_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert solved(PUZZLE) == (HEADER, ROWS)
    [kept] = (tmp_path / "cache").rglob("*.json")
    with monkeypatch.context() as patch:
        patch.setattr("townhall.tasks.zebra.rows.unique_rows", lambda puzzle: pytest.fail("solved again"))
        assert solved(PUZZLE) == (HEADER, ROWS)
    for damaged in (json.dumps(WRONG), "[[", "7", json.dumps([["1", "Arnold"]])):
        kept.write_text(damaged, encoding="utf-8")
        assert solved(PUZZLE) == (HEADER, ROWS)
        assert json.loads(kept.read_text(encoding="utf-8")) == ROWS


def test_number_cells_become_texts(tmp_path: Path) -> None:
    row = {**ROW, "rows": [[1, "Arnold", 5], [2, "Eric", 7.0]]}
    [example] = task_on(tmp_path, row).examples
    assert example.gold["rows"] == [["1", "Arnold", "5"], ["2", "Eric", "7"]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([json.dumps(ROW) + "\n"] * 6 + ["{not json\n"], "puzzles.jsonl, line 7: not JSON"),
        ([{"id": "a", "header": HEADER, "rows": ROWS}], "puzzles.jsonl, line 1: the field 'puzzle' is missing"),
        ([], "puzzles.jsonl: the file is empty"),
        ([{**ROW, "rows": [["1", "Arnold"], ["2", "Eric", "tea"]]}], "line 1, field rows: row 1 must have 3 cells"),
        ([{**ROW, "rows": "none"}], "line 1, field rows: a text that is not JSON"),
        ([{**ROW, "header": ["Name", "Drink"]}], "line 1, field header: must be a list of column names"),
        ([{**ROW, "header": None}], "line 1: the field 'header' is missing"),
        ([{**ROW, "size": "large"}], "line 1, field size: 'large' is not a size such as 5*6"),
        ([{"puzzle": "Who is who?"}], "line 1: the row holds no solution, and its puzzle cannot be solved: the puzzle"),
        (
            [{"puzzle": PUZZLE.replace("2. Eric is the one who only drinks water.\n", "")}],
            "cannot be solved: the puzzle has more than one solution",
        ),
    ],
)
def test_bad_data_is_refused_in_one_line(tmp_path: Path, rows: list[Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        _ = task_on(tmp_path, *rows).examples
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.jsonl: no such file"):
        _ = ZebraGrid(tmp_path / "nowhere.jsonl").examples


# -- generated puzzles ----------------------------------------------------------------------------------------------


def test_puzzles_are_generated_when_no_data_is_named() -> None:
    examples = ZebraGrid(sizes="2x2,2x3", count="4", seed="3").examples
    assert [example.meta["size"] for example in examples] == ["2*2", "2*3", "2*2", "2*3"]
    assert [example.id for example in examples] == [f"zebra-{size}-s3-{n}" for n in (0, 1) for size in ("2x2", "2x3")]


def test_generated_puzzles_are_kept_and_made_anew_where_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = [example.question for example in ZebraGrid(sizes="2x2", count=3).examples]
    files = sorted((tmp_path / "cache").rglob("*.json"))
    assert len(files) == 3
    files[1].write_text('{"id": "x"', encoding="utf-8")
    tampered = json.loads(files[2].read_text(encoding="utf-8"))
    files[2].write_text(json.dumps({**tampered, "rows": tampered["rows"][::-1]}), encoding="utf-8")
    made = []

    def count(*arguments: Any) -> Any:
        from townhall.tasks.zebra.generator import generate_row

        made.append(arguments)
        return generate_row(*arguments)

    monkeypatch.setattr("townhall.tasks.zebra.rows.generate_row", count)
    assert [example.question for example in ZebraGrid(sizes="2x2", count=4).examples][:3] == first
    assert made == [(2, 2, 1, 0), (2, 2, 2, 0), (2, 2, 3, 0)]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = write(tmp_path / "file", "not a folder")
    monkeypatch.setenv("TOWNHALL_CACHE", str(blocked))
    assert len(ZebraGrid(sizes="2x2", count=2).examples) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": "9x9"}, "size 9x9 is not available"),
        ({"count": 0}, "option count is 0; it must be at least 1"),
        ({"count": "many"}, "option count is 'many'; it must be a whole number"),
        ({"credit": "half"}, "unknown 'half'"),
        ({"size": "2x2"}, "task 'zebra-grid' has no option 'size'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        ZebraGrid(**options)
    assert message in str(caught.value)


# -- questions and answers ------------------------------------------------------------------------------------------


def test_the_question_is_the_puzzle_and_the_shape_of_the_answer(tmp_path: Path) -> None:
    [example] = task_on(tmp_path, ROW).examples
    assert example.question.startswith(PUZZLE.strip())
    template = json.loads(example.question[example.question.index("{") :])
    assert template == {"header": HEADER, "rows": [["1", "___", "___"], ["2", "___", "___"]]}


def test_the_benchmarks_shape_can_be_asked_for(tmp_path: Path) -> None:
    [example] = task_on(tmp_path, ROW, answer_format="benchmark").examples
    template = json.loads(example.question[example.question.index("{") :])
    house = {"Name": "___", "Drink": "___"}
    assert template == {"reasoning": "___", "solution": {"House 1": house, "House 2": house}}


def test_raw_text_is_read_by_both_rules_and_no_other(tmp_path: Path) -> None:
    task = task_on(tmp_path, ROW)
    [example] = task.examples
    reply = json.dumps({"reasoning": "", "solution": {f"House {r[0]}": {"Name": r[1], "Drink": r[2]} for r in ROWS}})
    assert task.extract(reply, example) == task.extract(reply, example, "zeroeval") == Grid(header=HEADER, rows=ROWS)
    with pytest.raises(InputError, match=r"no extraction rule 'strict'. Known: flexible, zeroeval"):
        task.extract(reply, example, "strict")


@pytest.mark.parametrize(
    "answer",
    [
        Grid(header=HEADER, rows=ROWS),
        {"header": HEADER, "rows": ROWS},
        {"House 1": {"Name": "arnold", "Drink": "TEA"}, "House 2": {"Name": "Eric", "Drink": "water"}},
        json.dumps({"header": HEADER, "rows": ROWS}),
    ],
)
def test_typed_answers_and_records_are_scored(tmp_path: Path, answer: Any) -> None:
    task = task_on(tmp_path, ROW)
    score = task.score(answer, task.examples[0])
    assert (score.value, score.blank, score.feedback) == (1, False, "All 4 cells are right.")


@pytest.mark.parametrize("answer", [None, "no idea", {}, [], 7, {"House 1": {"Shoe": "41"}}])
def test_what_is_no_grid_is_a_blank(tmp_path: Path, answer: Any) -> None:
    task = task_on(tmp_path, ROW)
    score = task.score(answer, task.examples[0])
    assert (score.value, score.blank, score.parts["total_cells"]) == (0, True, 4)


def test_the_feedback_names_wrong_cells_and_the_clues_they_break(tmp_path: Path) -> None:
    task = task_on(tmp_path, ROW)
    score = task.score({"header": HEADER, "rows": WRONG}, task.examples[0])
    assert score.value == 0
    assert "house 1 Name is Arnold, not Eric" in score.feedback
    assert score.feedback.endswith("Clue 1 is broken: Arnold is directly left of Eric.")


def test_the_feedback_names_values_that_are_missing_or_used_twice(tmp_path: Path) -> None:
    task = task_on(tmp_path, ROW)
    score = task.score({"header": HEADER, "rows": [["1", "Eric", "tea"], ["2", "Eric", "water"]]}, task.examples[0])
    assert score.feedback.endswith("Not in exactly one house: Name Eric, Name Arnold.")


def test_a_puzzle_in_other_words_is_scored_without_naming_clues(tmp_path: Path) -> None:
    task = task_on(tmp_path, {**ROW, "puzzle": "Arnold, who drinks tea, lives left of Eric, who drinks water."})
    score = task.score({"header": HEADER, "rows": WRONG}, task.examples[0])
    assert (score.parts["correct_cells"], "Clue" in score.feedback) == (0, False)


def test_cells_are_credited_on_request(tmp_path: Path) -> None:
    half = {"header": HEADER, "rows": [["1", "Arnold", "water"], ["2", "Eric", "tea"]]}
    task = task_on(tmp_path, ROW, credit="cell")
    score = task.score(half, task.examples[0])
    assert score.value == 0.5
    assert task.aggregate([Scored(task.examples[0], score)])["puzzle"] == 0


def test_empty_classes_are_not_applicable(tmp_path: Path) -> None:
    task = task_on(tmp_path, ROW)
    [example] = task.examples
    assert task.aggregate([Scored(example, task.score({"header": HEADER, "rows": ROWS}, example))]) == {
        "puzzle": 1,
        "easy": 1,
        "hard": None,
        "small": 1,
        "medium": None,
        "large": None,
        "xl": None,
        "cell": 1,
        "blank": 0,
    }


@pytest.mark.parametrize(
    "gold",
    [{"header": HEADER, "rows": ROWS}, {f"House {row[0]}": {"Name": row[1], "Drink": row[2]} for row in ROWS}],
)
def test_a_row_of_outputs_may_have_its_own_gold_and_no_puzzle(gold: dict[str, Any]) -> None:
    task = ZebraGrid()
    example = task.example({"id": "o", "output": "", "gold": gold}, "here")
    answer = task.extract(json.dumps({"solution": {"House 1": {"Name": "Arnold"}}}), example)
    score = task.score(answer, example)
    assert (example.meta["size"], score.parts["correct_cells"], score.parts["total_cells"]) == ("2*2", 1, 4)


@pytest.mark.parametrize("gold", ["water", {}, {"header": ["House"], "rows": [["1"]]}])
def test_a_gold_that_is_no_grid_is_refused(gold: Any) -> None:
    with pytest.raises(InputError, match="here, field gold: must be a grid"):
        ZebraGrid().example({"id": "o", "output": "", "gold": gold}, "here")


# -- splits and demonstrations --------------------------------------------------------------------------------------


def test_a_puzzles_split_does_not_depend_on_the_shape_asked_for() -> None:
    by_format = []
    for answer_format in ("grid", "benchmark"):
        task = ZebraGrid(sizes="2x2,2x3", count=12, answer_format=answer_format)
        by_format.append(task.assign_splits(task.examples))
    assert by_format[0] == by_format[1]
    assert len(set(by_format[0])) > 1


@pytest.mark.parametrize("worked", WORKED)
def test_the_worked_puzzles_are_right_and_their_mistakes_wrong(worked: Any) -> None:
    [solution] = solutions(worked.puzzle, limit=2)
    assert worked.puzzle.rows(solution) == worked.rows
    mistaken = worked.puzzle.places(worked.puzzle.header, worked.mistaken_rows)
    assert len(mistaken) == len(solution)
    assert not all(clue.holds(mistaken) for clue in worked.puzzle.clues)
    # No puzzle of the benchmark or the generator has a clue too many, so these are in no split.
    assert superfluous(worked.puzzle, solution)


def test_demonstrations_are_asked_as_examples_are(tmp_path: Path) -> None:
    for answer_format in ("grid", "benchmark"):
        task = ZebraGrid(answer_format=answer_format)
        for demonstration, worked in zip(task.demonstrations(), WORKED, strict=True):
            row = {"puzzle": worked.puzzle.text(), "header": worked.puzzle.header, "rows": worked.rows}
            example = task.example(row, "here")
            assert demonstration.question == example.question
            assert task.score(demonstration.answer, example).value == 1
            assert task.score(demonstration.mistaken_answer, example).value == 0


# -- files ----------------------------------------------------------------------------------------------------------


def test_a_file_of_generated_puzzles_verifies_and_is_the_same_data(tmp_path: Path) -> None:
    seen: list[int] = []
    path = write(tmp_path / "puzzles.jsonl", *generate_rows("2x2,3x3", count=4, seed=7))
    report = verify_file(path, progress=seen.append)
    assert (report.puzzles, report.unique, report.compared, report.equal, report.minimal) == (4, 4, 4, 4, 4)
    assert report.ok
    assert seen == [1, 2, 3, 4]
    assert ZebraGrid(path).fingerprint == ZebraGrid(sizes="2x2,3x3", count=4, seed=7).fingerprint


def test_verification_says_what_is_wrong_with_which_puzzle(tmp_path: Path) -> None:
    open_puzzle = PUZZLE.replace("2. Eric is the one who only drinks water.\n", "")
    extra = PUZZLE + "3. Eric is in the second house.\n"
    path = write(
        tmp_path / "puzzles.jsonl",
        {**ROW, "rows": WRONG},
        {**ROW, "id": "own-2", "puzzle": open_puzzle},
        {**ROW, "id": "own-3", "puzzle": PUZZLE.replace("only drinks", "sips")},
        {**ROW, "id": "own-4", "puzzle": extra},
        {"id": "own-5", "puzzle": PUZZLE},
    )
    report = verify_file(path)
    assert (report.puzzles, report.unique, report.compared, report.equal, report.minimal) == (5, 3, 4, 1, 2)
    assert not report.ok
    assert [problem.split(": ", 1)[1] for problem in report.problems] == [
        "the solution in the file is not the puzzle's",
        "more than one solution",
        "clue 2 cannot be read: 'Eric is the one who sips water.'",
    ]
    assert report.problems[0].startswith(f"{path}, line 1 (own-1)")
    assert report.plain()["ok"] is False


# -- real data ------------------------------------------------------------------------------------------------------


def test_the_real_files_verify(shared: Path) -> None:
    reports = [verify_file(shared / "data" / "zebra" / name) for name in ("puzzles.jsonl", "extra_grid_200.jsonl")]
    assert [(report.puzzles, report.equal, report.ok) for report in reports] == [(16, 16, True), (200, 200, True)]


def test_real_puzzles_with_blanked_solutions_get_the_published_ones(shared: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (shared / "data/zebra/puzzles.jsonl").read_text("utf-8").splitlines()]
    blanked = [
        {
            **{key: row[key] for key in ("id", "size", "puzzle")},
            "solution": {"header": row["header"], "rows": [["___"] * len(row["header"])] * len(row["rows"])},
        }
        for row in rows
    ]
    examples = task_on(tmp_path, *blanked).examples
    assert [example.gold for example in examples] == [{"header": row["header"], "rows": row["rows"]} for row in rows]
    assert ZebraGrid(shared / "data/zebra/puzzles.jsonl").fingerprint == task_on(tmp_path, *blanked).fingerprint


def test_no_demonstration_is_among_the_real_puzzles(shared: Path) -> None:
    real = {
        parse_puzzle(json.loads(line)["puzzle"]).clues
        for name in ("puzzles.jsonl", "extra_grid_200.jsonl")
        for line in (shared / "data" / "zebra" / name).read_text("utf-8").splitlines()
    }
    assert not real & {worked.puzzle.clues for worked in WORKED}
