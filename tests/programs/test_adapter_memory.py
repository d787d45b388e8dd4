"""The adapter makes system messages and output schemas once a signature; the messages stay DSPy's."""

from __future__ import annotations

import dspy
import pytest
from townhall.programs.adapter import DebateAdapter
from townhall.signatures.town_hall import Argue, Rebut, SolveStepByStep, Vote

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
        with dspy.context(lm=lm, adapter=DebateAdapter()):
            try:
                dspy.Predict(signature)(question="What is 3 + 4?")
            except dspy.AdapterParseError:
                pass
    schemas = [config.response_format for _, config in engine.requests]
    assert schemas[0] == schemas[1]
    assert schemas[0] != schemas[2]
