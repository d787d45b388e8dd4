"""The adapter makes system messages and output schemas once a signature; the messages stay DSPy's."""

from __future__ import annotations

import contextlib

import dspy
import pytest

from townhall.programs.adapter import _DEMONSTRATIONS, DebateAdapter
from townhall.signatures.town_hall import Argue, Rebut, SolveStepByStep, Vote
from townhall.signatures.transcript import Critique

INPUTS = {"question": "What is 3 + 4?", "discussion": "Round 1", "persona": "You are A.", "candidates": "1. 7"}


@pytest.mark.parametrize("signature", [Argue, Rebut, Vote, SolveStepByStep])
def test_messages_equal_those_of_dspys_json_adapter_the_second_time_too(signature):
    inputs = {name: INPUTS[name] for name in signature.input_fields}
    expected = dspy.JSONAdapter().format(signature, [], inputs)
    adapter = DebateAdapter()
    assert adapter.format(signature, [], inputs) == expected
    assert adapter.format(signature, [], inputs) == expected


def test_an_instruction_changed_in_place_reaches_the_prompt():
    signature = Argue.with_instructions("First.")
    adapter = DebateAdapter()
    assert "First." in adapter.format_system_message(signature)
    signature.instructions = "Second."
    assert "Second." in adapter.format_system_message(signature)
    assert "First." not in adapter.format_system_message(signature)


def test_a_field_description_changed_in_place_reaches_the_prompt():
    signature = Argue.with_instructions("Argue.")
    adapter = DebateAdapter()
    before = adapter.format_system_message(signature)
    signature.fields["argument"].json_schema_extra["desc"] = "one sentence only"
    after = adapter.format_system_message(signature)
    assert "one sentence only" in after
    assert after != before


def test_the_schema_sent_is_the_same_for_every_call_and_follows_the_answer_type(scripted_lm):
    lm, engine = scripted_lm(lambda messages, seed: {"reasoning": "3 + 4", "answer": 7})
    whole = SolveStepByStep.with_updated_fields("answer", type_=int)
    for signature in (whole, whole, SolveStepByStep):
        with dspy.context(lm=lm, adapter=DebateAdapter()), contextlib.suppress(dspy.AdapterParseError):
            dspy.Predict(signature)(question="What is 3 + 4?")
    schemas = [config.response_format for _, config in engine.requests]
    assert schemas[0] == schemas[1]
    assert schemas[0] != schemas[2]


def test_demonstrations_are_dspys_and_follow_their_content():
    critiques = [Critique(target="B", critique="Step two is wrong.")]
    demo = dspy.Example(
        question="q", discussion="d", persona="You are A.", critiques=critiques, argument="a", answer="7"
    )
    inputs = {name: INPUTS[name] for name in Rebut.input_fields}
    adapter = DebateAdapter()
    first = adapter.format(Rebut, [demo], inputs)
    assert first == dspy.JSONAdapter().format(Rebut, [demo], inputs) == adapter.format(Rebut, [demo], inputs)
    critiques.append(Critique(target="C", critique="Step three too."))
    assert adapter.format(Rebut, [demo], inputs) == dspy.JSONAdapter().format(Rebut, [demo], inputs) != first
    first[0]["content"] = first[1]["content"] = "changed by a caller"
    assert "changed by a caller" not in str(adapter.format(Rebut, [demo], inputs))
    partial = dspy.Example(question="q", argument="a")
    assert adapter.format(Rebut, [partial], inputs) == dspy.JSONAdapter().format(Rebut, [partial], inputs)


def test_demonstrations_chosen_for_every_question_do_not_pile_up():
    adapter = DebateAdapter()
    signature = Argue.with_instructions("Argue briefly.")
    for number in range(200):
        demo = dspy.Example(question=f"{number}?", persona="A", argument="a", answer=str(number))
        assert f"{number}?" in adapter.format_demos(signature, [demo])[0]["content"]
    assert len(_DEMONSTRATIONS[signature]) <= 64
