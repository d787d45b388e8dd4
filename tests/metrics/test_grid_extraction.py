"""Reading grids from raw text, by both rules."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from townhall.metrics.grid import aggregate_grids, grid_score
from townhall.metrics.grid_extraction import extract_grid, last_balanced_object
from townhall.signatures.answers import Grid

HEADER = ["House", "Name", "Pet"]
ROWS = [["1", "Eric", "cat"], ["2", "Arnold", "dog"]]
SOLUTION = {"House 1": {"Name": "Eric", "Pet": "cat"}, "House 2": {"Name": "Arnold", "Pet": "dog"}}
WRONG = {"House 1": {"Name": "Arnold", "Pet": "cat"}, "House 2": {"Name": "Eric", "Pet": "dog"}}
REPLY = json.dumps({"reasoning": "by clue 1", "solution": SOLUTION}, indent=4)


def rows(text: str, rule: str = "flexible") -> list[list[str]] | None:
    grid = extract_grid(text, HEADER, 2, rule)
    return None if grid is None else grid.rows


# -- both rules -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["flexible", "zeroeval"])
@pytest.mark.parametrize(
    "text",
    [
        REPLY,
        f"Let me think {{about}} it.\n\n```json\n{REPLY}\n```\nDone.",
        json.dumps({"solution": WRONG}) + "\nNo, wait:\n" + REPLY,
    ],
)
def test_the_benchmarks_reply_is_read(text: str, rule: str) -> None:
    assert rows(text, rule) == ROWS


@pytest.mark.parametrize("rule", ["flexible", "zeroeval"])
@pytest.mark.parametrize(
    "text", ["", "I cannot solve this.", "{}", "}{", '{"reasoning": "none"}', '{"solution": null}']
)
def test_a_text_without_a_grid_is_a_blank(text: str, rule: str) -> None:
    assert rows(text, rule) is None


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown rule 'last'"):
        extract_grid(REPLY, HEADER, 2, "last")


# -- zeroeval: the published rule, corner cases included ------------------------------------------------------------


def test_zeroeval_does_not_fall_back_to_an_earlier_object() -> None:
    assert rows(REPLY + '\n{"oops": }', "zeroeval") is None
    assert rows(REPLY + '\n{"oops": }') == ROWS


def test_zeroeval_takes_the_last_object_even_when_it_holds_no_solution() -> None:
    assert rows(REPLY + '\n{"confidence": 1}', "zeroeval") is None
    assert rows(REPLY + '\n{"confidence": 1}') == ROWS


def test_zeroeval_counts_braces_inside_strings() -> None:
    assert last_balanced_object('{"a": "}"}') is None
    assert last_balanced_object('{"a": "{}"}') == {"a": "{}"}


def test_zeroeval_reads_nothing_after_a_brace_that_is_never_closed() -> None:
    assert rows("Consider { first.\n" + REPLY, "zeroeval") is None
    assert rows("Consider { first.\n" + REPLY) == ROWS


def test_zeroeval_ignores_a_closing_brace_that_was_never_opened() -> None:
    assert rows("} so\n" + REPLY, "zeroeval") == ROWS


def test_zeroeval_removes_newlines_before_reading() -> None:
    assert last_balanced_object('{"a": "one\n two"}') == {"a": "one two"}
    assert last_balanced_object('{"a": "one\t two"}') is None


def test_zeroeval_wants_the_keys_of_the_prompt_exactly() -> None:
    text = json.dumps({"solution": {"house 1": {"Name": "Eric"}, "House 2": {"name": "Arnold", "Pet": ["dog", "cat"]}}})
    assert rows(text, "zeroeval") == [["1", "", ""], ["2", "", "dog"]]


def test_zeroeval_an_empty_solution_is_an_answer_with_every_cell_wrong() -> None:
    grid = extract_grid('{"solution": {}}', HEADER, 2, "zeroeval")
    score = grid_score(grid, Grid(header=HEADER, rows=ROWS), "2*2")
    assert (score.blank, score.parts["correct_cells"]) == (False, 0)


# -- flexible -------------------------------------------------------------------------------------------------------

SHAPES = {
    "typed": {"header": HEADER, "rows": ROWS},
    "typed, under a key": {"answer": {"header": HEADER, "rows": ROWS}},
    "header without the house": {"header": HEADER[1:], "rows": [row[1:] for row in ROWS]},
    "rows as objects": [{"House": 1, "Name": "Eric", "Pet": "cat"}, {"House": 2, "Name": "Arnold", "Pet": "dog"}],
    "rows only": {"rows": ROWS},
    "rows only, without the house": {"rows": [row[1:] for row in ROWS]},
    "list of lists": ROWS,
    "list of lists with a header": [HEADER, *ROWS],
    "bare numbers": {"1": SOLUTION["House 1"], "2": SOLUTION["House 2"]},
    "house1": {"house1": SOLUTION["House 1"], "house2": SOLUTION["House 2"]},
    "other case of the columns": {
        "House 1": {"name": "Eric", "PET": "cat"},
        "House 2": {"NAME": "Arnold", "pet": "dog"},
    },
    "a list under each house": {"House 1": ["Eric", "cat"], "House 2": ["Arnold", "dog"]},
    "a list under each attribute": {"Name": ["Eric", "Arnold"], "Pet": ["cat", "dog"]},
    "houses under each attribute": {"Name": {"House 1": "Eric", "House 2": "Arnold"}, "Pet": {"1": "cat", "2": "dog"}},
    "under unknown keys": {"result": {"final": SOLUTION}},
    "JSON within JSON": {"answer": json.dumps(SOLUTION)},
    "a draft before the solution": {"draft": WRONG, "solution": SOLUTION},
    "remarks after the solution": {"solution": SOLUTION, "rejected": WRONG},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_grid_is_read(shape: str) -> None:
    assert rows("The answer:\n" + json.dumps(SHAPES[shape])) == ROWS


def test_the_columns_come_back_as_asked() -> None:
    grid = extract_grid('{"House 2": {"pet": "dog", "shoe": "41"}}', HEADER, 2)
    assert grid == Grid(header=HEADER, rows=[["1", "", ""], ["2", "", "dog"]])


def test_numbers_and_nulls_in_cells() -> None:
    assert rows('{"House 1": {"Name": 7, "Pet": null}, "House 2": {"Name": 7.0, "Pet": true}}') == [
        ["1", "7", ""],
        ["2", "7", "True"],
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(REPLY[:-2], id="outer brace missing"),
        pytest.param(REPLY.replace("by clue 1", "since \\(x\\) isn\\'t"), id="broken escapes"),
        pytest.param(REPLY.replace("by clue 1", 'the "cat" is first'), id="quotes not escaped"),
        pytest.param(REPLY.replace("by clue 1", "line one\nline two"), id="newline in a string"),
        pytest.param(REPLY.replace('"cat"', '"cat",'), id="trailing comma"),
        pytest.param(REPLY.replace('"', "'"), id="single quotes"),
        pytest.param(REPLY.replace('"cat"\n', '"cat" // by clue 2\n'), id="comment"),
        pytest.param(f"```json\n{REPLY[:-4]}\n```\nI hope that helps.", id="unclosed in a fence"),
    ],
)
def test_broken_json_is_repaired(text: str) -> None:
    assert rows(text) == ROWS


def test_a_reply_cut_off_keeps_what_it_said() -> None:
    assert rows(REPLY[: REPLY.index('"dog"')]) == [["1", "Eric", "cat"], ["2", "Arnold", ""]]


def test_broken_json_after_valid_json_is_the_last_word() -> None:
    assert rows(json.dumps({"solution": WRONG}) + "\nCorrected:\n" + REPLY.replace('"cat"', '"cat",')) == ROWS


def test_an_unfilled_template_is_no_answer() -> None:
    template = json.dumps({"solution": {f"House {n}": {"Name": "___", "Pet": "___"} for n in (1, 2)}})
    assert rows(template) is None
    assert rows(REPLY + "\nas asked:\n" + template) == ROWS


TABLE = """Here is the grid:

