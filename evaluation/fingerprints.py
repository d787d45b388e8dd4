"""Hashes of what a run depends on: a program's prompts, a list of examples, a configuration."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

from ..signatures.answers import plain
from ..tasks.base import Example

if TYPE_CHECKING:
    import dspy


def content_hash(content: Any) -> str:
    """Return the SHA-256 of JSON data, whatever the order of its keys."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def examples_fingerprint(examples: Iterable[Example]) -> str:
    """Return the hash of a list of examples: of their content, in their order."""
    return content_hash([example.fingerprint for example in examples])


def program_fingerprint(program: dspy.Module) -> str:
    """Return the hash of all that a program's roles send beside the inputs: instructions, fields, demonstrations."""
    return content_hash({name: _role(predictor) for name, predictor in program.named_predictors()})


def _role(predictor: dspy.Predict) -> dict[str, Any]:
    signature = predictor.signature
    return {
        "instructions": signature.instructions,
        "fields": [
            [
                name,
                info.json_schema_extra.get("__dspy_field_type"),
                info.json_schema_extra.get("desc"),
                _type(info.annotation),
            ]
            for name, info in signature.fields.items()
        ],
        "demos": [_demo(demo) for demo in predictor.demos],
        "config": dict(predictor.config),
    }


@functools.cache
def _type(annotation: Any) -> Any:
    try:
        # The schema is part of the prompt: a changed description of a field is another program.
        return TypeAdapter(annotation).json_schema()
    except (PydanticSchemaGenerationError, PydanticUserError):
        return str(annotation)


def _demo(demo: Any) -> Mapping[str, Any]:
    return {str(name): plain(value) for name, value in dict(demo).items()}
