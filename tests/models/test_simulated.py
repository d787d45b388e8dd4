"""The simulated engine under DSPy: typed replies, seeds, faults as DSPy's errors, cache, saving."""

from __future__ import annotations

import asyncio
import json
import time

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError, LMRateLimitError, LMServerError

from townhall.errors import InputError
from townhall.models.resolve import is_simulated, lm
from townhall.models.simulated import SimulatedEngine, simulated_lm
from townhall.models.simulation import AnswerKey, Fault, Scripted, SimulatedBehaviour, Simulation, with_fields


def test_a_typed_reply_comes_back_labelled(debate):
    model = lm("simulated")
    with dspy.context(lm=model):
        reply = debate(question="How many?", persona="Ann")
    assert isinstance(reply.answer, int)
    assert reply.argument.startswith("simulated")
    assert model.history[-1]["response_model"] == "simulated"
    assert is_simulated(model)


@pytest.mark.parametrize("adapter", [dspy.ChatAdapter(), dspy.JSONAdapter()])
def test_it_answers_through_dspys_own_adapters(adapter):
    with dspy.context(lm=lm("simulated"), adapter=adapter):
        assert isinstance(dspy.Predict("question -> answer: int")(question="How many?").answer, int)


def test_three_samples_differ_by_seed_and_a_rerun_asks_nothing(debate):
    model = lm("simulated", temperature=0.7)
    with dspy.context(lm=model):
        configs = [{"rollout_id": number, "seed": number} for number in range(1, 4)]
        first = [debate(question="How many?", persona="Ann", config=config).argument for config in configs]
        again = [debate(question="How many?", persona="Ann", config=config).argument for config in configs]
    assert len(set(first)) == 3
    assert again == first
    assert model.engine.calls == 3


def test_the_asynchronous_twin_gives_the_same_reply_and_waits_in_parallel(debate):
    model = simulated_lm(behaviour=SimulatedBehaviour(latency=0.2), temperature=0.7)

    async def ask(count):
        return await asyncio.gather(
            *(debate.acall(question="How many?", persona="Ann", config={"seed": n}) for n in range(count))
        )

    with dspy.context(lm=model):
        started = time.monotonic()
        replies = asyncio.run(ask(10))
        assert time.monotonic() - started < 1.5
        assert debate(question="How many?", persona="Ann", config={"seed": 3}).argument == replies[3].argument


def test_a_responder_of_ones_own_decides_the_reply_and_calls_are_recorded(debate):
    model = simulated_lm(with_fields(Simulation(), answer=246, argument=lambda call: f"I am {call.inputs['persona']}"))
    with dspy.context(lm=model):
        reply = debate(question="How many?", persona="Ann")
    assert (reply.answer, reply.argument) == (246, "I am Ann")
    assert model.engine.requests[0].question == "How many?"
    assert model.engine.requests[0].outputs == ("argument", "answer")


def test_an_answers_file_makes_it_right_and_its_content_is_part_of_the_name(tmp_path, debate):
    file = tmp_path / "answers.jsonl"
    file.write_text(json.dumps({"question": "How many?", "answer": 12, "right": ["a"]}), encoding="utf-8")
    knows, guesses = lm(f"simulated/a?answers={file}"), lm(f"simulated/b?answers={file}")
    with dspy.context(lm=knows):
        assert debate(question="How many?", persona="Ann").answer == 12
    with dspy.context(lm=guesses):
        assert debate(question="How many?", persona="Ann").answer != 12
    before = knows.model
    file.write_text(json.dumps({"question": "How many?", "answer": 13}), encoding="utf-8")
    assert lm(f"simulated/a?answers={file}").model != before


@pytest.mark.parametrize(("fault", "error"), [("429:2", LMRateLimitError), ("500", LMServerError)])
def test_faults_are_dspys_errors_after_its_retries(fault, error, debate, fast_retries):
    model = simulated_lm(Scripted([Fault.parse(fault)] * 4))
    with dspy.context(lm=model), pytest.raises(error):
        debate(question="How many?", persona="Ann")
    assert model.engine.calls == 4
    assert fast_retries == ([2, 2, 2] if fault == "429:2" else [1, 2, 4])


@pytest.mark.parametrize("rate", ["empty_rate", "broken_rate"])
def test_an_empty_or_broken_reply_is_a_parse_failure_never_an_empty_field(rate, debate):
    script = Scripted([Fault("empty" if rate == "empty_rate" else "half-json")])
    with dspy.context(lm=simulated_lm(script)), pytest.raises(AdapterParseError):
        debate(question="How many?", persona="Ann")


def test_a_program_is_saved_with_it_and_loaded(tmp_path, debate):
    debate.lm = lm("simulated/a?accuracy=0.4", temperature=0.7)
    debate.save(tmp_path / "program.json")
    fresh = dspy.Predict(debate.signature)
    fresh.load(tmp_path / "program.json", allow_unsafe_lm_state=True)
    assert fresh.lm.engine.behaviour.accuracy == 0.4
    assert fresh.lm.kwargs["temperature"] == 0.7
    assert fresh(question="How many?", persona="Ann").argument == debate(question="How many?", persona="Ann").argument


def test_one_with_python_objects_says_that_it_cannot_be_saved(debate, tmp_path):
    debate.lm = simulated_lm(behaviour=SimulatedBehaviour(answers={"Q": AnswerKey(1)}))
    with pytest.raises(TypeError, match="cannot be saved"):
        debate.save(tmp_path / "program.json")


def test_copies_of_a_program_share_the_engine():
    import copy

    model = lm("simulated")
    assert copy.deepcopy(model).engine is model.engine
    assert isinstance(model.engine, SimulatedEngine)


def test_its_name_must_say_what_it_is():
    with pytest.raises(InputError, match="starts with 'simulated'"):
        simulated_lm(name="gpt-5")


def test_usage_is_estimated_and_said_to_be(debate):
    model = lm("simulated")
    with dspy.context(lm=model):
        debate(question="How many?", persona="Ann")
    entry = model.history[-1]
    assert entry["usage"]["prompt_tokens"] > 50
    assert entry["response"].provider_data == {"simulated": True, "usage": "estimated"}
