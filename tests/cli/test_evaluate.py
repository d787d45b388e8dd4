from __future__ import annotations

import json

import pytest

SMALL = ("--task", "arithmetic", "-T", "count=20", "--lm", "simulated")
HALL = (*SMALL, "--personas", "2", "--rounds", "1", "--limit", "3", "--split", "all")
#: What `evaluate --json` shares with `score --json`, and what it adds.
KEYS = {"task", "n", "extract", "scores", "groups", "usage", "run"}
USAGE = {"calls", "cached", "prompt_tokens", "completion_tokens", "cost", "seconds"}


def test_json_has_the_keys_of_score_and_usage_and_run(townhall, folder):
    report = townhall("evaluate", *HALL, "--json").json
    assert report.keys() >= KEYS
    assert set(report["usage"]) == USAGE
    assert report["task"] == "arithmetic"
    assert report["n"] == 3
    assert set(report["scores"]) == {"accuracy", "blank"}
    assert report["simulated"] is True
    assert report["settings"]["personas"] == 2
    assert (folder / report["run"] / "records.jsonl").read_text().count("\n") == 3


def test_the_same_command_shows_the_finished_run_without_a_call(townhall):
    first = townhall("evaluate", *HALL, "--json").json
    second = townhall("evaluate", *HALL, "--json").json
    assert second["run"] == first["run"]
    assert second["usage"] == first["usage"]
    assert second["scores"] == first["scores"]


def test_fresh_asks_the_model_again(townhall):
    first = townhall("evaluate", *HALL, "--json").json
    again = townhall("evaluate", *HALL, "--fresh", "--json").json
    assert again["run"] == first["run"]
    assert again["usage"]["cached"] == 0
    assert again["usage"]["calls"] == first["usage"]["calls"] > 0


def test_table_has_scores_cost_and_the_run(townhall):
    outcome = townhall("evaluate", *HALL)
    assert outcome.code == 0
    assert "arithmetic · town-hall · all, 3 examples · simulated" in outcome.out
    assert "SIMULATED: these figures say nothing about a real model" in outcome.out
    for part in ("accuracy", "blank", "calls", "tokens sent", "run: runs/arithmetic-town-hall-"):
        assert part in outcome.out
    assert "3/3" in outcome.err


def test_budget_of_calls_stops_with_code_3_and_a_larger_one_goes_on(townhall):
    stopped = townhall("evaluate", *HALL, "--max-calls", "4", "--json")
    assert stopped.code == 3
    assert stopped.json["status"] == "stopped"
    assert stopped.json["usage"]["calls"] <= 4
    assert "stopped: " in stopped.err
    finished = townhall("evaluate", *HALL, "--max-calls", "100", "--json")
    assert finished.code == 0
    assert finished.json["n"] == 3


def test_settings_and_seed_reach_the_strategy(townhall):
    report = townhall(
        "evaluate", *SMALL, "--limit", "1", "--strategy", "society", "--agents", "2", "--rounds", "1",
        "--prompt-style", "short", "--seed", "7", "--temperature", "0.4", "--json",
    ).json  # fmt: skip
    settings = report["settings"]
    assert (settings["agents"], settings["prompt_style"], settings["seed"]) == (2, "short", 7)
    assert settings["temperature"] == 0.4


