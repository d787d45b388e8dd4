from __future__ import annotations

import json

import pytest

ARITHMETIC = ("--task", "arithmetic", "-T", "count=60", "--strategy", "society")
SMALL = ("--agents", "2:3", "--rounds", "1:1", "--trials", "2", "--limit", "4", "--test-limit", "3", "-S", "train=3")


@pytest.fixture
def model(townhall):
    townhall("generate", "arithmetic", "--count", "60", "--out", "answers.jsonl")
    return ("--lm", "simulated?accuracy=0.7&answers=answers.jsonl")


def test_tune_in_stages_prints_what_each_gave_saves_and_judges(townhall, model, folder):
    command = ("tune", "--staged", *ARITHMETIC, *model, *SMALL)
    outcome = townhall(*command)
    assert outcome.code == 0, outcome
    for text in ("arithmetic · society · bootstrap, in stages", "prompts", "shape", "prompts again"):
        assert text in outcome.out
    for role in ("solve", "revise", "summarise"):
        assert f"  {role}" in outcome.out
    assert "held out: 3 test examples" in outcome.out
    saved = json.loads((folder / "artifacts/arithmetic-society-staged/artifact.json").read_text())
    assert [stage["name"] for stage in saved["tuning"]["stages"]] == [
        "prompts", "shape", "prompts again",
    ]  # fmt: skip
    assert saved["held_out"]["rows"][0]["name"] == "tuned"
    again = townhall(*command, "--overwrite", "--json")
    assert again.code == 0, again
    assert again.json["stages"] == saved["tuning"]["stages"]


def test_a_budget_that_the_stages_use_up_ends_with_code_3_and_an_artifact(townhall, model, folder):
    outcome = townhall("tune", "--staged", *ARITHMETIC, *model, *SMALL, "--max-calls", "6")
    assert outcome.code == 3
    assert outcome.err.splitlines()[-1].startswith("townhall: stopped: the budget of 6 calls is used up")
    assert (folder / "artifacts/arithmetic-society-staged/artifact.json").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--teleprompter", "bootstrap"], "--teleprompter goes with --staged"),
        (["-S", "demos=2"], "-S goes with --staged"),
        (["--staged", "--worker"], "leave out --split and --worker"),
        (["--staged", "--split", "train"], "leave out --split and --worker"),
        (["--staged", "--shares", "0.5,0.5"], "give three above 0 that add up to 1"),
        (["--staged", "--teleprompter", "bootstrp"], "Did you mean 'bootstrap'?"),
        (["--staged", "--teleprompter", "gepa"], "gepa needs a reflection model: give --reflection-lm NAME"),
        (["--staged", "--agents", "1:9"], "agents=1:9: outside what the strategy allows, 2..9"),
    ],
)
def test_bad_searches_in_stages_are_refused(refused, folder, arguments, problem):
    assert problem in refused("tune", *ARITHMETIC, "--lm", "simulated", *arguments)
