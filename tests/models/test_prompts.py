"""What DSPy's adapters write can be read back: input fields, and output fields with their types."""

from __future__ import annotations

from typing import Literal

import dspy
import pytest
from pydantic import BaseModel

from townhall.models.prompts import chat_output_schema, input_fields, output_schema


class Item(BaseModel):
    name: str


class Everything(dspy.Signature):
    """Do it."""

    question: str = dspy.InputField()
    count: int = dspy.InputField()
    items: list[Item] = dspy.OutputField()
    letter: Literal["a", "b"] = dspy.OutputField()
    number: int = dspy.OutputField()
    share: float = dspy.OutputField()
    sure: bool = dspy.OutputField()
    text: str = dspy.OutputField()


INPUTS = {"question": "Why?\n\nReally, why?", "count": 3}


@pytest.mark.parametrize("adapter", [dspy.JSONAdapter(), dspy.ChatAdapter()])
def test_input_fields_are_read_without_the_request_that_follows_them(adapter):
    messages = adapter.format(Everything, [], INPUTS)
    assert input_fields(messages) == {"question": "Why?\n\nReally, why?", "count": "3"}


def test_input_fields_are_those_of_the_last_turn_not_of_demonstrations():
    demo = dspy.Example(question="old", count=1, items=[], letter="a", number=1, share=0.5, sure=True, text="t")
    messages = dspy.JSONAdapter().format(Everything, [demo], INPUTS)
    assert input_fields(messages)["count"] == "3"


def test_input_fields_of_a_foreign_prompt_are_empty():
    assert input_fields([{"role": "user", "content": "Hello"}]) == {}


@pytest.mark.parametrize(
    ("adapter", "read"), [(dspy.JSONAdapter(), output_schema), (dspy.ChatAdapter(), chat_output_schema)]
)
def test_output_fields_are_read_with_their_types(adapter, read):
    schema = read(adapter.format(Everything, [], INPUTS))
    parts = schema["properties"]
    assert list(parts) == ["items", "letter", "number", "share", "sure", "text"]
    assert parts["items"]["items"]["properties"]["name"]["type"] == "string"
    assert parts["letter"] == {"enum": ["a", "b"]}
    assert [parts[name]["type"] for name in ("number", "share", "sure", "text")] == [
        "integer",
        "number",
        "boolean",
        "string",
    ]


@pytest.mark.parametrize("read", [output_schema, chat_output_schema])
def test_output_fields_of_a_foreign_prompt_are_none(read):
    assert read([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}]) is None
