from __future__ import annotations

import json

import pytest

from townhall.cli import debate
from townhall.errors import InputError

QUICK = ("--lm", "simulated", "--personas", "2", "--rounds", "1")


def test_transcript_decision_and_cost_are_shown(townhall):
    outcome = townhall("debate", "What is 2 + 2?", "--answer", "int", *QUICK)
    assert outcome.code == 0
    for part in ("What is 2 + 2?", "Participants", "Round 1", "Decision", "decided by", "calls"):
        assert part in outcome.out
    assert outcome.out.index("Participants") < outcome.out.index("Round 1") < outcome.out.index("Decision")


def test_simulated_figures_are_labelled(townhall):
    outcome = townhall("debate", "What is 2 + 2?", *QUICK)
    assert "SIMULATED" in outcome.out
    assert townhall("debate", "What is 2 + 2?", *QUICK, "--json").json["simulated"] is True


def test_json_has_answer_transcript_and_usage(townhall):
    report = townhall("debate", "What is 2 + 2?", "--answer", "int", *QUICK, "--json").json
    assert isinstance(report["answer"], int)
    assert report["answer"] == report["decision"]["answer"]
    roles = [turn["role"] for turn in report["transcript"]["turns"]]
    assert roles[:3] == ["identify", "argue", "argue"]
    assert report["usage"]["calls"] == len(roles)


def test_replies_are_kept_and_served_again(townhall):
    first = townhall("debate", "What is 2 + 2?", *QUICK, "--json").json
    second = townhall("debate", "What is 2 + 2?", *QUICK, "--json").json
    third = townhall("debate", "What is 2 + 2?", *QUICK, "--json", "--no-cache").json
    assert second["usage"]["calls"] == 0
    assert second["usage"]["cached"] == first["usage"]["calls"] == third["usage"]["calls"]
    assert [turn["said"] for turn in second["transcript"]["turns"]] == [
        turn["said"] for turn in first["transcript"]["turns"]
    ]


def test_listed_personas_are_used_in_full(townhall, folder):
    (folder / "people.json").write_text(json.dumps([{"name": "Ada", "expertise": "number theory"}, "Bob", "Cleo"]))
    report = townhall(
        "debate", "x?", "--lm", "simulated", "--rounds", "1", "--personas-file", "people.json", "--json"
    ).json
    assert [persona["name"] for persona in report["transcript"]["personas"]] == ["Ada", "Bob", "Cleo"]


def test_several_models_take_turns(townhall):
    report = townhall(
        "debate", "x?", "--lm", "simulated/a", "--lm", "simulated/b", "--personas", "3", "--rounds", "1", "--json"
    ).json
    assert report["transcript"]["models"] == ["simulated/a", "simulated/b", "simulated/a"]


def test_question_from_standard_input(townhall, monkeypatch):
    import io

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("Was it Zoë?\n".encode()), encoding="utf-8"))
    assert townhall("debate", "-", *QUICK, "--json").json["question"] == "Was it Zoë?"


def test_out_gets_the_transcript(townhall, folder):
    assert townhall("debate", "x?", *QUICK, "--out", "debate.json").code == 0
    assert json.loads((folder / "debate.json").read_text())["transcript"]["question"] == "x?"


def test_an_example_of_a_task_is_scored(townhall):
    outcome = townhall("debate", "--task", "arithmetic", "--example", "#1", *QUICK, "--json")
    assert outcome.json["example"] == "arithmetic-0-0"
    assert outcome.json["score"] in (0, 1)
    assert outcome.json["feedback"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["x", "--personas", "0"], "--personas is 0: input should be greater than or equal to 1"),
        (["x", "--personas", "few"], "--personas: 'few' is not a whole number"),
        (["x", "--persona", "3"], "no option '--persona'. Did you mean '--personas'?"),
        (["x", "--strategy", "townhall"], "unknown strategy 'townhall'. Did you mean 'town-hall'?"),
        (["x", "--strategy", "society", "--agents", "1"], "--agents is 1: one agent has nobody to read"),
        (["x", "--temperature", "3"], "--temperature: 3 is out of range; it must be from 0 to 2"),
        (["x", "--lm", "lcal"], "unknown model 'lcal'. Did you mean 'local'?"),
        (["x", "--answer", "itn"], "--answer is 'itn'; it must be int, float, text, or choices"),
        (["x", "--answer", "a,a"], "a choice stands there twice"),
        ([], 'give a "QUESTION"'),
        ([" "], "the question is empty"),
        (["x", "--task", "arithmetic"], "a question and --task"),
        (["--task", "arithmetik"], "unknown task 'arithmetik'. Did you mean 'arithmetic'?"),
        (["--task", "arithmetic", "--answer", "int"], "--answer is for a question of your own"),
        (["--task", "arithmetic", "--example", "arithmetic-0-99999"], "no example with the id 'arithmetic-0-99999'"),
        (["--task", "arithmetic", "--example", "#0"], "no example #0"),
        (["--task", "arithmetic", "-T", "cuont=3"], "no option 'cuont'. Did you mean 'count'?"),
        (["--task", "arithmetic", "-T", "count"], "'count' is not KEY=VALUE"),
        (["x", "--out", "no/such/folder/x.json"], "there is no folder no/such/folder"),
        (["x", "--out", "."], ".: is a folder; name a file"),
    ],
)
def test_bad_input_is_one_line_that_says_what_would_be_right(refused, arguments, problem):
    assert problem in refused("debate", *arguments, *([] if "--lm" in arguments else ["--lm", "simulated"]))


@pytest.mark.parametrize(("text", "value"), [("int", int), ("float", float), ("text", str), (None, str)])
def test_answer_types_by_name(text, value):
    assert debate.answer_type_of(text) is value


def test_answer_choices_become_a_literal():
    from typing import Literal

    assert debate.answer_type_of("yes, no,unclear") == Literal["yes", "no", "unclear"]


def test_single_choice_is_refused():
    with pytest.raises(InputError, match="--answer is 'yes,'"):
        debate.answer_type_of("yes,")


def test_help_with_a_strategy_lists_its_settings(townhall):
    general = townhall("debate", "--help").out
    own = townhall("debate", "--strategy", "society", "--help").out
    assert "Settings of society" in own
    assert "--agents N" in own
    assert "--agents" not in general
    assert "`--strategy" in general


def test_help_with_a_task_lists_its_options(townhall):
    assert "Options of the task arithmetic" in townhall("debate", "--task", "arithmetic", "--help").out


def test_a_moderator_who_names_nobody_is_seen_to_abstain(townhall):
    outcome = townhall("debate", "x?", "--lm", "simulated?empty_rate=1", "--personas", "2", "--rounds", "1")
    participants = outcome.out[outcome.out.index("Participants") : outcome.out.index("Round 1")]
    assert "Moderator  abstains" in participants
    assert "Participant 1  argue  abstains" in outcome.out


def test_a_page_of_the_debate_is_written(townhall, refused, folder):
    arguments = ("debate", "2 + 2?", "--answer", "int", "--lm", "simulated", "--personas", "2", "--rounds", "2")
    outcome = townhall(*arguments, "--html", "debate.html")
    assert outcome.code == 0
    assert "page written to debate.html" in outcome.err
    page = (folder / "debate.html").read_text()
    for part in ("2 + 2?", "Round 1", "Round 2", "Decision", "Simulated"):
        assert part in page
    assert "there is no folder gone" in refused(*arguments, "--html", "gone/debate.html")
