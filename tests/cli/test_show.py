from __future__ import annotations

import json

import pytest


@pytest.fixture
def run(townhall):
    """A finished run of three examples."""
    return townhall(
        "evaluate", "--task", "arithmetic", "-T", "count=20", "--lm", "simulated", "--personas", "2", "--rounds", "1",
        "--limit", "3", "--split", "all", "--json",
    ).json["run"]  # fmt: skip


def test_scores_and_cost_by_role(townhall, run):
    outcome = townhall("show", run)
    assert outcome.code == 0
    for part in ("arithmetic · town-hall", "accuracy", "identify", "argue", "SIMULATED"):
        assert part in outcome.out


def test_json_is_that_of_evaluate(townhall, run):
    assert townhall("show", run, "--json").json["run"] == run


def test_examples_are_listed_and_filtered(townhall, run):
    every = townhall("show", run, "--examples", "all", "--json").json
    parts = [len(townhall("show", run, "--examples", which, "--json").json) for which in ("wrong", "right", "blank")]
    assert len(every) == 3 == sum(parts)
    listed = townhall("show", run, "--examples", "all").out
    assert all(record["id"] in listed for record in every)


def test_one_examples_transcript(townhall, run, folder):
    first = json.loads((folder / run / "records.jsonl").read_text().splitlines()[0])
    outcome = townhall("show", run, "--example", first["id"])
    for part in ("Question", "Participants", "Round 1", "Decision", f"Example {first['id']}", f"gold: {first['gold']}"):
        assert part in outcome.out
    assert townhall("show", run, "--example", first["id"], "--json").json["id"] == first["id"]


def test_examples_can_be_named_by_their_place(townhall, run):
    assert townhall("show", run, "--example", "#1", "--json").json["index"] == 0


def test_unknown_example_gives_the_nearest(refused, run, folder):
    first = json.loads((folder / run / "records.jsonl").read_text().splitlines()[0])["id"]
    assert f"no finished example has the id '{first}x'. Did you mean '{first}'?" in refused(
        "show", run, "--example", f"{first}x"
    )
    assert "no example #9; 3 are finished" in refused("show", run, "--example", "#9")


def test_what_is_no_run_is_refused(refused, folder):
    assert "gone: no such folder" in refused("show", "gone")
    (folder / "empty").mkdir()
    assert "empty: not a run folder" in refused("show", "empty")


def test_what_a_long_run_cost_fits_into_80_columns(capsys, monkeypatch):
    from townhall.cli import screen
    from townhall.cli.run_view import cost_table
    from townhall.signatures.transcript import Usage

    monkeypatch.setenv("COLUMNS", "80")
    long = Usage(calls=12_000, cached=3_500, prompt_tokens=12_345_678, completion_tokens=1_234_567, cost=None)
    screen.show(cost_table([("reflect-or-debate", long, 1000, 725.0)]))
    head, _, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["calls", "cached", "a", "question", "tokens", "sent", "received", "time", "cost"]
    assert row.split() == ["12,000", "3,500", "15.5", "12,345,678", "1,234,567", "12", "min", "05", "s", "unknown"]


def test_a_page_holds_the_examples_that_are_asked_for(townhall, run, folder):
    records = [json.loads(line) for line in (folder / run / "records.jsonl").read_text().splitlines()]
    for arguments, shown in (([], 3), (["--example", "#2"], 1), (["--examples", "failed"], 0)):
        outcome = townhall("show", run, *arguments, "--html", "page.html")
        assert outcome.code == 0
        assert outcome.err == "townhall: page written to page.html\n"
        page = (folder / "page.html").read_text()
        assert page.count("<details") == shown
        assert sum(record["id"] in page for record in records) == shown
