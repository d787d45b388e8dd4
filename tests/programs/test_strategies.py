"""What holds for every strategy: the count of calls, sync and async, traces, state, copies, other settings."""

from __future__ import annotations

import asyncio
import copy
from typing import Literal

import dspy
import pytest

from townhall.errors import InputError
from townhall.programs.base import STRATEGIES
from townhall.signatures.transcript import Persona

#: Settings of each strategy under which every role speaks, and the calls that its formula gives.
CASES = [
    ("chain-of-thought", {}, 1),
    ("town-hall-prompt", {}, 1),
    ("town-hall", {"personas": 3, "rounds": 2}, 1 + 3 * 2 + 3),
    ("town-hall", {"personas": 2, "rounds": 3, "persona_style": "none"}, 2 * 3 + 2),
    ("town-hall", {"personas": 3, "rounds": 1, "ballot": False}, 1 + 3),
    ("single", {}, 1),
    ("single", {"cot": False}, 1),
    ("self-reflection", {"reflections": 1}, 1 + 2),
    ("self-reflection", {"reflections": 4}, 1 + 2 * 4),
    ("majority", {"samples": 1}, 1),
    ("majority", {"samples": 7}, 7),
    ("society", {"agents": 3, "rounds": 2}, 3 * 2),
    ("society", {"agents": 4, "rounds": 3, "summarise": True}, 4 * 3 + 2),
    ("society", {"agents": 2, "rounds": 1, "summarise": True}, 2),
    ("debate-only", {"rounds": 1}, 2 + 1),
    ("debate-only", {"rounds": 2}, 2 + 4 + 1),
    ("debate-only", {"rounds": 3, "adjudication": "confident"}, 2 + 4 * 2),
    ("reflect-or-debate", {"rounds": 1}, 2 + 1),
    ("reflect-or-debate", {"rounds": 3}, 2 + 6 * 2 + 1),
    ("reflect-or-debate", {"rounds": 2, "adjudication": "first"}, 2 + 6),
]
NAMES = sorted({name for name, _, _ in CASES})


def town_hall_answer(messages):
    return {
        "personas": [{"name": "A"}, {"name": "B"}],
        "debate": [{"statements": [{"speaker": "A", "statement": "s", "answer": "yes"}]}],
        "ballots": [{"voter": "A", "reason": "r", "vote": "yes"}],
        "answer": "yes",
    }


@pytest.fixture
def quarrelling(obliging, roles):
    """A model whose agents never agree, so that every vote and judgement is held."""
    script = obliging(answer=lambda inputs, seed: f"answer {seed}")

    def reply(messages, seed):
        return town_hall_answer(messages) if "ballots" in roles(messages) else script(messages, seed)

    return reply


def build(name, settings, **more):
    return STRATEGIES.get(name)(**settings, **more)


def test_every_strategy_is_covered_here():
    assert STRATEGIES.names() == NAMES


@pytest.mark.parametrize(("name", "settings", "calls"), CASES)
def test_calls_are_as_many_as_the_formula_says(name, settings, calls, scripted_lm, quarrelling):
    lm, engine = scripted_lm(quarrelling)
    program = build(name, settings)
    with dspy.context(lm=lm):
        result = program(question="Is it so?")
    assert program.max_calls() == calls
    assert len(engine.requests) == calls
    assert result.transcript.usage().calls == calls
    assert result.transcript.usage().prompt_tokens == 100 * calls
    assert result.transcript.usage().completion_tokens == 10 * calls


@pytest.mark.parametrize(("name", "settings", "calls"), CASES)
def test_forward_and_aforward_give_the_same(name, settings, calls, scripted_lm, quarrelling):
    lm, engine = scripted_lm(quarrelling)
    program = build(name, settings)
    with dspy.context(lm=lm):
        plain = program(question="Is it so?")
        asynchronous = asyncio.run(program.acall(question="Is it so?"))
    assert len(engine.requests) == 2 * calls
    strip = {"turns": {"__all__": {"usage"}}}
    assert plain.transcript.model_dump(exclude=strip) == asynchronous.transcript.model_dump(exclude=strip)
    assert plain.answer == asynchronous.answer


