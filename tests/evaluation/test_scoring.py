from __future__ import annotations

import json
import subprocess
import sys

import pytest

from townhall.errors import InputError
from townhall.evaluation.records import Record
from townhall.evaluation.scoring import score_outputs, score_records


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def outputs(tmp_path):
    """Return `make(rows)`: an outputs file."""
    return lambda rows: write(tmp_path / "outputs.jsonl", rows)


def test_outputs_find_their_gold_in_the_data_by_id_or_idx(sums, outputs):
    task = sums(3)  # ids 0+1, 1+2, 2+3
    rows = [{"id": "0+1", "output": "it is 1"}, {"idx": "1+2", "output": "4?"}, {"id": "2+3", "output": "5"}]
    found = score_outputs(task, outputs(rows))
    assert found.as_json() == {
        "task": "sums",
        "n": 3,
        "extract": "flexible",
        "scores": {"accuracy": pytest.approx(2 / 3), "blank": 0.0},
        "groups": {},
    }


def test_blank_outputs_stay_in_the_denominator(sums, outputs):
    rows = [
        {"id": "0+1", "output": "1"},
        {"id": "1+2", "output": "I cannot tell"},
        {"id": "2+3", "output": ""},
        {"id": "2+3", "output": None},
    ]
    scores = score_outputs(sums(3), outputs(rows)).report.scores
    assert scores == {"accuracy": 1 / 4, "blank": 3 / 4}


def test_a_row_may_have_its_own_gold(sums_task, outputs):
    rows = [{"a": 1, "b": 2, "gold": 30, "output": "30"}, {"a": 1, "b": 3, "gold": 4, "output": "5"}]
    assert score_outputs(sums_task(), outputs(rows)).report.scores["accuracy"] == 0.5


def test_a_json_array_is_read_too(sums, tmp_path):
    file = tmp_path / "outputs.json"
    file.write_text(json.dumps([{"id": "0+1", "output": "1"}, {"id": "1+2", "output": "2"}], indent=2))
    assert score_outputs(sums(2), file).report.scores["accuracy"] == 0.5


def test_several_samples_score_what_one_is_expected_to(sums, outputs, tmp_path):
    rows = [
        {"id": "0+1", "output": ["1", "1", "7", "?"]},  # 2 of 4
        {"id": "1+2", "output": ["3"] * 4},  # 4 of 4
        {"id": "2+3", "output": ["1", "5", "5", "5"]},  # 3 of 4
    ]
    found = score_outputs(sums(3), outputs(rows), records=tmp_path / "records.jsonl")
    assert found.report.n == 3
    assert found.report.scores == {"accuracy": pytest.approx(9 / 12), "blank": pytest.approx(1 / 12)}
    first = json.loads((tmp_path / "records.jsonl").read_text().splitlines()[0])
    assert first["extracted"] == [1, 1, 7, None]
    assert first["score"] == 0.5
    assert first["blank"] == [False, False, False, True]


def test_rows_with_other_numbers_of_samples_weigh_the_same(sums, outputs):
    rows = [{"id": "0+1", "output": ["1", "7"]}, {"id": "1+2", "output": "3"}]
    assert score_outputs(sums(2), outputs(rows)).report.scores["accuracy"] == pytest.approx((0.5 + 1) / 2)


def test_records_have_a_line_a_row(sums, outputs, tmp_path):
    rows = [{"idx": "1+2", "output": "the sum is 3"}, {"id": "0+1", "output": "four"}]
    score_outputs(sums(2), outputs(rows), records=tmp_path / "records.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert lines == [
        {"id": "1+2", "extracted": 3, "score": 1.0, "parts": {"off": 0}, "blank": False},
        {"id": "0+1", "extracted": None, "score": 0.0, "parts": {}, "blank": True},
    ]


def test_groups_have_accuracy_and_parity_and_the_whole_their_mean_and_least(sums, outputs):
    """Groups X 1/2, Y 0/8, Z 3/4: accuracies .5, 0, .75; parities .667, 0, 1; their mean .556."""
    right = {"X": (1, 2), "Y": (0, 8), "Z": (3, 4)}
    rows = [
        {"id": "0+1", "output": "1" if number < hits else "0", "team": name}
        for name, (hits, n) in right.items()
        for number in range(n)
    ]
    found = score_outputs(sums(1), outputs(rows), by="team").as_json()
    assert {name: group["n"] for name, group in found["groups"].items()} == {"X": 2, "Y": 8, "Z": 4}
    assert [found["groups"][name]["scores"]["accuracy"] for name in "XYZ"] == [0.5, 0.0, 0.75]
    assert [found["groups"][name]["scores"]["parity"] for name in "XYZ"] == [pytest.approx(2 / 3), 0.0, 1.0]
    assert found["scores"]["parity"] == pytest.approx((2 / 3 + 0 + 1) / 3)
    assert found["scores"]["parity_min"] == 0.0
    assert found["scores"]["accuracy"] == pytest.approx(4 / 14)


