"""The single agent."""

from __future__ import annotations

import dspy
import pytest

from townhall.errors import InputError
from townhall.programs.chain_of_thought import ChainOfThought
from townhall.programs.single import Single


@pytest.mark.parametrize(("cot", "outputs"), [(True, "reasoning,answer"), (False, "answer")])
def test_chain_of_thought_is_a_setting(cot, outputs, scripted_lm, obliging, roles):
    lm, engine = scripted_lm(obliging())
    with dspy.context(lm=lm):
        result = Single(cot=cot)(question="Is it so?")
    [(messages, _)] = engine.requests
    assert roles(messages) == outputs
    assert result.answer == "yes"
    assert result.transcript.turns[0].said == ({"reasoning": "because"} if cot else {})
    assert result.transcript.models == ["scripted"]


def test_without_demonstrations_it_asks_as_chain_of_thought_does(scripted_lm, obliging):
    lm, engine = scripted_lm(obliging())
    with dspy.context(lm=lm):
        Single()(question="Is it so?")
        ChainOfThought(shots=0)(question="Is it so?")
    assert engine.requests[0][0] == engine.requests[1][0]


@pytest.mark.parametrize("program", [Single, ChainOfThought])
def test_demonstrations_are_as_many_as_shots(program, worked, scripted_lm, obliging):
    lm, engine = scripted_lm(obliging())
    with dspy.context(lm=lm):
        program(shots=2).demonstrate([worked, worked, worked])(question="Is it so?")
    [(messages, _)] = engine.requests
    assert [role for role, _ in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert '"answer": "8"' in messages[2][1]


def test_demonstrations_without_chain_of_thought_show_answers_only(worked, scripted_lm, obliging):
    lm, engine = scripted_lm(obliging())
    with dspy.context(lm=lm):
        Single(shots=1, cot=False).demonstrate([worked])(question="Is it so?")
    [(messages, _)] = engine.requests
    assert messages[2][1].split() == ["{", '"answer":', '"8"', "}"]
    assert "not supplied" not in str(messages)


def test_shots_out_of_bounds_are_an_error():
    with pytest.raises(InputError, match=r"^shots is 3: input should be less than or equal to 2"):
        Single(shots=3)


def test_a_tuned_prompt_without_reasoning_serves_with_reasoning_too():
    program = Single(cot=False)
    program.solve.signature = program.solve.signature.with_instructions("Tuned.")
    other = program.reconfigured(cot=True)
    assert list(other.solve.signature.output_fields) == ["reasoning", "answer"]
    assert other.solve.signature.instructions == "Tuned."


def test_a_prompt_that_nobody_tuned_follows_the_settings():
    other = Single(cot=False).reconfigured(cot=True)
    assert other.solve.signature.instructions == Single(cot=True).solve.signature.instructions


def test_tuned_field_descriptions_are_kept():
    program = Single(cot=False)
    program.solve.signature = program.solve.signature.with_updated_fields("answer", desc="one word", prefix="Word:")
    other = program.reconfigured(cot=True, seed=3)
    extra = other.solve.signature.fields["answer"].json_schema_extra
    assert (extra["desc"], extra["prefix"]) == ("one word", "Word:")