@pytest.mark.parametrize("name", NAMES)
def test_works_inside_a_running_event_loop(name, scripted_lm, quarrelling):
    lm, _ = scripted_lm(quarrelling)
    program = build(name, {})

    async def notebook():
        with dspy.context(lm=lm):
            return program(question="Is it so?"), await program.acall(question="Is it so?")

    first, second = asyncio.run(notebook())
    assert first.answer == second.answer


@pytest.mark.parametrize(("name", "settings", "calls"), CASES)
def test_the_trace_has_every_call_once_in_the_order_of_the_transcript(name, settings, calls, scripted_lm, quarrelling):
    lm, _ = scripted_lm(quarrelling)
    program = build(name, settings)
    role_of = {id(predictor): role for role, predictor in program.named_predictors()}
    for call in (lambda: program(question="Is it so?"), lambda: asyncio.run(program.acall(question="Is it so?"))):
        with dspy.context(lm=lm, trace=[]):
            result = call()
            trace = list(dspy.settings.trace)
        assert [role_of[id(predictor)] for predictor, _, _ in trace] == [turn.role for turn in result.transcript.turns]
        stated = [getattr(prediction, "answer", None) for _, _, prediction in trace]
        assert stated == [turn.answer for turn in result.transcript.turns]


@pytest.mark.parametrize("name", NAMES)
def test_turns_come_by_round_then_by_agent_within_a_step(name, scripted_lm, quarrelling):
    lm, _ = scripted_lm(quarrelling)
    with dspy.context(lm=lm):
        turns = build(name, {})(question="Is it so?").transcript.turns
    assert [turn.round for turn in turns] == sorted(turn.round for turn in turns)
    steps = {}
    for turn in turns:
        steps.setdefault((turn.round, turn.role), []).append(turn.agent)
    assert all(agents in ([None], sorted(a for a in agents if a is not None)) for agents in steps.values())


@pytest.mark.parametrize("name", NAMES)
def test_state_survives_saving_and_loading(name, tmp_path, scripted_lm, quarrelling, worked):
    lm, engine = scripted_lm(quarrelling)
    settings = {"shots": 1}
    program = build(name, settings).demonstrate([worked])
    for role, predictor in program.named_predictors():
        predictor.signature = predictor.signature.with_instructions(f"Tuned instructions of {role}.")
    program.save(tmp_path / "program.json")
    fresh = build(name, settings)
    fresh.load(tmp_path / "program.json")
    with dspy.context(lm=lm):
        program(question="Is it so?")
        before = sorted(messages for messages, _ in engine.requests)
        engine.requests.clear()
        fresh(question="Is it so?")
    assert sorted(messages for messages, _ in engine.requests) == before
    assert "Tuned instructions" in before[0][0][1]


@pytest.mark.parametrize("name", NAMES)
def test_a_copy_has_its_own_prompts_and_the_same_models(name, scripted_lm, quarrelling):
    lm, _ = scripted_lm(quarrelling)
    program = build(name, {}, lms=[lm], judge_lm=lm)
    for twin in (copy.deepcopy(program), program.deepcopy(), program.reset_copy()):
        assert twin.lms[0] is lm
        assert twin.judge_lm is lm
        assert twin.config == program.config
        _, predictor = twin.named_predictors()[0]
        predictor.demos = ["mine"]
        assert program.named_predictors()[0][1].demos == []


@pytest.mark.parametrize("name", NAMES)
def test_other_settings_keep_tuned_prompts_demonstrations_and_models(name, scripted_lm, worked):
    lm, _ = scripted_lm("")
    program = build(name, {"shots": 1}, lms=[lm]).demonstrate([worked])
    for role, predictor in program.named_predictors():
        predictor.signature = predictor.signature.with_instructions(f"Tuned {role}.")
    other = program.reconfigured(seed=7)
    assert other.config.seed == 7
    assert program.config.seed == 0
    assert other.lms[0] is lm
    for role, predictor in other.named_predictors():
        assert predictor.signature.instructions == f"Tuned {role}."
        assert predictor.demos == dict(program.named_predictors())[role].demos