def test_order_file_means_the_whole_file_in_its_order(townhall, folder):
    rows = [{"question": f"What is {n} + 1?", "answer": n + 1, "id": f"q{n}"} for n in range(8)]
    (folder / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = townhall(
        "evaluate", "--task", "arithmetic", "--data", "sums.jsonl", "--lm", "simulated", "--strategy",
        "chain-of-thought", "--order", "file", "--limit", "5", "--json",
    ).json  # fmt: skip
    records = [json.loads(line) for line in (folder / report["run"] / "records.jsonl").read_text().splitlines()]
    assert sorted(record["id"] for record in records) == ["q0", "q1", "q2", "q3", "q4"]
    assert report["split"] == "all"


def test_default_split_is_test(townhall):
    report = townhall("evaluate", *SMALL, "--strategy", "chain-of-thought", "--json").json
    assert report["split"] == "test"
    assert 0 < report["n"] < 20


def test_match_cost_runs_the_majority_at_as_many_calls(townhall):
    debate = townhall("evaluate", *HALL, "--json").json
    matched = townhall("evaluate", *SMALL, "--match-cost", debate["run"], "--json").json
    assert matched["strategy"] == "majority"
    assert matched["usage"]["calls"] == debate["usage"]["calls"]
    assert matched["n"] == 3


def test_groups_are_shown_by_field(townhall):
    arguments = ("--task", "zebra-grid", "-T", "sizes=2x2,2x3", "-T", "count=4", "--lm", "simulated")
    outcome = townhall(
        "evaluate", *arguments, "--strategy", "chain-of-thought", "--split", "all", "--by", "size", "--json"
    )
    assert set(outcome.json["groups"]) == {"2*2", "2*3"}
    assert all(group["n"] == 2 for group in outcome.json["groups"].values())


def test_server_that_refuses_ends_with_code_1_and_one_reason(townhall):
    outcome = townhall(
        "evaluate", "--task", "arithmetic", "-T", "count=20", "--lm", "openai/x", "--api-base",
        "http://127.0.0.1:9/v1", "--strategy", "chain-of-thought", "--limit", "2",
    )  # fmt: skip
    assert outcome.code == 1
    last = outcome.err.splitlines()[-1]
    assert last.startswith("townhall: error: ")
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--task", "zebra-gird"], "unknown task 'zebra-gird'. Did you mean 'zebra-grid'?"),
        ([], "which task? Name it with --task. Known: "),
        (["--task", "arithmetic", "--strategy", "town-hal"], "unknown strategy 'town-hal'. Did you mean 'town-hall'?"),
        (["--task", "arithmetic", "--personas", "0"], "--personas is 0: input should be greater than or equal to 1"),
        (["--task", "arithmetic", "--round", "2"], "no option '--round'. Did you mean '--rounds'?"),
        (["--task", "zebra-grid", "--data", "gone.jsonl"], "gone.jsonl: no such file"),
        (["--task", "zebra-grid", "--data", "broken.jsonl"], "broken.jsonl, line 7: not JSON"),
        (["--task", "zebra-grid", "--data", "other.jsonl"], "other.jsonl, line 1: the field 'puzzle' is missing"),
        (["--task", "zebra-grid", "--data", "empty.jsonl"], "empty.jsonl: the file is empty"),
        (["--task", "arithmetic", "--out", "a-file"], "a-file: is a file"),
        (["--task", "arithmetic", "--out", "a-file/run"], "a-file/run: the run folder cannot be written"),
        (["--task", "arithmetic", "--limit", "0"], "--limit: 0 is out of range; it must be at least 1"),
        (["--task", "arithmetic", "--split", "tset"], "--split: 'tset' is not one of 'train', 'dev', 'test', 'all'"),
        (["--task", "arithmetic", "--by", "size"], "no field 'size' to group by"),
        (["--task", "arithmetic", "--max-cost", "0"], "--max-cost: 0 is out of range; it must be above 0"),
        (["--task", "arithmetic", "--match-cost", "runs/gone"], "runs/gone: no such folder"),
        (["--task", "arithmetic", "--match-cost", "x", "--limit", "2"], "--match-cost takes the run's own examples"),
        (["--task", "arithmetic", "--models-file", "gone.yaml"], "gone.yaml"),
    ],
)
def test_bad_input_is_one_line_that_says_what_would_be_right(refused, folder, arguments, problem):
    puzzle = json.dumps({"id": "x", "puzzle": "There are 2 houses"})
    (folder / "broken.jsonl").write_text("\n" * 6 + "{not json\n")
    (folder / "other.jsonl").write_text(json.dumps({"id": "x", "question": "?"}) + "\n")
    (folder / "empty.jsonl").write_text("")
    (folder / "a-file").write_text(puzzle)
    assert problem in refused("evaluate", "--lm", "simulated", *arguments)