def test_groups_come_from_the_examples_too(sums, outputs):
    rows = [{"id": f"{n}+{n + 1}", "output": str(2 * n + 1)} for n in range(12)]
    groups = score_outputs(sums(12), outputs(rows), by="size").report.groups
    assert {name: group.n for name, group in groups.items()} == {"large": 2, "small": 10}


def test_a_failed_example_is_in_its_groups_denominator(sums):
    task = sums(12)
    records = [
        Record(index=n, id=str(n), fingerprint=str(n), meta={"size": size}, score=score, error=error)
        for n, (size, score, error) in enumerate([("small", 1.0, None), ("small", 0.0, "gone"), ("large", 1.0, None)])
    ]
    report = score_records(task, records, by="size")
    assert report.groups["small"].scores["accuracy"] == 0.5
    assert report.groups["small"].n == 2
    assert report.scores["parity_min"] == 0.5


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (
            [{"id": "0+1", "text": "1"}],
            r"outputs\.jsonl, line 1: the field 'output' is missing. Fields there: id, text",
        ),
        ([{"id": "9+9", "output": "1"}], r"line 1: no example '9\+9' in .*, and the row has no 'gold' of its own"),
        ([{"output": "1"}], r"line 1: needs 'id' \(or 'idx'\) to find its gold, or a 'gold' of its own"),
        ([{"id": "0+1", "output": 5}], r"line 1, field output: a JSON int; it must be a text or a list of texts"),
        ([{"id": "0+1", "output": ["1", {"a": 1}]}], r"line 1, field output: a JSON dict"),
    ],
)
def test_a_wrong_row_is_named(rows, problem, sums, outputs):
    with pytest.raises(InputError, match=problem):
        score_outputs(sums(2), outputs(rows))


def test_wrong_names_are_named(sums, outputs, tmp_path):
    rows = [{"id": "0+1", "output": "1", "team": "A"}]
    with pytest.raises(InputError, match=r"no extraction rule 'strict'. Known: flexible"):
        score_outputs(sums(2), outputs(rows), rule="strict")
    with pytest.raises(InputError, match=r"line 1: no field 'teem' to group by. Did you mean 'team'"):
        score_outputs(sums(2), outputs(rows), by="teem")
    with pytest.raises(InputError, match="no such file"):
        score_outputs(sums(2), tmp_path / "nothing.jsonl")
    with pytest.raises(InputError, match="cannot be written"):
        score_outputs(sums(2), outputs(rows), records=tmp_path / "no" / "records.jsonl")
    with pytest.raises(InputError, match="would overwrite the outputs"):
        score_outputs(sums(2), outputs(rows), records=outputs(rows))


def test_examples_without_an_output_are_counted_apart(sums, outputs):
    found = score_outputs(sums(5), outputs([{"id": "0+1", "output": "1"}]))
    assert found.report.n == 1
    assert found.unanswered == 4


def test_scoring_needs_no_dspy():
    code = (
        "import sys, townhall.evaluation.scoring, townhall.evaluation.run_folder, townhall.evaluation.comparison, "
        "townhall.evaluation.summary; print('dspy' in sys.modules, 'rich' in sys.modules, 'scipy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"] * 3


def test_the_published_row_of_zebralogic_is_reproduced(shared):
    from townhall.tasks.access import task

    data = shared / "data" / "zebra"
    found = score_outputs(task("zebra-grid", data / "puzzles.jsonl"), data / "llama405b_outputs.jsonl", "zeroeval")
    expected = {
        "puzzle": 4 / 16,
        "easy": 2 / 3,
        "hard": 2 / 13,
        "small": 2 / 4,
        "medium": 2 / 6,
        "large": 0.0,
        "xl": 0.0,
        "cell": 124 / 266,
        "blank": 1 / 16,
    }
    assert found.report.n == 16
    assert found.report.scores == pytest.approx(expected)
