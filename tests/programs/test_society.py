"""The society of agents: who reads what, in which style, and at what cost."""

from __future__ import annotations

import threading

import dspy
import pytest

from townhall.errors import InputError
from townhall.programs.society import Society, read_by
from townhall.signatures.transcript import Persona


@pytest.fixture
def hold(scripted_lm, shown):
    """Return `hold(program, script) -> (result, prompts)`, prompts being (output fields, input fields)."""

    def call(program, script, **settings):
        lm, engine = scripted_lm(script, **settings)
        with dspy.context(lm=lm):
            result = program(question="How many?")
        return result, [shown(messages) for messages, _ in engine.requests]

    return call


@pytest.fixture
def numbered(obliging):
    """Agents that answer in turn 1, 2, 3 ... in the order of their seeds' first appearance."""

    def make(**more):
        known, lock = {}, threading.Lock()

        def number(inputs, seed):
            with lock:
                return str(known.setdefault(seed, len(known) + 1))

        return obliging(
            reasoning=lambda inputs, seed: f"thought of {number(inputs, seed)}",
            answer=lambda inputs, seed: number(inputs, seed),
            **more,
        )

    return make


def revisions(prompts):
    return sorted((prompt["own_answer"], prompt["other_answers"]) for prompt in prompts if "other_answers" in prompt)


def statement(number):
    return f"thought of {number}\nAnswer: {number}"


def others(*numbers):
    return "\n\n".join(f"Another agent: {statement(number)}" for number in numbers)


def test_each_agent_reads_the_others_and_its_own_answer(hold, numbered):
    _, prompts = hold(Society(agents=3, rounds=2), numbered())
    assert prompts[:3] == [{"question": "How many?"}] * 3
    seen = {own: set(other.split("\n\n")) for own, other in revisions(prompts)}
    for number in (1, 2, 3):
        rest = {f"Another agent: {statement(other)}" for other in (1, 2, 3) if other != number}
        assert seen[statement(number)] == rest


def test_agents_read_the_others_in_the_order_of_their_numbers(hold, obliging):
    answers = iter("abc")
    result, prompts = hold(
        Society(agents=3, rounds=2, cot=False, show_names=True),
        obliging(answer=lambda inputs, seed: "x" if inputs.get("own_answer") else next(answers)),
    )
    first = {turn.agent: turn.answer for turn in result.transcript.of(round=1)}
    expected = sorted(
        (
            f"Answer: {first[agent]}",
            "\n\n".join(f"Agent {other + 1}: Answer: {first[other]}" for other in range(3) if other != agent),
        )
        for agent in range(3)
    )
    assert revisions(prompts) == expected


@pytest.mark.parametrize(
    ("style", "asks_for"), [("short", "Take their opinions into account"), ("long", "advice, not proof")]
)
def test_the_prompt_style_is_in_the_instructions(style, asks_for, scripted_lm, obliging):
    lm, engine = scripted_lm(obliging())
    with dspy.context(lm=lm):
        Society(prompt_style=style)(question="How many?")
    revise = engine.requests[-1][0][0][1]
    assert asks_for in " ".join(revise.split())


def test_a_style_that_nobody_tuned_can_be_changed_and_a_tuned_one_stays():
    program = Society(prompt_style="short")
    long = Society(prompt_style="long").revise.signature.instructions
    assert program.reconfigured(prompt_style="long").revise.signature.instructions == long
    program.revise.signature = program.revise.signature.with_instructions("Tuned.")
    assert program.reconfigured(prompt_style="long").revise.signature.instructions == "Tuned."


def test_without_chain_of_thought_only_answers_are_exchanged(hold, numbered):
    result, prompts = hold(Society(agents=2, rounds=2, cot=False), numbered())
    assert revisions(prompts) == [("Answer: 1", "Another agent: Answer: 2"), ("Answer: 2", "Another agent: Answer: 1")]
    assert all(turn.said == {} for turn in result.transcript.turns)


def test_named_peers_are_called_by_name_and_expertise(hold, numbered):
    personas = [Persona(name="Cook", expertise="food"), Persona(name="Host")]
    _, prompts = hold(Society(agents=2, rounds=2, cot=False, persona_list=personas, show_names=True), numbered())
    assert {prompt["other_answers"].split(":")[0] for prompt in prompts if "other_answers" in prompt} == {
        "Cook (food)",
        "Host",
    }
    assert {prompt["persona"] for prompt in prompts} == {"You are Cook. Expertise: food.", "You are Host."}


def test_one_summary_a_round_is_read_by_all(hold, numbered, roles):
    result, prompts = hold(Society(agents=3, rounds=3, summarise=True), numbered(summary="in short"))
    summarised = [prompt["answers"] for prompt in prompts if "answers" in prompt]
    assert len(summarised) == 2
    assert sorted(summarised[0].split("\n\n")) == [f"Another agent: {statement(number)}" for number in (1, 2, 3)]
    assert {other for _, other in revisions(prompts)} == {"in short"}
    assert [(turn.round, turn.agent, turn.name) for turn in result.transcript.of(role="summarise")] == [
        (2, None, "Summariser"),
        (3, None, "Summariser"),
    ]