| House | Name | Pet |
|:------|:----:|-----|
| 1 | **Eric** | `cat` |
| House 2 | Arnold | dog |

as required."""
TURNED_TABLE = """| Attribute | House 1 | House 2 |
|---|---|---|
| Name | Eric | Arnold |
| Pet | cat | dog |"""
BARE_TABLE = """| Name | Pet |
|---|---|
| Eric | cat |
| Arnold | dog |"""


@pytest.mark.parametrize("text", [TABLE, TURNED_TABLE, BARE_TABLE])
def test_a_markdown_table_is_read(text: str) -> None:
    assert rows(text) == ROWS


def test_the_last_table_counts_and_json_before_tables() -> None:
    draft = TABLE.replace("Eric", "Bob")
    assert rows(f"{draft}\n\nCorrected:\n\n{TABLE}") == ROWS
    assert rows(f"{REPLY}\n\n{draft}") == ROWS


@pytest.mark.parametrize(
    "text", ["[" * 50_000, "{" * 50_000, '{"a":' * 20_000, "|" * 50_000, "[{" * 20_000 + "}]" * 20_000]
)
@pytest.mark.parametrize("rule", ["flexible", "zeroeval"])
def test_a_malicious_text_neither_crashes_nor_hangs(text: str, rule: str) -> None:
    start = time.perf_counter()
    assert rows(text, rule) is None
    assert time.perf_counter() - start < 20


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet='{}[]":,| \\\nHouse12NamePet_`', max_size=80))
def test_any_text_gives_a_grid_of_the_right_shape_or_none(text: str) -> None:
    for rule in ("flexible", "zeroeval"):
        grid = extract_grid(text, HEADER, 2, rule)
        assert grid is None or (grid.header == HEADER and [len(row) for row in grid.rows] == [3, 3])


# -- the published run ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["zeroeval", "flexible"])
def test_the_published_figures_are_reproduced(shared: Path, rule: str) -> None:
    folder = shared / "data" / "zebra"
    golds = {row["id"]: row for row in map(json.loads, (folder / "puzzles.jsonl").read_text("utf-8").splitlines())}
    scores = []
    for line in (folder / "llama405b_outputs.jsonl").read_text("utf-8").splitlines():
        output = json.loads(line)
        gold = golds[output["id"]]
        grid = extract_grid(output["output"], gold["header"], len(gold["rows"]), rule)
        score = grid_score(grid, Grid(header=gold["header"], rows=gold["rows"]), gold["size"])
        assert score.parts["correct_cells"] == output["correct_cells"], output["id"]
        assert score.parts["total_cells"] == output["total_cells"]
        assert score.blank is not output["parsed"]
        scores.append(score)
    assert aggregate_grids(scores) == {
        "puzzle": 4 / 16,
        "easy": 2 / 3,
        "hard": 2 / 13,
        "small": 2 / 4,
        "medium": 2 / 6,
        "large": 0,
        "xl": 0,
        "cell": 124 / 266,
        "blank": 1 / 16,
    }
