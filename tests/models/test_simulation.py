"""What the simulated model answers: valid, labelled, repeatable, and as right as it was told to be."""

from __future__ import annotations

import json

import jsonschema
import pytest

from townhall.errors import InputError
from townhall.models.simulation import (
    AnswerKey,
    Call,
    Fault,
    FaultError,
    Scripted,
    SimulatedBehaviour,
    Simulation,
    Speaker,
    fit,
    parse_name,
    read_answers,
    spoil,
    tokens,
    when,
    with_fields,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "argument": {"type": "string"},
        "answer": {"type": "integer"},
        "grade": {"enum": ["low", "high"]},
        "score": {"type": "integer", "minimum": 3, "maximum": 5},
        "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 6}, "minItems": 3, "maxItems": 4},
        "who": {"$ref": "#/$defs/Who"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["argument", "answer", "grade", "score", "share", "tags", "who", "maybe"],
    "additionalProperties": False,
    "$defs": {
        "Who": {
            "type": "object",
            "properties": {"name": {"type": "string", "minLength": 30}, "old": {"type": "boolean"}},
            "required": ["name", "old"],
        }
    },
}
ANSWER = {"type": "object", "properties": {"answer": {"type": "integer"}}}


def call(question="How many?", *, schema=ANSWER, seed=1, persona="Ann", model="simulated", **inputs):
    fields = {"question": question, "persona": persona, **inputs}
    content = "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items())
    return Call.of([{"role": "user", "content": content}], schema, seed=seed, model=model)


def answers(behaviour, calls):
    return [Simulation(behaviour)(one)["answer"] for one in calls]


@pytest.mark.parametrize("seed", range(20))
def test_replies_are_valid_by_the_schema_and_texts_are_labelled(seed):
    reply = Simulation()(call(schema=SCHEMA, seed=seed))
    jsonschema.validate(reply, SCHEMA)
    assert reply["argument"].startswith("simulated")


def test_the_same_call_gives_the_same_reply_and_another_seed_another_one():
    reply = Simulation()(call(schema=SCHEMA))
    assert Simulation()(call(schema=SCHEMA)) == reply
    assert Simulation()(call(schema=SCHEMA, seed=2)) != reply
    assert Simulation()(call(schema=SCHEMA, model="simulated/b")) != reply
    assert Simulation(SimulatedBehaviour(seed=9))(call(schema=SCHEMA)) != reply


@pytest.mark.parametrize("count", [1, 3, 15])
def test_persona_lists_have_the_asked_number_of_distinct_names(count):
    schema = {
        "type": "object",
        "properties": {
            "personas": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}
        },
    }
    personas = Simulation()(call(schema=schema, count=count))["personas"]
    assert len({persona["name"] for persona in personas}) == len(personas) == count


def test_a_debate_in_one_call_has_the_asked_rounds_and_statements():
    statement = {"type": "object", "properties": {"speaker": {"type": "string"}, "answer": {"type": "string"}}}
    rounds = {"type": "object", "properties": {"statements": {"type": "array", "items": statement}}}
    schema = {"type": "object", "properties": {"debate": {"type": "array", "items": rounds}}}
    debate = Simulation()(call(schema=schema, participants=4, rounds=3))["debate"]
    assert [len(one["statements"]) for one in debate] == [4, 4, 4]


CANDIDATES = "1. 12\n   Argument for it: because\n2. 246\n   Argument for it: as shown\n3. 9"
BALLOT = {"type": "object", "properties": {"reason": {"type": "string"}, "choice": {"type": "integer"}}}


@pytest.mark.parametrize("seed", range(10))
def test_a_ballot_names_a_listed_candidate(seed):
    assert Simulation()(call(schema=BALLOT, seed=seed, candidates=CANDIDATES))["choice"] in (1, 2, 3)


@pytest.mark.parametrize(("accuracy", "choice"), [(1.0, 2), (0.0, 3)])
def test_a_ballot_is_for_the_agents_own_answer_where_it_is_listed(accuracy, choice):
    behaviour = SimulatedBehaviour(accuracy=accuracy, answers={"How many?": AnswerKey(246, wrong=(9,))})
    assert Simulation(behaviour)(call(schema=BALLOT, candidates=CANDIDATES))["choice"] == choice


