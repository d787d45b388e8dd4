"""The adapter between roles and models: typed JSON, read as leniently as is safe."""

from __future__ import annotations

import json
import math
import types
import weakref
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import dspy
import json_repair
from dspy.adapters.utils import annotation_allows_none, apply_output_field_defaults, parse_value
from dspy.utils.exceptions import AdapterParseError

from ..signatures.answers import fold
from ..signatures.numbers import parse_number


class DebateAdapter(dspy.JSONAdapter):
    """DSPy's JSON adapter with stricter and more lenient reading, each where it matters.

    Stricter: a null or missing field, an empty reply or a number that is not finite is unreadable, never None.
    More lenient: prose around the object, "$1,200" or "1/2" for a number, "(b) because" for a choice among letters,
    labels in any case. The messages are exactly those of `dspy.JSONAdapter`.

    The system message, the demonstrations and the output schema of a signature are made once: they took more than half
    of the CPU time of a call.
    """

    def format_system_message(self, signature: type[dspy.Signature]) -> str:
        """Return the system message of a signature."""
        made = _remembered(_SYSTEM_MESSAGES, signature)
        key = (type(self), signature.instructions, _fields_key(signature))
        if key not in made:
            made[key] = super().format_system_message(signature)
        return made[key]

    def format_demos(self, signature: type[dspy.Signature], demos: list[Any]) -> list[dict[str, Any]]:
        """Return the messages of the demonstrations."""
        if not demos:
            return []
        made = _remembered(_DEMONSTRATIONS, signature)
        shown = tuple(tuple((name, repr(value)) for name, value in demo.items()) for demo in demos)
        key = (type(self), signature.instructions, _fields_key(signature), shown)
        if key not in made:
            if len(made) >= _MOST_DEMONSTRATIONS:  # demonstrations that are chosen anew for every question
                made.clear()
            made[key] = super().format_demos(signature, demos)
        return [dict(message) for message in made[key]]

    def _prepare_response_format(
        self, lm: dspy.BaseLM, lm_kwargs: dict[str, Any], signature: type[dspy.Signature]
    ) -> None:
        given: dict[str, Any] = {}
        if "response_format" in lm.supported_params:
            made = _remembered(_RESPONSE_FORMATS, signature)
            key = (bool(lm.supports_response_schema), self.use_native_function_calling, _fields_key(signature))
            if key not in made:
                super()._prepare_response_format(lm, given, signature)
                made[key] = given
            given = made[key]
        lm_kwargs.update(given)

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """Read a reply into the signature's output fields.

        Raises:
            AdapterParseError: when a field is missing, null or not of its type.
        """
        wanted = signature.output_fields
        try:
            found = _encodable(self._find_object(completion, set(wanted)))
        except (ValueError, RecursionError):
            raise self._unreadable(signature, completion, "The reply is nested too deeply to be read.") from None
        if found is None:
            raise self._unreadable(signature, completion, "The reply holds no JSON object.")
        fields: dict[str, Any] = {}
        for name, field in wanted.items():
            if name not in found:
                continue
            value = found[name]
            if value is None and not annotation_allows_none(field.annotation):
                raise self._unreadable(signature, completion, f"The field {name} is null.", fields)
            try:
                fields[name] = _finite(parse_value(coerce(value, field.annotation), field.annotation))
            except ValueError as error:
                raise self._unreadable(
                    signature, completion, f"Failed to parse field {name}: {error}", fields
                ) from error
        fields = apply_output_field_defaults(signature, fields)
        if fields.keys() != wanted.keys():
            missing = ", ".join(sorted(set(wanted) - set(fields)))
            raise self._unreadable(signature, completion, f"Missing: {missing}.", fields)
        return fields

    @staticmethod
    def _find_object(completion: str, wanted: set[str]) -> dict[str, Any] | None:
        start = completion.find("{")
        if start < 0:
            return None
        try:
            data = json.loads(completion[start:])
        except ValueError:
            data = json_repair.loads(completion[start:])
        # Several objects: the last that has a wanted field, since models draft before they conclude.
        options = data if isinstance(data, list) else [data]
        objects = [item for item in options if isinstance(item, dict)]
        complete = [item for item in objects if wanted <= set(item)]
        partial = [item for item in objects if wanted & set(item)]
        usable = complete or partial
        return usable[-1] if usable else None

    @staticmethod
    def _unreadable(
        signature: type[dspy.Signature], completion: str, message: str, fields: dict[str, Any] | None = None
    ) -> AdapterParseError:
        return AdapterParseError(
            adapter_name="DebateAdapter",
            signature=signature,
            lm_response=completion,
            message=message,
            parsed_result=fields,
        )


