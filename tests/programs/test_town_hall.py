"""The town hall: personas and their repair, what is read, the vote."""

from __future__ import annotations

import dspy
import pytest

from townhall.errors import InputError
from townhall.programs.decisions import TIE_BREAK, candidates_of
from townhall.programs.town_hall import (
    DEVILS_ADVOCATE,
    TownHall,
    complete,
    distinct,
    list_candidates,
    wrong_ballot,
    wrong_count,
)
from townhall.signatures.transcript import Persona


@pytest.fixture
def hold(scripted_lm, shown):
    """Return `hold(program, script) -> (result, prompts)`."""

    def call(program, script, **settings):
        lm, engine = scripted_lm(script, **settings)
        with dspy.context(lm=lm):
            result = program(question="Why?")
        return result, [shown(messages) for messages, _ in engine.requests]

    return call


def people(*names):
    return [Persona(name=name) for name in names]


def names(personas):
    return [persona.name for persona in personas]


# -- personas ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected", "repaired"),
    [
        (["A", "B", "C"], ["A", "B", "C"], ""),
        (["A", "B", "C", "D", "E"], ["A", "B", "C"], "2 too many left out"),
        (["A"], ["A", "Participant 1", "Participant 2"], "2 missing, filled up with unnamed participants"),
        ([], ["Participant 1", "Participant 2", "Participant 3"], "3 missing, filled up with unnamed participants"),
        (
            ["A", "a ", "", "B"],
            ["A", "B", "Participant 1"],
            "2 repeated or nameless left out; 1 missing, filled up with unnamed participants",
        ),
        (
            ["Participant 1", "Participant 2"],
            ["Participant 1", "Participant 2", "Participant 3"],
            "1 missing, filled up with unnamed participants",
        ),
    ],
)
def test_a_list_of_personas_is_completed_and_the_repair_said(given, expected, repaired):
    personas, note = complete(people(*given), 3)
    assert names(personas) == expected
    assert note == repaired


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["A", "B"], ["A", "B"]),
        (["A", "a", "A"], ["A", "a 2", "A 3"]),
        (["A", "A 2", "A"], ["A", "A 2", "A 3"]),
        (["A", "A", "A 2"], ["A", "A 2", "A 2 2"]),
    ],
)
def test_no_two_personas_have_one_name(given, expected):
    assert names(distinct(people(*given))) == expected


def test_too_few_personas_are_asked_for_once_more_then_filled_up(hold, obliging):
    result, prompts = hold(TownHall(personas=3, rounds=1), obliging(personas=[{"name": "Ada"}, {"name": "ada"}]))
    assert [prompt["count"] for prompt in prompts if "count" in prompt] == ["3", "3"]
    assert names(result.transcript.personas) == ["Ada", "Participant 1", "Participant 2"]
    [turn] = result.transcript.of(role="identify")
    assert (turn.round, turn.agent, turn.abstained, turn.usage.calls) == (0, None, False, 2)
    assert turn.problem == "1 repeated or nameless left out; 2 missing, filled up with unnamed participants"
    assert [persona["name"] for persona in turn.said["personas"]] == names(result.transcript.personas)


def test_too_many_personas_are_cut_without_asking_again(hold, obliging):
    many = [{"name": name} for name in "ABCDE"]
    result, prompts = hold(TownHall(personas=2, rounds=1), obliging(personas=many))
    assert len([prompt for prompt in prompts if "count" in prompt]) == 1
    assert names(result.transcript.personas) == ["A", "B"]
    assert result.transcript.turns[0].problem == "3 too many left out"


def test_personas_that_cannot_be_read_leave_unnamed_participants(hold, obliging):
    result, _ = hold(TownHall(personas=2, rounds=1), obliging(personas=None))
    assert names(result.transcript.personas) == ["Participant 1", "Participant 2"]
    assert result.answer == "yes"


