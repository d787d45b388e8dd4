"""References are resolved, and every free text and list gets a bound."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel, Field

from townhall.models.schema import MOST_TEXTS, bounded, inline


class Point(BaseModel):
    name: str
    note: str = Field(max_length=7)
    kind: int


class Report(BaseModel):
    points: list[Point]
    few: list[str] = Field(min_length=20)
    summary: str


def test_inline_replaces_references_and_keeps_what_stands_beside_them():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/T", "description": "mine"}},
        "$defs": {"T": {"type": "string", "description": "theirs", "maxLength": 3}},
    }
    assert inline(schema) == {
        "type": "object",
        "properties": {"a": {"type": "string", "description": "mine", "maxLength": 3}},
    }


def test_inline_cuts_off_a_schema_that_contains_itself():
    schema = {"$ref": "#/$defs/N", "$defs": {"N": {"type": "array", "items": {"$ref": "#/$defs/N"}}}}
    assert len(json.dumps(inline(schema))) < 2000


def test_bounded_gives_free_texts_a_length_and_lists_an_end():
    flat = bounded(Report.model_json_schema(), 1024)
    point = flat["properties"]["points"]["items"]["properties"]
    # Room: 0.8 * 1024 tokens * 2 characters = 1638. Weights: 4 expected points with one free text each, 20 stated
    # texts in `few`, and 3 for the summary at the top: 27 units of 60.68 characters.
    assert point["name"]["maxLength"] == 60
    assert flat["properties"]["summary"]["maxLength"] == 182
    assert flat["properties"]["points"]["maxItems"] == MOST_TEXTS
    assert flat["properties"]["few"]["maxItems"] == 20


def test_the_cells_of_a_table_leave_the_room_to_what_is_argued():
    cells = {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}
    names = {"type": "array", "items": {"type": "string"}}
    grid = {"type": "object", "properties": {"header": names, "rows": cells}}
    schema = {"type": "object", "properties": {"argument": {"type": "string"}, "answer": grid}}
    flat = bounded(schema, 1024)["properties"]
    # 1638 characters; weights: 3 for the argument, 4 names of 1, 4 * 4 cells of 0.25: 11 units of 148.9 characters.
    assert flat["argument"]["maxLength"] == 446
    assert flat["answer"]["properties"]["header"]["items"]["maxLength"] == 148
    assert flat["answer"]["properties"]["rows"]["items"]["items"]["maxLength"] == 40  # the least


def test_bounded_keeps_stated_limits_and_leaves_closed_texts_alone():
    schema = {
        "type": "object",
        "properties": {
            "short": {"type": "string", "maxLength": 7},
            "letter": {"type": "string", "enum": ["a", "b"]},
            "items": {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
        },
    }
    assert bounded(schema, 1024) == schema


@pytest.mark.parametrize(("max_tokens", "length"), [(10, 40), (300, 480), (4096, 1000)])
def test_bounded_scales_with_the_reply_limit_between_a_floor_and_a_ceiling(max_tokens, length):
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    assert bounded(schema, max_tokens)["properties"]["text"]["maxLength"] == length


def test_bounded_does_not_change_its_argument_and_keeps_the_order_of_fields():
    schema = Report.model_json_schema()
    before = json.dumps(schema)
    assert list(bounded(schema, 512)["properties"]) == ["points", "few", "summary"]
    assert json.dumps(schema) == before


def test_a_list_of_written_items_ends_sooner_than_one_of_short_ones():
    critique = {"type": "object", "properties": {"target": {"type": "string"}, "critique": {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {
            "critiques": {"type": "array", "items": critique},
            "rows": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        },
    }
    flat = bounded(schema, 1024)
    assert flat["properties"]["critiques"]["maxItems"] == 8
    assert flat["properties"]["rows"]["maxItems"] == 16
