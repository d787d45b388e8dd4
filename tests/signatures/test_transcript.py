"""Transcripts: trajectories, usage, and what survives a file."""

from __future__ import annotations

import pytest

from townhall.signatures.transcript import Persona, Transcript, Turn, Usage, states_answer


def said(round, agent, role, bucket=None, **more):
    return Turn(round=round, agent=agent, role=role, bucket=bucket, answer=bucket, **more)


def transcript(*turns):
    return Transcript(strategy="test", turns=list(turns))


def test_a_trajectory_is_each_agents_bucket_by_round():
    debate = transcript(
        said(1, 0, "argue", "a"), said(1, 1, "argue", "b"), said(2, 0, "rebut", "b"), said(2, 1, "rebut", "b")
    )
    assert debate.trajectory() == [["a", "b"], ["b", "b"]]


@pytest.mark.parametrize(
    "role", ["identify", "vote", "feedback", "reflect", "choose", "summarise", "judge", "critique"]
)
def test_roles_that_state_no_answer_do_not_count(role):
    debate = transcript(said(1, 0, "argue", "a"), said(2, 0, role, "z"), said(3, None, role, "z"))
    assert debate.trajectory() == [["a"]]
    assert not states_answer(debate.turns[1])


def test_abstaining_is_none_and_keeping_silent_keeps_the_answer():
    debate = transcript(
        said(1, 0, "argue", "a"),
        said(1, 1, "argue", "b"),
        said(1, 2, "argue", abstained=True),
        said(2, 0, "rebut", abstained=True),
        said(2, 2, "rebut", "c"),
        said(3, 1, "rebut", "d"),
    )
    assert debate.trajectory() == [["a", None, None], ["b", "b", "d"], [None, "c", "c"]]


def test_an_empty_debate_has_no_trajectory():
    assert transcript().trajectory() == []
    assert transcript(said(0, None, "identify")).trajectory() == []


def test_turns_are_found_by_round_agent_and_role():
    debate = transcript(
        said(1, 0, "argue", "a"), said(1, 1, "argue", "b"), said(1, 0, "vote"), said(2, 0, "rebut", "c")
    )
    assert [turn.role for turn in debate.of(round=1, agent=0)] == ["argue", "vote"]
    assert [turn.agent for turn in debate.of(role="argue")] == [0, 1]
    assert len(list(debate.of())) == 4


def test_usage_adds_up_by_debate_and_by_role():
    debate = transcript(
        said(1, 0, "argue", usage=Usage(calls=1, prompt_tokens=10, completion_tokens=2, cost=0.5, seconds=1)),
        said(1, 1, "argue", usage=Usage(cached=1)),
        said(1, 0, "vote", usage=Usage(calls=2, prompt_tokens=30, completion_tokens=4, cost=0.25, seconds=2)),
    )
    total = debate.usage()
    assert (total.calls, total.cached, total.prompt_tokens, total.completion_tokens) == (3, 1, 40, 6)
    assert (total.cost, total.seconds) == (0.75, 3)
    assert {role: usage.calls for role, usage in debate.usage_by_role().items()} == {"argue": 1, "vote": 2}


def test_a_cost_that_is_not_known_makes_the_sum_unknown():
    assert (Usage(calls=1, cost=None) + Usage(calls=1, cost=1.0)).cost is None
    assert Usage().cost == 0


def test_a_transcript_survives_a_file():
    debate = Transcript(
        strategy="society",
        question="Warum?\u2028",
        personas=[Persona(name="Jürgen", expertise="Maß")],
        models=["m", None],
        turns=[said(1, 0, "argue", "½", said={"reasoning": "…", "list": [1, None]})],
    )
    assert Transcript.model_validate_json(debate.model_dump_json()) == debate


@pytest.mark.parametrize(
    ("persona", "text"),
    [
        (Persona(name="Ada"), "Ada"),
        (Persona(name="Ada", expertise="algebra"), "Ada (algebra)"),
        (Persona(name="Ada", expertise="algebra", stance="strict"), "Ada (algebra; strict)"),
    ],
)
def test_personas_introduce_themselves(persona, text):
    assert str(persona) == text