@pytest.mark.parametrize(
    ("style", "asked", "expected"),
    [
        ("chosen", "2", ["P0", "P1"]),
        ("experts", "2", ["P0", "P1"]),
        ("devils-advocate", "1", ["P0", DEVILS_ADVOCATE.name]),
        ("none", None, ["Participant 1", "Participant 2"]),
    ],
)
def test_the_persona_style_is_a_setting(style, asked, expected, hold, obliging):
    result, prompts = hold(TownHall(personas=2, rounds=1, persona_style=style), obliging())
    assert names(result.transcript.personas) == expected
    assert [prompt["count"] for prompt in prompts if "count" in prompt] == ([asked] if asked else [])


def test_listed_personas_take_turns(hold, obliging):
    program = TownHall(personas=3, rounds=1, persona_style="listed", persona_list=people("A", "B"))
    result, _ = hold(program, obliging())
    assert names(result.transcript.personas) == ["A", "B", "A 2"]


def test_the_style_listed_needs_a_list():
    with pytest.raises(InputError, match="persona style 'listed' needs a list of personas"):
        TownHall(persona_style="listed")


def test_wrong_counts_are_of_distinct_names():
    assert wrong_count(people("A", "B"), 2) is None
    assert wrong_count(people("A", "B", "C"), 2) is None
    assert wrong_count(people("A", "a"), 2) == "1 distinct personas where 2 were asked for"


# -- the debate --------------------------------------------------------------------------------------------------


def test_critics_read_everyone_and_speak_as_themselves(hold, obliging):
    def answer(inputs, seed):
        return "no" if "P1" in inputs["persona"] else "yes"

    script = obliging(
        answer=answer,
        argument=lambda inputs, seed: f"argument of {inputs['persona'].split('.')[0][-2:]}",
        critiques=[{"target": "P1", "critique": "unproven"}],
    )
    result, prompts = hold(TownHall(personas=2, rounds=3, ballot=False), script)
    second = [prompt for prompt in prompts if prompt.get("discussion", "").startswith("Round 1")]
    assert {prompt["discussion"] for prompt in second} == {
        "Round 1\n\nP0 (e): argument of P0\nAnswer: yes\n\nP1 (e): argument of P1\nAnswer: no"
    }
    assert sorted(prompt["persona"] for prompt in second) == [
        "You are P0. Expertise: e. Stance: s.",
        "You are P1. Expertise: e. Stance: s.",
    ]
    third = [prompt for prompt in prompts if prompt.get("discussion", "").startswith("Round 2")]
    assert "P0 (e): argument of P0\n- on P1: unproven\nAnswer: yes" in third[0]["discussion"]
    assert result.transcript.trajectory() == [["yes"] * 3, ["no"] * 3]


def test_with_all_history_every_round_is_read(hold, obliging):
    _, prompts = hold(TownHall(personas=2, rounds=3, history="all", persona_style="none"), obliging())
    assert prompts[-1]["discussion"].count("Round ") == 2


def test_without_names_participants_are_numbered_for_each_other(hold, obliging):
    _, prompts = hold(TownHall(personas=2, rounds=2, show_names=False), obliging())
    assert "P0" not in prompts[-1]["discussion"]
    assert "Participant 2: my argument" in prompts[-1]["discussion"]


def test_an_abstention_is_read_as_one_and_the_answer_of_before_counts(hold, obliging):
    def argument(inputs, seed):
        return None if "discussion" in inputs and "Participant 1" in inputs["persona"] else "my argument"

    result, prompts = hold(TownHall(personas=2, rounds=3, persona_style="none"), obliging(argument=argument))
    assert "Participant 1 abstained." in prompts[-1]["discussion"]
    assert result.decision.unanimous
    assert result.decision.candidates[0].supporters == [0, 1]


def test_rounds_end_when_all_agree_if_so_set(hold, obliging):
    _, prompts = hold(TownHall(personas=2, rounds=4, persona_style="none", stop_when_unanimous=True), obliging())
    assert len(prompts) == 2


# -- the vote ----------------------------------------------------------------------------------------------------


@pytest.fixture
def divided(obliging):
    """Participant 1 holds "a", the others "b"; votes are given."""

    def make(choice, answers=("a", "b", "b")):
        def of(inputs):
            return int(inputs["persona"].split(".")[0].split()[-1]) - 1

        return obliging(
            answer=lambda inputs, seed: answers[of(inputs)],
            argument=lambda inputs, seed: f"for {answers[of(inputs)]}",
            choice=lambda inputs, seed: choice[of(inputs)] if isinstance(choice, tuple) else choice,
        )

    return make


