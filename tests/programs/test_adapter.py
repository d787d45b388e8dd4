"""The reading of replies: stricter and more lenient than DSPy's, each where it matters."""

from __future__ import annotations

import json
from typing import Literal

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError
from pydantic import BaseModel

from townhall.programs.adapter import DebateAdapter, coerce
from townhall.signatures.answers import Grid


class Reply(dspy.Signature):
    """Answer."""

    question: str = dspy.InputField()
    reasoning: str = dspy.OutputField()
    answer: str = dspy.OutputField()


def read(text, answer=str):
    signature = Reply if answer is str else Reply.with_updated_fields("answer", type_=answer)
    return DebateAdapter().parse(signature, text)


def answer_of(value, answer=str):
    return read(json.dumps({"reasoning": "r", "answer": value}), answer)["answer"]


# -- finding the object ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"reasoning": "r", "answer": "42"}',
        'Here you are: {"reasoning": "r", "answer": "42"} Good luck!',
        '```json\n{"reasoning": "r", "answer": "42"}\n```',
        '{"reasoning": "r", "answer": "42"',
        "{'reasoning': 'r', 'answer': '42',}",
        '[{"reasoning": "r", "answer": "42"}]',
        'Let {x} be the sum. {"reasoning": "r", "answer": "42"}',
        '{"reasoning": "draft", "answer": "41"}\nNo, rather:\n{"reasoning": "r", "answer": "42"}',
        '{"answer": "42", "reasoning": "r", "note": "more than was asked for"}',
    ],
)
def test_the_object_is_found(text):
    assert read(text) == {"reasoning": "r", "answer": "42"}


def test_an_object_quoted_in_the_reasoning_is_not_the_answer():
    assert answer_of("3") == "3"
    assert read(json.dumps({"reasoning": 'say {"answer": 9}', "answer": "3"}))["answer"] == "3"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "42",
        "I do not know.",
        "{}",
        '{"reasoning": "r"}',
        '{"reasoning": "r", "answer": null}',
        '{"reasoning": null, "answer": "yes"}',
        '{"reasoning": "r", "answer": ""}',
        '{"reasoning": "r", "answer": "  "}',
        '{"result": "42"}',
    ],
)
def test_what_is_missing_null_or_empty_is_unreadable(text):
    with pytest.raises(AdapterParseError):
        read(text)


@pytest.mark.parametrize("text", ["{" * 3000, '{"a":' * 3000, '{"a":[' * 50000, '{"answer": ' + "[" * 5000])
def test_a_degenerate_reply_is_unreadable_like_any_other(text):
    with pytest.raises(AdapterParseError):
        read(text)


def test_null_is_read_as_none_where_the_type_allows_it():
    assert answer_of(None, int | None) is None


def test_lone_surrogates_are_replaced_so_that_the_next_prompt_can_be_sent():
    text = '{"reasoning": "half a smile \\ud83d", "answer": "ok"}'
    assert read(text)["reasoning"] == "half a smile ?"
    read(text)["reasoning"].encode("utf-8")


# -- types -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (42, 42),
        (42.0, 42),
        ("42", 42),
        ("$1,200", 1200),
        ("-7", -7),
        ("\u22127", -7),
        ([7], 7),
        (["7"], 7),
        ("8/2", 4),
    ],
)
def test_integers_are_read_leniently(value, number):
    read_number = answer_of(value, int)
    assert read_number == number
    assert type(read_number) is int


@pytest.mark.parametrize("value", ["forty-two", "42 apples", "1/2", 0.5, True, [1, 2], {}, "nan", "9" * 5000])
def test_what_is_no_integer_is_unreadable(value):
    with pytest.raises(AdapterParseError):
        answer_of(value, int)


@pytest.mark.parametrize(("value", "number"), [("1/2", 0.5), ("2 1/4", 2.25), ("20%", 20.0), (3, 3.0), ("1e3", 1000.0)])
def test_decimals_are_read_leniently(value, number):
    read_number = answer_of(value, float)
    assert read_number == number
    assert type(read_number) is float


