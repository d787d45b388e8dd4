from __future__ import annotations

import json

import pytest


@pytest.fixture
def outputs(folder):
    rows = [
        {"id": "a", "gold": 4, "output": "so the answer is 4", "model": "x"},
        {"id": "b", "gold": 7, "output": "the answer is 8", "model": "x"},
        {"id": "c", "gold": 9, "output": "I do not know", "model": "y"},
        {"id": "d", "gold": 5, "output": "the answer is 5", "model": "y"},
    ]
    (folder / "outputs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "outputs.jsonl"


def test_json_is_the_contract_for_others_tools(townhall, outputs):
    report = townhall("score", "--task", "gsm8k", "--outputs", outputs, "--json").json
    assert report == {
        "task": "gsm8k",
        "n": 4,
        "extract": "flexible",
        "scores": {"accuracy": 0.5, "blank": 0.25},
        "groups": {},
    }


def test_records_have_a_line_a_row(townhall, outputs, folder):
    townhall("score", "--task", "gsm8k", "--outputs", outputs, "--records", "scored.jsonl", "--json")
    lines = [json.loads(line) for line in (folder / "scored.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == ["a", "b", "c", "d"]
    assert [line["score"] for line in lines] == [1, 0, 0, 1]
    assert [line["extracted"] for line in lines] == [4, 8, None, 5]
    assert all("parts" in line for line in lines)


def test_groups_by_a_field_of_the_outputs(townhall, outputs):
    groups = townhall("score", "--task", "gsm8k", "--outputs", outputs, "--by", "model", "--json").json["groups"]
    assert {name: (group["n"], group["scores"]["accuracy"]) for name, group in groups.items()} == {
        "x": (2, 0.5),
        "y": (2, 0.5),
    }


def test_table_for_people(townhall, outputs):
    outcome = townhall("score", "--task", "gsm8k", "--outputs", outputs)
    assert "gsm8k · 4 outputs · extraction: flexible" in outcome.out
    assert "accuracy   0.500" in outcome.out


def test_bad_input(refused, outputs, folder):
    assert "option '--outputs'" in refused("score", "--task", "gsm8k")
    assert "gone.jsonl: no such file" in refused("score", "--task", "gsm8k", "--outputs", "gone.jsonl")
    assert "no extraction rule 'zeroval'. Did you mean 'zeroeval'?" in refused(
        "score", "--task", "gsm8k", "--outputs", outputs, "--extract", "zeroval"
    )
    assert "no field 'modl' to group by. Did you mean 'model'?" in refused(
        "score", "--task", "gsm8k", "--outputs", outputs, "--by", "modl"
    )
    (folder / "bare.jsonl").write_text('{"output": "4"}\n')
    assert "bare.jsonl, line 1: needs 'id' (or 'idx')" in refused("score", "--task", "gsm8k", "--outputs", "bare.jsonl")