def test_accuracy_is_the_share_of_right_answers():
    behaviour = SimulatedBehaviour(accuracy=0.7, answers=lambda question: AnswerKey(5, wrong=(6,)))
    found = answers(behaviour, [call(f"Question {number}?") for number in range(2000)])
    # The standard error of a share of 0.7 in 2000 is 0.0102.
    assert found.count(5) / 2000 == pytest.approx(0.7, abs=0.04)
    assert set(found) == {5, 6}


def test_an_agent_keeps_its_own_answer_from_round_to_round():
    behaviour = SimulatedBehaviour(accuracy=0.5, answers={"How many?": AnswerKey(5, wrong=(6,))})
    for seed in range(20):
        first, second = answers(behaviour, [call(seed=seed), call(seed=seed, discussion="Ann: hm.\nAnswer: 6")])
        assert first == second


@pytest.mark.parametrize(("conform", "expected"), [(0.0, 5), (1.0, 7)])
def test_a_conforming_agent_adopts_the_answer_that_most_are_shown_to_have(conform, expected):
    behaviour = SimulatedBehaviour(accuracy=1, conform=conform, answers={"How many?": 5})
    said = "Bob: so.\nAnswer: 7\n\nCy: thus.\n- on Bob: fine\nAnswer: 7\n\nDi: no.\nAnswer: 5"
    assert answers(behaviour, [call(discussion=said)]) == [expected]


def test_a_conforming_agent_reads_a_shown_grid():
    grid = {
        "type": "object",
        "properties": {
            "header": {"type": "array", "items": {"type": "string"}},
            "rows": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        },
    }
    right = {"header": ["House", "Name"], "rows": [["1", "Al"], ["2", "Bo"]]}
    behaviour = SimulatedBehaviour(accuracy=1, conform=1, answers={"Who?": right})
    said = "Bob: so.\nAnswer: House | Name\n1 | Bo\n2 | Al\n\nCy: hm."
    reply = Simulation(behaviour)(
        call("Who?", schema={"type": "object", "properties": {"answer": grid}}, discussion=said)
    )
    assert reply["answer"] == {"header": ["House", "Name"], "rows": [["1", "Bo"], ["2", "Al"]]}


def test_right_for_names_the_models_that_know():
    behaviour = SimulatedBehaviour(answers={"How many?": AnswerKey(5, wrong=(6,), right_for=frozenset({"a"}))})
    assert answers(behaviour, [call(model="simulated/a"), call(model="simulated/b")]) == [5, 6]


def test_a_question_is_found_inside_a_longer_prompt_by_the_longest_known_text():
    behaviour = SimulatedBehaviour(accuracy=1, answers={"How": 1, "How many?": 2})
    assert answers(behaviour, [call("Story.\nHow many?")]) == [2]
    assert behaviour.key("What?") is None


@pytest.mark.parametrize(
    ("right", "schema"),
    [
        (5, {"type": "integer"}),
        ("5", {"type": "string"}),
        ("B", {"enum": ["A", "B"]}),
        (True, {}),
        ({"header": ["House", "Name"], "rows": [["1", "Al"], ["2", "Bo"]]}, {}),
    ],
)
def test_spoil_gives_another_answer_of_the_same_kind(right, schema):
    import random

    wrong = spoil(right, schema, random.Random(1))
    assert wrong != right
    assert type(wrong) is type(right)


def test_fit_gives_an_answer_in_the_wanted_type():
    assert fit(5, {"type": "string"}) == "5"
    assert fit("5", {"type": "integer"}) == 5
    assert fit({"a": 1}, {"type": "string"}) == '{"a": 1}'
    assert fit("many", {"type": "integer"}) == "many"


def test_responders_compose():
    base = with_fields(Simulation(), answer=lambda one: one.seed * 10)
    both = when(lambda one: "answer" in one.outputs, base, lambda one: "prose")
    assert both(call(seed=4)) == {"answer": 40}
    assert both(call(schema=BALLOT)) == "prose"


def test_a_script_gives_its_replies_in_order_then_asks_another():
    script = Scripted([{"answer": 1}, Fault("500")], otherwise=lambda one: "after")
    assert script(call()) == {"answer": 1}
    with pytest.raises(FaultError):
        script(call())
    assert script(call()) == "after"
    with pytest.raises(AssertionError, match="no reply left"):
        Scripted([])(call())