def vote(hold, script, **settings):
    return hold(TownHall(personas=3, rounds=1, persona_style="none", **settings), script)


def test_voters_read_each_answer_once_with_its_first_argument(hold, divided):
    result, prompts = vote(hold, divided((1, 1, 2)))
    listing = "1. a\n   Argument for it: for a\n2. b\n   Argument for it: for b"
    assert [prompt["candidates"] for prompt in prompts if "candidates" in prompt] == [listing] * 3
    assert result.answer == "a", "the ballots decide, not the opinions"
    assert [(ballot.name, ballot.choice, ballot.reason) for ballot in result.decision.votes] == [
        ("Participant 1", 1, "a reason"),
        ("Participant 2", 1, "a reason"),
        ("Participant 3", 2, "a reason"),
    ]
    assert [turn.round for turn in result.transcript.of(role="vote")] == [1, 1, 1]


def test_a_ballot_for_no_candidate_is_cast_again_then_lost(hold, divided):
    result, prompts = vote(hold, divided((7, 2, 2)))
    assert len([prompt for prompt in prompts if "candidates" in prompt]) == 4
    assert result.answer == "b"
    assert result.decision.abstentions == 1
    [lost] = [turn for turn in result.transcript.of(role="vote") if turn.abstained]
    assert lost.problem == "a ballot for candidate 7, where there are 1, 2"


def test_without_any_ballot_there_is_a_blank(hold, divided):
    result, _ = vote(hold, divided(9))
    assert result.answer is None
    assert result.decision.abstentions == 3


def test_a_tied_vote_is_marked(hold, divided):
    result, _ = vote(hold, divided((1, 2, 9)))
    assert result.answer == "b", "two agents hold it"
    assert (result.decision.tie, result.decision.tie_break) == (True, TIE_BREAK)


@pytest.mark.parametrize(("settings", "votes"), [({}, 0), ({"vote_when_unanimous": True}, 3), ({"ballot": False}, 0)])
def test_no_vote_is_held_among_one_candidate_unless_so_set(settings, votes, hold, divided):
    result, prompts = vote(hold, divided(1, ("a", "a", "a")), **settings)
    assert len([prompt for prompt in prompts if "candidates" in prompt]) == votes
    assert result.answer == "a"
    assert result.decision.unanimous


def test_without_ballot_the_last_answers_are_the_votes(hold, divided):
    result, _ = vote(hold, divided(1), ballot=False)
    assert result.answer == "b"
    assert result.decision.votes == []


def test_when_nobody_answers_nobody_votes(hold, obliging):
    result, prompts = vote(hold, obliging(answer=None))
    assert result.answer is None
    assert not [prompt for prompt in prompts if "candidates" in prompt]


def test_ballots_are_for_listed_numbers():
    assert wrong_ballot(2, {1, 2}) is None
    assert wrong_ballot(3, {2, 1}) == "a ballot for candidate 3, where there are 1, 2"
    assert (
        list_candidates(candidates_of(["a", None, "b"]), ["", "", "since"]) == "1. a\n2. b\n   Argument for it: since"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"personas": 0}, r"^personas is 0: input should be greater than or equal to 1"),
        ({"rounds": 7}, r"^rounds is 7: "),
        ({"decision": "x"}, "no decision rule 'x'; known: "),
        ({"persona_style": "odd"}, r"^persona_style is 'odd': "),
    ],
)
def test_settings_that_make_no_sense_are_errors(settings, message):
    with pytest.raises(InputError, match=message):
        TownHall(**settings)


def test_demonstrations_show_each_role_its_part(worked, hold, obliging):
    program = TownHall(personas=2, rounds=2, vote_when_unanimous=True).demonstrate([worked])
    result, _ = hold(program, obliging())
    assert result.answer == "yes"
    assert program.argue.demos[0].answer == "8"
    assert program.rebut.demos[0].critiques[0].target == "Ben"
    assert program.vote.demos[0].choice == 2
    assert program.vote.demos[0].candidates.splitlines()[2] == "2. 8"
    assert TownHall(shots=0).demonstrate([worked]).argue.demos == []
