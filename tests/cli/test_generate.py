from __future__ import annotations

import json


def test_rows_go_to_standard_output(townhall):
    outcome = townhall("generate", "arithmetic", "--count", "2", "--seed", "5")
    rows = [json.loads(line) for line in outcome.out.splitlines()]
    assert [row["id"] for row in rows] == ["arithmetic-5-0", "arithmetic-5-1"]


def test_equal_options_give_equal_bytes(townhall, folder):
    for name in ("a.jsonl", "b.jsonl"):
        outcome = townhall("generate", "zebra-grid", "--sizes", "2x2,2x3", "--count", "4", "--seed", "7", "--out", name)
        assert outcome.code == 0
        assert f"4 examples of zebra-grid written to {name}" in outcome.err
    assert (folder / "a.jsonl").read_bytes() == (folder / "b.jsonl").read_bytes()
    assert (folder / "a.jsonl").read_text().count("\n") == 4


def test_generated_puzzles_verify(townhall):
    townhall("generate", "zebra-grid", "--sizes", "2x2", "--count", "2", "--out", "a.jsonl")
    report = townhall("generate", "--verify", "a.jsonl", "--json").json
    assert report["ok"] is True
    assert (report["puzzles"], report["unique"], report["equal"], report["minimal"]) == (2, 2, 2, 2)


def test_wrong_solution_in_a_file_is_found(townhall, folder):
    townhall("generate", "zebra-grid", "--sizes", "2x2", "--count", "1", "--out", "a.jsonl")
    row = json.loads((folder / "a.jsonl").read_text())
    grid = row["solution"]["rows"] if "solution" in row else row["rows"]
    grid[0][1:], grid[1][1:] = grid[1][1:], grid[0][1:]
    (folder / "b.jsonl").write_text(json.dumps(row) + "\n")
    outcome = townhall("generate", "--verify", "b.jsonl")
    assert outcome.code == 1
    assert "the solution in the file is not the puzzle's" in outcome.err


def test_json_reports_what_was_written(townhall):
    outcome = townhall("generate", "arithmetic", "--count", "3", "--out", "a.jsonl", "--json")
    assert outcome.json == {"task": "arithmetic", "count": 3, "out": "a.jsonl"}


def test_no_half_file_is_left(townhall, folder, monkeypatch):
    from townhall.tasks.arithmetic import Arithmetic

    def breaks(self):
        yield {"id": "1"}
        raise KeyboardInterrupt

    monkeypatch.setattr(Arithmetic, "generate", breaks)
    assert townhall("generate", "arithmetic", "--out", "a.jsonl").code == 130
    assert list(folder.iterdir()) == []


def test_bad_input(refused, folder):
    assert "which task?" in refused("generate")
    assert "task 'gsm8k' has no generator" in refused("generate", "gsm8k")
    assert "task 'arithmetic' has no option 'sizes'" in refused("generate", "arithmetic", "--sizes", "2x2")
    assert "unknown task 'zebra'" in refused("generate", "zebra")
    assert "there is no folder" in refused("generate", "arithmetic", "--out", "no/folder/x.jsonl")
    assert "is a folder; name a file" in refused("generate", "arithmetic", "--out", str(folder))
    assert "7x7 is not available" in refused("generate", "zebra-grid", "--sizes", "7x7")
    assert "gone.jsonl: no such file" in refused("generate", "--verify", "gone.jsonl")
    assert "task 'gsm8k' has none" in refused("generate", "gsm8k", "--verify", "x")
    assert "--count: 0 is out of range" in refused("generate", "arithmetic", "--count", "0")