@pytest.mark.parametrize("name", NAMES)
def test_answers_have_the_type_of_the_task(name, scripted_lm, obliging, roles):
    script = obliging(answer="12")
    lm, _ = scripted_lm(
        lambda messages, seed: (
            {**town_hall_answer(messages), "answer": "$12"} if "ballots" in roles(messages) else script(messages, seed)
        )
    )
    with dspy.context(lm=lm):
        result = build(name, {}, answer=int)(question="How many?")
    assert result.answer == 12
    assert isinstance(result.answer, int)
    assert result.decision.answer == 12


@pytest.mark.parametrize("name", NAMES)
def test_a_reply_that_stays_unreadable_is_a_blank_and_costs_two_calls(name, scripted_lm):
    lm, engine = scripted_lm(lambda messages, seed: "I will not say.")
    program = build(name, {"persona_style": "none", "personas": 2} if name == "town-hall" else {})
    with dspy.context(lm=lm):
        result = program(question="Is it so?")
    assert result.answer is None
    assert result.decision.answer is None
    assert all(turn.abstained and "unreadable" in turn.problem for turn in result.transcript.turns)
    assert len(engine.requests) == 2 * len(result.transcript.turns)
    assert result.decision.abstentions == program.agents


@pytest.mark.parametrize("name", NAMES)
def test_the_decision_is_made_from_labels_in_any_case(name, scripted_lm, obliging, roles):
    script = obliging(answer="YES.")
    lm, _ = scripted_lm(
        lambda messages, seed: town_hall_answer(messages) if "ballots" in roles(messages) else script(messages, seed)
    )
    with dspy.context(lm=lm):
        result = build(name, {}, answer=Literal["yes", "no"])(question="Is it so?")
    assert result.answer == "yes"
    assert result.decision.unanimous


@pytest.mark.parametrize("name", NAMES)
def test_context_stands_below_the_question_in_every_prompt(name, scripted_lm, quarrelling, shown):
    lm, engine = scripted_lm(quarrelling)
    with dspy.context(lm=lm):
        build(name, {})(question="Is it so?", rule_of_thumb="It often is.", left_out=None)
    assert {shown(messages)["question"] for messages, _ in engine.requests} == {
        "Is it so?\n\nRule of thumb: It often is."
    }


@pytest.mark.parametrize("name", NAMES)
def test_each_role_has_a_temperature_of_its_own(name, scripted_lm, quarrelling):
    lm, engine = scripted_lm(quarrelling)
    first = build(name, {}).named_predictors()[0][0]
    with dspy.context(lm=lm):
        build(name, {"temperature": 1.1, "temperatures": {first: 0.2}})(question="Is it so?")
    temperatures = [config.temperature for _, config in engine.requests]
    assert temperatures[0] == 0.2
    assert set(temperatures) <= {0.2, 1.1}


@pytest.mark.parametrize("name", NAMES)
def test_a_temperature_for_a_role_that_does_not_exist_is_an_error(name):
    with pytest.raises(InputError, match=r"has no role 'argeu'.* Its roles: "):
        build(name, {"temperatures": {"argeu": 0.1}})


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_setting_names_the_nearest(name):
    with pytest.raises(InputError, match=r"has no setting 'temprature'. Did you mean 'temperature'\?"):
        build(name, {"temprature": 0.1})


def test_personas_are_shown_to_their_agents(scripted_lm, quarrelling, shown):
    lm, engine = scripted_lm(quarrelling)
    personas = [Persona(name="Cook", expertise="food"), Persona(name="Host", stance="polite")]
    with dspy.context(lm=lm):
        result = build("society", {"agents": 3, "rounds": 1, "persona_list": personas})(question="Is it so?")
    assert sorted(shown(messages)["persona"] for messages, _ in engine.requests) == [
        "You are Cook 2. Expertise: food.",
        "You are Cook. Expertise: food.",
        "You are Host. Stance: polite.",
    ]
    assert [persona.name for persona in result.transcript.personas] == ["Cook", "Host", "Cook 2"]