#: What was made for each signature, for as long as the signature lives.
_SYSTEM_MESSAGES: weakref.WeakKeyDictionary[Any, dict[Any, str]] = weakref.WeakKeyDictionary()
_DEMONSTRATIONS: weakref.WeakKeyDictionary[Any, dict[Any, list[dict[str, Any]]]] = weakref.WeakKeyDictionary()
_MOST_DEMONSTRATIONS = 64
_RESPONSE_FORMATS: weakref.WeakKeyDictionary[Any, dict[Any, dict[str, Any]]] = weakref.WeakKeyDictionary()
Made = TypeVar("Made")


def _remembered(store: weakref.WeakKeyDictionary[Any, dict[Any, Made]], signature: Any) -> dict[Any, Made]:
    return store.setdefault(signature, {})


def _fields_key(signature: type[dspy.Signature]) -> tuple[Any, ...]:
    """Return what of a signature's fields reaches the prompt: optimisers may change a signature in place."""
    return tuple(
        (name, str(info.annotation), repr(info.default), str(info.json_schema_extra))
        for name, info in signature.fields.items()
    )


def coerce(value: Any, annotation: Any) -> Any:
    """Return `value` nearer to `annotation` where that is safe; unchanged otherwise.

    Raises:
        ValueError: for a number that is not finite, or a text with no content.
    """
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        options = [option for option in get_args(annotation) if option is not type(None)]
        return coerce(value, options[0]) if len(options) == 1 and value is not None else value
    if annotation in (int, float):
        return _coerce_number(value, annotation)
    if annotation is str:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if not text.strip():
            raise ValueError("the text is empty")
        return text
    if origin is Literal:
        return _coerce_literal(value, get_args(annotation))
    return value


def _coerce_number(value: Any, annotation: Any) -> Any:
    if isinstance(value, list) and len(value) == 1:
        return _coerce_number(value[0], annotation)
    if isinstance(value, bool):
        raise ValueError(f"{json.dumps(value)} is not a number")
    if isinstance(value, str):
        number = parse_number(value)
        if number is None:
            return value
        if annotation is int and number.denominator == 1:
            return int(number)
        try:
            return float(number)
        except OverflowError:
            raise ValueError("the number is out of range") from None
    if annotation is int and isinstance(value, float) and value.is_integer():
        return int(value)
    return _finite(value)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    return value


def _encodable(value: Any) -> Any:
    """Return the data with lone surrogates replaced: no file and no provider takes them."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return value


def _coerce_literal(value: Any, allowed: tuple[Any, ...]) -> Any:
    if value in allowed or not isinstance(value, str):
        return value
    folded = fold(value).strip("\"'*$.()[] ")
    by_name = {fold(option): option for option in allowed}
    if folded in by_name:
        return by_name[folded]
    # "B) Paris", "b. Paris", "B: Paris": a letter is taken when a mark follows it, never as the first word of prose.
    if all(len(str(option)) == 1 for option in allowed):
        stripped = value.strip().lstrip("(*[")
        if len(stripped) > 1 and fold(stripped[0]) in by_name and stripped[1] in ").:]*":
            return by_name[fold(stripped[0])]
    return value
