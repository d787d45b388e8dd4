"""JSON schemas as engines need them: references resolved, and texts and lists bounded."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

#: A list that states no maximum ends after so many items, or a small model's list never does.
MOST_ITEMS = 16
#: Likewise for a list of objects that hold free texts, which small models repeat with small changes.
MOST_TEXTS = 8
#: How many items such a list is expected to have when room for texts is shared out.
_EXPECTED_ITEMS = 4
#: A text at the top level (an argument) gets this many times the room of a nested one (one critique of many).
_TOP_WEIGHT = 3
#: A cell of a table (a text in a list of lists) is a word or two, and gets this much of a nested text's room.
_CELL_WEIGHT = 0.25
_LEAST_CHARACTERS = 40
_MOST_CHARACTERS = 1000
#: English prose has about four characters a token, digits and formulas fewer than two.
_CHARACTERS_PER_TOKEN = 2
#: The share of the reply that free texts may fill; names, punctuation, numbers and white space have the rest.
_TEXT_SHARE = 0.8
_DEEPEST = 12


def inline(schema: Schema) -> Schema:
    """Return the schema with its internal references replaced by what they refer to.

    A recursive reference is cut off at a depth of twelve, where anything goes.
    """
    return _inline(schema, schema, 0)


def _inline(node: Any, root: Schema, depth: int) -> Any:
    if isinstance(node, list):
        return [_inline(item, root, depth) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str):
        if depth > _DEEPEST:
            return {}
        target: Any = root
        for part in reference.removeprefix("#/").split("/") if reference != "#" else ():
            target = target.get(part, {}) if isinstance(target, dict) else {}
        siblings = {key: value for key, value in node.items() if key != "$ref"}
        return _inline({**target, **siblings}, root, depth + 1)
    return {key: _inline(value, root, depth) for key, value in node.items() if key not in ("$defs", "definitions")}


def bounded(schema: Schema, max_tokens: int) -> Schema:
    """Return the schema with a length for every free text and list, so that a reply of `max_tokens` can close.

    A small model's text goes on until something stops it: when that is the token limit, the JSON stays open and the
    reply is lost. Free texts share what the limit leaves, in characters; limits that the schema states are kept.

    Args:
        schema: references allowed; the result has none.
        max_tokens: the limit of the reply.
    """
    flat = inline(schema)
    weight = _weight(flat, 0)
    room = _TEXT_SHARE * max_tokens * _CHARACTERS_PER_TOKEN
    return _bound(flat, room / weight if weight else room, 0, 1)


def _is_free_text(node: Schema) -> bool:
    closed = ("maxLength", "enum", "const", "pattern", "format")
    return node.get("type") == "string" and not any(key in node for key in closed)


def _is_table(node: Schema) -> bool:
    """Return whether a list's items are lists of texts."""
    row = node.get("items", {})
    return isinstance(row, dict) and isinstance(row.get("items"), dict) and _is_free_text(row["items"])


def _weight(node: Any, depth: int) -> float:
    if not isinstance(node, dict):
        return 0
    if _is_free_text(node):
        return _TOP_WEIGHT if depth <= 1 else 1
    options = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    total = max((_weight(option, depth) for option in options), default=0.0)
    total += sum(_weight(part, depth) for part in node.get("allOf", ()))
    total += sum(_weight(part, depth + 1) for part in node.get("properties", {}).values())
    if isinstance(node.get("items"), dict):
        expected = max(node.get("minItems", 0), min(node.get("maxItems", _EXPECTED_ITEMS), _EXPECTED_ITEMS))
        total += expected * _weight(node["items"], depth + 2) * (_CELL_WEIGHT if _is_table(node) else 1)
    return total


def _bound(node: Any, unit: float, depth: int, scale: float) -> Any:
    if not isinstance(node, dict):
        return node
    if _is_free_text(node):
        share = unit * (_TOP_WEIGHT if depth <= 1 else 1) * scale
        return {**node, "maxLength": int(min(max(share, _LEAST_CHARACTERS), _MOST_CHARACTERS))}
    out = dict(node)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in out:
            out[key] = [_bound(option, unit, depth, scale) for option in out[key]]
    if isinstance(out.get("properties"), dict):
        out["properties"] = {name: _bound(part, unit, depth + 1, scale) for name, part in out["properties"].items()}
    if isinstance(out.get("items"), dict):
        texts = out["items"].get("type") == "object" and _weight(out["items"], depth + 2) > 0
        out["items"] = _bound(out["items"], unit, depth + 2, scale * (_CELL_WEIGHT if _is_table(out) else 1))
        out.setdefault("maxItems", max(MOST_TEXTS if texts else MOST_ITEMS, out.get("minItems", 0)))
    return out