def test_where_the_summary_cannot_be_read_agents_read_the_answers(hold, numbered):
    result, prompts = hold(Society(agents=2, rounds=2, summarise=True), numbered(summary=""))
    assert revisions(prompts) == [(statement(1), others(2)), (statement(2), others(1))]
    [turn] = result.transcript.of(role="summarise")
    assert turn.abstained
    assert turn.usage.calls == 2


def test_with_all_history_agents_read_every_round(hold, obliging):
    counts = {}

    def answer(inputs, seed):
        counts[seed] = counts.get(seed, 0) + 1  # each agent has a seed of its own, and one call at a time
        return f"r{counts[seed]}"

    _, prompts = hold(Society(agents=2, rounds=3, cot=False, history="all"), obliging(answer=answer))
    assert (
        prompts[-1]["other_answers"] == "Round 1\n\nAnother agent: Answer: r1\n\nRound 2\n\nAnother agent: Answer: r2"
    )
    assert prompts[-1]["own_answer"] == "Round 1\n\nAnswer: r1\n\nRound 2\n\nAnswer: r2"


@pytest.mark.parametrize(
    ("topology", "agents", "expected"),
    [
        ("all", 3, [[1, 2], [0, 2], [0, 1]]),
        ("ring", 5, [[1, 4], [0, 2], [1, 3], [2, 4], [0, 3]]),
        ("ring", 3, [[1, 2], [0, 2], [0, 1]]),
        ("ring", 2, [[1], [0]]),
        ("star", 4, [[1, 2, 3], [0], [0], [0]]),
    ],
)
def test_the_topology_says_whose_answers_are_read(topology, agents, expected):
    assert [read_by(topology, agents, agent) for agent in range(agents)] == expected


def test_a_ring_shows_two_neighbours(hold, numbered):
    _, prompts = hold(Society(agents=6, rounds=2, topology="ring"), numbered())
    assert all(prompt["other_answers"].count("Another agent") == 2 for prompt in prompts if "other_answers" in prompt)


def test_rounds_end_when_all_agree_if_so_set(hold, obliging):
    result, prompts = hold(Society(agents=3, rounds=4, stop_when_unanimous=True), obliging())
    assert len(prompts) == 3
    assert result.answer == "yes"
    result, prompts = hold(Society(agents=3, rounds=4), obliging())
    assert len(prompts) == 12


def test_an_agent_that_abstains_in_a_round_stands_by_its_answer(hold, obliging):
    def answer(inputs, seed):
        return None if "other_answers" in inputs else "yes"

    result, _ = hold(Society(agents=2, rounds=2), obliging(answer=answer))
    assert result.answer == "yes"
    assert [turn.abstained for turn in result.transcript.of(round=2)] == [True, True]


def test_an_agent_that_never_answered_is_not_read(hold, obliging):
    refused = []

    def answer(inputs, seed):
        if "other_answers" in inputs:
            return "yes"
        refused.append(seed)
        return None

    _, prompts = hold(Society(agents=2, rounds=2), obliging(answer=answer))
    assert revisions(prompts) == [("Answer: (no answer)", "Nobody has given a readable answer yet.")] * 2
    assert len(refused) == 4


def test_different_models_take_turns_and_are_named_in_the_transcript(scripted_lm, obliging, shown):
    lms = [scripted_lm(obliging(answer=name), model=name) for name in ("llama", "gemma")]
    result = Society(agents=3, rounds=2, lms=[lm for lm, _ in lms])(question="How many?")
    assert result.transcript.models == ["llama", "gemma", "llama"]
    assert result.answer == "llama"
    assert [len(engine.requests) for _, engine in lms] == [4, 2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"agents": 1}, r"^agents is 1: one agent has nobody to read; use strategy 'single'"),
        ({"agents": "1"}, r"^agents is '1': one agent has nobody to read"),
        ({"agents": 10}, r"^agents is 10: input should be less than or equal to 9"),
        ({"rounds": 0}, r"^rounds is 0: "),
        ({"prompt_style": "rude"}, r"^prompt_style is 'rude': input should be 'short' or 'long'"),
        ({"decision": "fair"}, r"^decision is 'fair': no decision rule 'fair'; known: "),
        ({"summarise": True, "topology": "ring"}, r"a summary is of all answers.*'ring'"),
    ],
)
def test_settings_that_make_no_sense_are_errors(settings, message):
    with pytest.raises(InputError, match=message):
        Society(**settings)


def test_demonstrations_show_a_mistaken_and_a_right_peer(worked):
    program = Society(shots=1, persona_list=[Persona(name="Any")]).demonstrate([worked])
    [demo] = program.revise.demos
    assert demo.other_answers == (
        "Another agent: 2 + 2 = 4, and 4 * 3 = 12.\nAnswer: 12\n\nAnother agent: 2 * 3 = 6, and 2 + 6 = 8.\nAnswer: 8"
    )
    assert demo.answer == "8"
    assert demo.persona == program.solve.demos[0].persona == "You are Ada. Expertise: algebra."
    assert program.summarise.demos == []