def test_rates_of_faults_are_kept_and_a_repeated_call_has_another_chance():
    speaker = Speaker(SimulatedBehaviour(error_rate=0.3, rate_limit_rate=0.2))
    kinds = []
    for number in range(1000):
        try:
            speaker.speak(call(f"Question {number}?"))
        except FaultError as error:
            kinds.append(error.fault.kind)
    assert kinds.count("500") / 1000 == pytest.approx(0.3, abs=0.06)
    assert kinds.count("429") / 1000 == pytest.approx(0.2, abs=0.06)
    outcomes = set()
    for _ in range(30):
        try:
            outcomes.add(bool(speaker.speak(call())))
        except FaultError:
            outcomes.add(False)
    assert outcomes == {True, False}


def test_empty_and_broken_replies():
    assert Speaker(SimulatedBehaviour(empty_rate=1)).speak(call()).text == ""
    broken = Speaker(SimulatedBehaviour(broken_rate=1)).speak(call()).text
    assert broken.startswith("{")
    with pytest.raises(ValueError, match=r".+"):
        json.loads(broken)


def test_a_reply_is_cut_at_the_token_limit_and_tokens_are_four_characters():
    spoken = Speaker(responder=lambda one: "x" * 100).speak(call(), max_tokens=10)
    assert (spoken.text, spoken.finish, spoken.completion_tokens) == ("x" * 40, "length", 10)
    assert [tokens(text) for text in ("", "x", "xxxx", "xxxxx")] == [0, 1, 1, 2]


def test_a_prompt_in_dspys_chat_format_is_answered_in_it():
    content = (
        "[[ ## question ## ]]\nWhy?\n\nRespond with the corresponding output fields, starting with the field "
        "`[[ ## answer ## ]]`, and then ending with the marker for `[[ ## completed ## ]]`."
    )
    text = Speaker().speak(Call.of([{"role": "user", "content": content}])).text
    assert text.startswith("[[ ## answer ## ]]\nsimulated answer")
    assert text.endswith("[[ ## completed ## ]]")


def test_prose_is_labelled_too():
    assert Speaker().speak(Call.of([{"role": "user", "content": "Hello"}])).text.startswith("simulated reply")


def test_names_carry_arguments():
    label, behaviour = parse_name("simulated/weak?accuracy=0.4&latency=0.2&seed=7")
    assert label == "simulated/weak"
    assert behaviour == SimulatedBehaviour(accuracy=0.4, latency=0.2, seed=7)
    assert parse_name("simulated") == ("simulated", SimulatedBehaviour())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("simulated?acuracy=1", "Did you mean 'accuracy'"),
        ("simulated?accuracy=high", "must be a number"),
        ("simulated?accuracy=1.5", "from 0 to 1"),
        ("simulated?latency=-1", "0 or more seconds"),
        ("simulated?latency=nan", "0 or more seconds"),
        ("simulated?fast", "no argument 'fast'"),
        ("simulated?answers=absent.jsonl", "absent.jsonl: cannot be read"),
    ],
)
def test_wrong_arguments_are_refused_in_words(name, text):
    with pytest.raises(InputError, match=text):
        parse_name(name)


def test_an_answers_file_is_read_and_its_errors_name_the_line(tmp_path):
    file = tmp_path / "answers.jsonl"
    row = {"question": "Q?", "answer": "yes", "wrong": ["no"], "right": ["a"]}
    file.write_text(json.dumps(row) + "\n\n", encoding="utf-8")
    assert read_answers(file) == {"Q?": AnswerKey("yes", ("no",), frozenset({"a"}))}
    file.write_text(json.dumps(row) + "\n{", encoding="utf-8")
    with pytest.raises(InputError, match="line 2: not JSON"):
        read_answers(file)
    file.write_text('{"question": "Q?"}', encoding="utf-8")
    with pytest.raises(InputError, match="line 1: must be an object"):
        read_answers(file)


@pytest.mark.parametrize(("text", "fault"), [("500", Fault("500")), ("429:0.5", Fault("429", 0.5))])
def test_faults_are_read_from_text(text, fault):
    assert Fault.parse(text) == fault


def test_unknown_faults_are_refused():
    with pytest.raises(InputError, match="Did you mean 'stall'"):
        Fault.parse("stal")
    with pytest.raises(InputError, match="not a number of seconds"):
        Fault.parse("stall:long")
