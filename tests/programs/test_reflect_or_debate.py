"""Reflect-or-debate, message by message."""

from __future__ import annotations

import pytest

from townhall.programs.reflect_or_debate import ReflectOrDebate

QUESTION = "Is it polite?"


@pytest.fixture
def hold(scripted_lm, obliging, shown):
    """Return `hold(choices) -> (result, prompts by agent)`: agents choose so."""

    def call(choices, **settings):
        speakers = []
        for name, choice in zip(("ann", "bob"), choices, strict=True):
            script = obliging(answer=name, reflection=f"{name} reflects", feedback=f"{name} remarks", choice=choice)
            speakers.append(scripted_lm(script, model=name))
        program = ReflectOrDebate(cot=False, lms=[lm for lm, _ in speakers], adjudication="abstain", **settings)
        result = program(question=QUESTION)
        return result, [[shown(messages) for messages, _ in engine.requests] for _, engine in speakers]

    return call


def both(own, other):
    return {"question": QUESTION, "own_answer": f"Answer: {own}", "other_answer": f"Answer: {other}"}


def test_an_agent_that_reflects_and_one_that_debates(hold):
    result, (ann, bob) = hold(["reflect", "debate"])
    assert ann == [
        {"question": QUESTION},
        both("ann", "bob"),
        {"question": QUESTION, "own_answer": "Answer: ann"},
        {
            **both("ann", "bob"),
            "own_move": "You reflected on your own answer: ann reflects",
            "other_move": "The other agent gave you feedback on your answer: bob remarks",
        },
    ]
    assert bob == [
        {"question": QUESTION},
        both("bob", "ann"),
        both("bob", "ann"),
        {
            **both("bob", "ann"),
            "own_move": "You gave the other agent feedback on its answer: bob remarks",
            "other_move": "The other agent reflected on its own answer: ann reflects",
        },
    ]
    assert [(turn.round, turn.agent, turn.role) for turn in result.transcript.turns] == [
        (1, 0, "decide"),
        (1, 1, "decide"),
        (2, 0, "choose"),
        (2, 1, "choose"),
        (2, 0, "reflect"),
        (2, 1, "feedback"),
        (2, 0, "revise"),
        (2, 1, "revise"),
    ]
    assert [turn.said for turn in result.transcript.of(role="choose")] == [
        {"reason": "a reason", "choice": "reflect"},
        {"reason": "a reason", "choice": "debate"},
    ]


@pytest.mark.parametrize("choice", ["reflect", "debate"])
def test_both_may_choose_the_same(choice, hold):
    result, _ = hold([choice, choice])
    role = {"reflect": "reflect", "debate": "feedback"}[choice]
    assert [turn.agent for turn in result.transcript.of(role=role)] == [0, 1]


def test_a_choice_is_read_in_any_case(hold):
    result, _ = hold(["Reflect.", "DEBATE"])
    assert [turn.said["choice"] for turn in result.transcript.of(role="choose")] == ["reflect", "debate"]


def test_an_agent_whose_choice_cannot_be_read_says_nothing_in_that_exchange(hold):
    result, (ann, bob) = hold(["both", "debate"])
    assert ann[-1]["own_move"] == "(nothing)"
    assert ann[-1]["other_move"] == "The other agent gave you feedback on your answer: bob remarks"
    assert bob[-1]["other_move"] == "(nothing)"
    assert [turn.abstained for turn in result.transcript.of(role="choose")] == [True, False]
    assert [turn.agent for turn in result.transcript.turns if turn.role in ("reflect", "feedback")] == [1]


def test_when_no_choice_can_be_read_both_still_decide_again(hold):
    result, (ann, _) = hold(["?", "?"])
    assert [turn.role for turn in result.transcript.of(round=2)] == ["choose", "choose", "revise", "revise"]
    assert ann[-1]["own_move"] == ann[-1]["other_move"] == "(nothing)"


def test_agents_choose_anew_in_every_round(hold):
    result, _ = hold(["reflect", "debate"], rounds=3)
    assert [turn.round for turn in result.transcript.of(role="choose")] == [2, 2, 3, 3]


def test_the_judge_reads_who_spoke_of_what(scripted_lm, obliging, shown):
    speakers = [
        scripted_lm(obliging(answer=name, reflection=f"{name} reflects", choice=choice), model=name)
        for name, choice in (("ann", "reflect"), ("bob", "debate"))
    ]
    judge, engine = scripted_lm(obliging(), model="judge")
    ReflectOrDebate(lms=[lm for lm, _ in speakers], judge_lm=judge)(question=QUESTION)
    [(messages, _)] = engine.requests
    debate = shown(messages)["debate"]
    assert "side: (on its own answer) ann reflects" in debate
    assert "side: (to the other side) a remark" in debate


def test_demonstrations_leave_the_choice_open(worked):
    program = ReflectOrDebate(shots=1).demonstrate([worked])
    assert program.choose.demos == []
    assert program.reflect.demos[0].reflection == worked.correction
    assert program.revise.demos[0].other_move == (
        "The other agent gave you feedback on your answer: Multiplication comes before addition."
    )
