from __future__ import annotations

import pytest

from townhall.cli import screen


@pytest.fixture
def answers(townhall):
    """The simulated model's name that knows the arithmetic questions."""
    townhall("generate", "arithmetic", "--count", "40", "--out", "answers.jsonl")
    return "answers=answers.jsonl"


@pytest.fixture
def evaluated(townhall, answers):
    """Return `evaluated(accuracy, *arguments) -> the run's folder`."""

    def run(accuracy, *arguments):
        outcome = townhall(
            "evaluate", "--task", "arithmetic", "-T", "count=40", "--strategy", "single", "--split", "all", "--limit",
            "30", "--lm", f"simulated?accuracy={accuracy}&{answers}", *arguments, "--json",
        )  # fmt: skip
        assert outcome.code == 0, outcome
        return outcome.json["run"]

    return run


def test_effect_interval_needed_examples_and_cost_are_printed(townhall, evaluated):
    worse, better = evaluated(0), evaluated(1)
    report = townhall("compare", worse, better, "--json").json
    [pair] = report["pairs"]
    assert pair["result"]["difference"]["estimate"] == 1.0
    assert pair["result"]["only_second"] == 30
    assert pair["result"]["p_value"] < 1e-6
    shown = townhall("compare", worse, better).out
    assert "B - A" in shown
    assert "+100.0" in shown
    assert "exact McNemar" in shown
    assert "SIMULATED" in shown
    assert all(word in shown for word in ("calls", "tokens", "cost"))


def test_several_runs_are_compared_with_the_first(townhall, evaluated):
    runs = [evaluated(accuracy) for accuracy in (0, 0.5, 1)]
    outcome = townhall("compare", *runs)
    assert "B - A" in outcome.out
    assert "C - A" in outcome.out
    assert "Holm" in outcome.out


def test_bad_input(refused, evaluated, townhall):
    run = evaluated(1)
    assert "name two runs or more" in refused("compare", run)
    assert "named twice" in refused("compare", run, run)
    assert "gone: no such folder" in refused("compare", run, "gone")


def test_letters_go_beyond_the_alphabet():
    assert screen.letters(28)[-3:] == ["Z", "A1", "B1"]


def test_grid_prints_the_matrices_and_can_be_shown_again(townhall, answers, folder):
    arguments = [
        "grid", "--task", "arithmetic", "-T", "count=40", "--split", "all", "--limit", "6",
        "--lm", f"simulated/a?accuracy=1&{answers}", "--lm", f"simulated/b?accuracy=0&{answers}",
    ]  # fmt: skip
    outcome = townhall(*arguments)
    assert outcome.code == 0, outcome.err
    for part in ("accuracy in debate", "gain over the better model alone", "oracle", "calls by the formula"):
        assert part in outcome.out
    report = townhall(*arguments, "--json").json
    assert [single["accuracy"] for single in report["singles"]] == [1.0, 0.0]
    assert report["pairs"][0]["oracle"] == 1.0
    assert townhall("show", report["grid"], "--json").json["singles"] == report["singles"]
    assert townhall("show", report["grid"]).out == outcome.out


def test_grid_takes_all_models_of_a_file(townhall, answers, folder):
    (folder / "models.yaml").write_text(
        f"strong:\n  model: simulated/a?accuracy=1&{answers}\nweak:\n  model: simulated/b?accuracy=0&{answers}\n"
    )
    report = townhall(
        "grid", "--task", "arithmetic", "-T", "count=40", "--split", "all", "--limit", "3", "--lms", "models.yaml",
        "--json",
    ).json  # fmt: skip
    assert report["models"] == ["strong", "weak"]


def test_grid_refuses_what_is_no_grid(refused):
    assert "which models?" in refused("grid", "--task", "arithmetic")
    assert "at least two models" in refused("grid", "--task", "arithmetic", "--lm", "simulated")
    assert "a grid needs a debate of two agents" in refused(
        "grid", "--task", "arithmetic", "--lm", "simulated/a", "--lm", "simulated/b", "--strategy", "town-hall"
    )
    assert "gone.yaml" in refused("grid", "--task", "arithmetic", "--lms", "gone.yaml")


def test_training_data_of_agreed_answers(townhall, answers, folder):
    import json

    run = townhall(
        "evaluate", "--task", "arithmetic", "-T", "count=40", "--strategy", "society", "--split", "all", "--limit", "4",
        "--lm", f"simulated?accuracy=1&{answers}", "--json",
    ).json["run"]  # fmt: skip
    outcome = townhall("export-data", run, "--out", "train.jsonl", "--json")
    rows = [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]
    assert outcome.json["examples"] == len(rows) == 4
    assert [message["role"] for message in rows[0]["messages"]] == ["system", "user", "assistant"]
    assert "SIMULATED" in outcome.err
    plain = townhall("export-data", run, "--format", "dspy")
    assert [set(json.loads(line)) for line in plain.out.splitlines()] == [{"question", "reasoning", "answer"}] * 4


def test_training_data_needs_a_debate(refused, evaluated):
    assert "one agent" in refused("export-data", evaluated(1))