@pytest.mark.parametrize(
    "text", ["NaN", "Infinity", "-Infinity", '"nan"', '"inf"', '"-Infinity"', "1e999", '"1e999"', "true"]
)
def test_a_number_that_is_not_finite_is_unreadable(text):
    with pytest.raises(AdapterParseError):
        read(f'{{"reasoning": "r", "answer": {text}}}', float)


@pytest.mark.parametrize("text", ['"1e999999999"', '"' + "9" * 100_000 + '"'])
def test_a_gigantic_number_is_refused_at_once(text):
    with pytest.raises(AdapterParseError):
        read(f'{{"reasoning": "r", "answer": {text}}}', int)


@pytest.mark.parametrize("optional", [int | None, "typing"])
def test_optional_types_are_read_as_leniently_as_plain_ones(optional):
    from typing import Optional

    assert answer_of("$1,200", Optional[int] if optional == "typing" else optional) == 1200  # noqa: UP045 (both kinds)


@pytest.mark.parametrize(
    ("value", "letter"),
    [
        ("B", "B"),
        ("b", "B"),
        (" c ", "C"),
        ("B.", "B"),
        ("(B)", "B"),
        ("(b) because a car moves", "B"),
        ("B) Paris", "B"),
        ("B: Paris", "B"),
        ("**A**", "A"),
        ("**A** is right", "A"),
        ("$A$", "A"),
        ('"A"', "A"),
    ],
)
def test_letters_are_read_where_a_mark_follows_them(value, letter):
    assert answer_of(value, Literal["A", "B", "C"]) == letter


@pytest.mark.parametrize("value", ["A car moves", "The answer is B", "D", "AB", "Because", "", 1])
def test_a_letter_that_begins_prose_is_no_choice(value):
    with pytest.raises(AdapterParseError):
        answer_of(value, Literal["A", "B", "C"])


@pytest.mark.parametrize(("value", "label"), [("YES", "yes"), ("No.", "no"), ("  Neither ", "neither"), ("'no'", "no")])
def test_labels_are_read_in_any_case(value, label):
    assert answer_of(value, Literal["yes", "no", "neither"]) == label


@pytest.mark.parametrize("value", ["not unacceptable", "I do not know", "no, but", "yes and no", "maybe"])
def test_prose_that_begins_with_a_label_is_no_label(value):
    with pytest.raises(AdapterParseError):
        answer_of(value, Literal["yes", "no", "neither"])


@pytest.mark.parametrize(("value", "number"), [(2, 2), ("2", 2), ("2.", 2)])
def test_numbered_choices_are_read_from_texts(value, number):
    assert answer_of(value, Literal[1, 2, 3]) == number


@pytest.mark.parametrize(("value", "text"), [(42, "42"), (["a", "b"], '["a", "b"]'), (True, "true"), ("None", "None")])
def test_a_text_is_made_of_whatever_was_sent(value, text):
    assert answer_of(value) == text


def test_models_are_read_in_the_shapes_that_they_accept():
    grid = answer_of({"House 1": {"Name": "Ann"}, "House 2": {"Name": "Bob"}}, Grid)
    assert grid == Grid(header=["House", "Name"], rows=[["1", "Ann"], ["2", "Bob"]])
    assert answer_of(json.dumps({"House 1": {"Name": "Ann"}}), Grid).rows == [["1", "Ann"]]


class Point(BaseModel):
    x: int


@pytest.mark.parametrize(
    ("value", "annotation"), [({"x": 1}, Point), ([1], list[int]), ("a", Literal["b"]), (1.5, int), ("x", int)]
)
def test_what_cannot_be_brought_nearer_is_left_alone(value, annotation):
    assert coerce(value, annotation) == value


def test_the_messages_are_those_of_dspys_json_adapter():
    inputs = {"question": "Is it so?"}
    assert DebateAdapter().format(Reply, [], inputs) == dspy.JSONAdapter().format(Reply, [], inputs)
