"""`townhall reproduce`."""

from __future__ import annotations


def test_experiments_are_listed(townhall):
    listed = townhall("reproduce")
    assert listed.code == 0
    for part in ("society/gsm8k", "town-hall/grid", "alignment/normad", "arXiv 2305.14325"):
        assert part in listed.out
    assert set(townhall("reproduce", "--json").json) == {"alignment", "society", "town-hall"}


def test_published_figures_are_shown_before_anything_is_run(townhall):
    shown = townhall("reproduce", "society/arithmetic")
    assert "0.818 ± 0.023" in shown.out
    assert "ours" not in shown.out
    assert "townhall reproduce society/arithmetic --run --lm NAME" in shown.out
    assert "~0.920" in townhall("reproduce", "society/agents").out
    assert "+0.035" in townhall("reproduce", "town-hall/mcq").out


def test_a_run_puts_ours_beside_them(townhall, folder):
    arguments = ("reproduce", "society/arithmetic", "--run", "--lm", "simulated", "--limit", "3", "--temperature", "1")
    ran = townhall(*arguments)
    assert ran.code == 0
    for part in ("SIMULATED", "ours", "0.818 ± 0.023", "debate"):
        assert part in ran.out
    shown = townhall("reproduce", "society/arithmetic", "--json").json
    assert [row["n"] for row in shown["rows"]] == [3] * 4
    assert shown["runs"]["debate"] == "runs/reproduce/society-arithmetic/debate"
    # 3 questions: 1 + 3 + 3 + 6 calls each; a first answer is asked for once and shared by all programs.
    assert shown["usage"]["calls"] + shown["usage"]["cached"] == 39
    settings = townhall("show", "runs/reproduce/society-arithmetic/debate", "--json").json["settings"]
    assert settings["temperature"] == 1


def test_a_budget_ends_it_with_code_3_and_a_larger_one_goes_on(townhall):
    arguments = ("reproduce", "society/arithmetic", "--run", "--lm", "simulated", "--limit", "3", "--json")
    stopped = townhall(*arguments, "--max-calls", "5")
    assert stopped.code == 3
    assert "a larger budget goes on from it" in stopped.err
    assert list(stopped.json["runs"]) == ["single", "reflection"]
    more = townhall(*arguments)
    assert more.code == 0
    assert more.json["usage"]["calls"] + more.json["usage"]["cached"] == 39


def test_what_makes_no_sense_is_one_line(refused):
    assert "Did you mean 'society/gsm8k'?" in refused("reproduce", "society/gsm")
    assert "--lm, --arm and --limit go with --run" in refused("reproduce", "society/gsm8k", "--lm", "simulated")
    assert "which experiment?" in refused("reproduce", "--run")
    assert "has no arm 'x'" in refused("reproduce", "society/gsm8k", "--run", "--lm", "simulated", "--arm", "x")
