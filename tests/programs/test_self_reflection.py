"""Self-reflection, message by message."""

from __future__ import annotations

import dspy
import pytest

from townhall.errors import InputError
from townhall.programs.self_reflection import SelfReflection


@pytest.fixture
def ask(scripted_lm, shown):
    """Return `ask(program, script) -> (result, prompts)`: each prompt as (its input fields)."""

    def call(program, script, **settings):
        lm, engine = scripted_lm(script, **settings)
        with dspy.context(lm=lm):
            result = program(question="Is it polite?")
        return result, [shown(messages) for messages, _ in engine.requests]

    return call


def test_the_agent_reads_its_own_answer_then_its_own_reflection(ask, obliging):
    answers = iter(["yes", "no"])
    reasons = iter(["first thought", "second thought"])
    script = obliging(
        reasoning=lambda inputs, seed: next(reasons),
        answer=lambda inputs, seed: next(answers),
        reflection="I overlooked the country.",
    )
    result, prompts = ask(SelfReflection(), script)
    assert prompts == [
        {"question": "Is it polite?"},
        {"question": "Is it polite?", "own_answer": "first thought\nAnswer: yes"},
        {
            "question": "Is it polite?",
            "own_answer": "first thought\nAnswer: yes",
            "reflection": "I overlooked the country.",
        },
    ]
    assert result.answer == "no"
    assert [(turn.round, turn.role, turn.answer) for turn in result.transcript.turns] == [
        (1, "solve", "yes"),
        (2, "reflect", None),
        (2, "revise", "no"),
    ]
    assert result.transcript.trajectory() == [["yes", "no"]]


def test_a_further_reflection_reads_the_latest_answer(ask, obliging):
    answers = iter(["a", "b", "c"])
    script = obliging(
        answer=lambda inputs, seed: next(answers),
        reflection=lambda inputs, seed: f"on {inputs['own_answer'][-1]}",
    )
    result, prompts = ask(SelfReflection(reflections=2, cot=False), script)
    assert [prompt.get("own_answer") for prompt in prompts] == [
        None,
        "Answer: a",
        "Answer: a",
        "Answer: b",
        "Answer: b",
    ]
    assert prompts[-1]["reflection"] == "on b"
    assert result.answer == "c"


def test_an_agent_that_keeps_its_answer_reflects_anew(scripted_lm, obliging):
    lm, engine = scripted_lm(obliging())
    with dspy.context(lm=lm):
        SelfReflection(reflections=2, cot=False)(question="Is it polite?")
    reflections = [config.seed for messages, config in engine.requests if '"reflection"' in messages[0][1]]
    assert len(set(reflections)) == 2


def test_a_reflection_that_cannot_be_read_leaves_the_answer_that_stands(ask, obliging):
    result, prompts = ask(SelfReflection(reflections=3), obliging(reflection=None))
    assert result.answer == "yes"
    assert len(prompts) == 1 + 2
    assert [turn.abstained for turn in result.transcript.turns] == [False, True]
    assert "reflection is null" in result.transcript.turns[1].problem


def test_a_second_answer_that_cannot_be_read_leaves_the_first(ask, obliging, roles):
    script = obliging()

    def reply(messages, seed):
        return "?" if '"reflection"' in messages[0][1] and "answer" in roles(messages) else script(messages, seed)

    result, _ = ask(SelfReflection(), lambda messages, seed: reply(messages, seed))
    assert result.answer == "yes"


def test_the_first_answer_is_that_of_a_single_agent(scripted_lm, obliging, cache):
    from townhall.programs.single import Single

    lm, engine = scripted_lm(obliging(), cache=True)
    with dspy.context(lm=lm):
        Single()(question="Is it polite?")
        result = SelfReflection()(question="Is it polite?")
    assert len(engine.requests) == 1 + 2
    assert result.transcript.turns[0].usage.cached == 1
    assert result.transcript.turns[0].usage.calls == 0


@pytest.mark.parametrize("reflections", [0, 5])
def test_reflections_are_one_to_four(reflections):
    with pytest.raises(InputError, match=rf"^reflections is {reflections}: "):
        SelfReflection(reflections=reflections)


def test_demonstrations_show_a_mistake_that_reflection_finds(worked):
    program = SelfReflection(shots=1).demonstrate([worked])
    [reflection] = program.reflect.demos
    assert reflection.own_answer == "2 + 2 = 4, and 4 * 3 = 12.\nAnswer: 12"
    assert reflection.reflection == worked.correction
    assert program.revise.demos[0].answer == "8"
    assert SelfReflection().demonstrate([worked]).revise.demos == []
