"""Answer types as data: an artifact says what type its answers have without naming code to import."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model

from ..errors import InputError
from ..signatures.answers import Grid

_SIMPLE: dict[str, Any] = {"int": int, "float": float, "str": str, "bool": bool}
_JSON_TYPES: dict[str, Any] = {"integer": int, "number": float, "string": str, "boolean": bool}


class SimpleType(BaseModel):
    """A number, a text or a truth value."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["int", "float", "str", "bool"]


class LiteralType(BaseModel):
    """One of a few values."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["literal"] = "literal"
    values: list[str | int | bool] = Field(min_length=1, max_length=10_000)


class GridType(BaseModel):
    """`signatures.answers.Grid`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["grid"] = "grid"


class ListType(BaseModel):
    """A list of one type."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["list"] = "list"
    items: AnswerSpec


class ModelType(BaseModel):
    """A Pydantic model, described by its JSON schema.

    Attributes:
        name: of its class.
        json_schema: of its fields.
        code: the class has behaviour of its own (validators, `canonical`, `__str__`), which no data can carry; whoever
            loads the artifact must give the class.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["model"] = "model"
    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")
    json_schema: dict[str, Any]
    code: bool = False


AnswerSpec = Annotated[
    SimpleType | LiteralType | GridType | ListType | ModelType,
    Field(discriminator="type"),
]


def spec_of(answer: Any) -> AnswerSpec:
    """Return an answer type as data.

    Raises:
        InputError: for a type that cannot be rebuilt from data to the very same prompts.
    """
    for name, simple in _SIMPLE.items():
        if answer is simple:
            return SimpleType(type=name)  # type: ignore[arg-type]  # a name of the table is one of the four
    if answer is Grid:
        return GridType()
    if get_origin(answer) is Literal:
        return LiteralType(values=list(get_args(answer)))
    if get_origin(answer) is list and get_args(answer):
        return ListType(items=spec_of(get_args(answer)[0]))
    if isinstance(answer, type) and issubclass(answer, BaseModel):
        return _model_spec(answer)
    raise InputError(
        f"answers of type {getattr(answer, '__name__', answer)} cannot be recorded in an artifact; use int, float, "
        "str, bool, a Literal, Grid, a list of these or a Pydantic model"
    )


def _model_spec(model: type[BaseModel]) -> ModelType:
    decorators = model.__pydantic_decorators__
    code = (
        callable(getattr(model, "canonical", None))
        or model.__str__ is not BaseModel.__str__
        or any((decorators.field_validators, decorators.model_validators, decorators.validators))
    )
    schema = TypeAdapter(model).json_schema()
    spec = ModelType(name=model.__name__, json_schema=schema, code=bool(code))
    try:
        same = TypeAdapter(_built(spec)).json_schema() == schema
    except _UnreadableSchema as error:
        raise InputError(f"the answer type {model.__name__} cannot be recorded in an artifact: {error}") from None
    if not same:
        raise InputError(
            f"the answer type {model.__name__} cannot be recorded in an artifact: its JSON schema cannot be rebuilt"
        )
    return spec


def type_of(spec: AnswerSpec, given: Any = None) -> Any:
    """Return the type that a record describes.

    Args:
        spec: the record.
        given: the caller's own class for a model with code; checked against the record.

    Raises:
        InputError: when the class is needed and not given, or is another one.
    """
    if given is not None:
        if spec_of(given) != spec:
            raise InputError(
                f"answer is {getattr(given, '__name__', given)}; the artifact's answers are {_words(spec)}"
            )
        return given
    if isinstance(spec, SimpleType):
        return _SIMPLE[spec.type]
    if isinstance(spec, GridType):
        return Grid
    if isinstance(spec, LiteralType):
        return Literal[tuple(spec.values)]  # type: ignore[valid-type]  # the values are known at run time only
    if isinstance(spec, ListType):
        return list[type_of(spec.items)]  # type: ignore[misc]  # likewise
    if spec.code:
        raise InputError(
            f"the artifact's answers are of the class {spec.name}, which has code of its own: load it with "
            f"townhall.load(path, answer={spec.name})"
        )
    try:
        return _built(spec)
    except _UnreadableSchema as error:
        raise InputError(f"the answer type {spec.name}: {error}") from None


def _words(spec: AnswerSpec) -> str:
    return spec.name if isinstance(spec, ModelType) else spec.type


# -- models from JSON schemas -----------------------------------------------------------------------------------------


class _UnreadableSchema(ValueError):
    """A JSON schema with parts that are not rebuilt."""


def _built(spec: ModelType) -> type[BaseModel]:
    schema = spec.json_schema
    definitions = schema.get("$defs", {})
    built: dict[str, type[BaseModel]] = {}
    return _model(spec.name, schema, definitions if isinstance(definitions, dict) else {}, built, 0)


def _model(
    name: str, schema: Any, definitions: dict[str, Any], built: dict[str, type[BaseModel]], depth: int
) -> type[BaseModel]:
    if depth > 20:
        raise _UnreadableSchema("it is nested too deeply")
    if not isinstance(schema, dict) or schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        raise _UnreadableSchema(f"'{name}' is not an object with properties")
    unknown = set(schema) - {"type", "properties", "required", "title", "description", "$defs", "additionalProperties"}
    if unknown or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise _UnreadableSchema(f"'{name}' has parts that are not rebuilt: {', '.join(sorted(unknown))}")
    required = schema.get("required", [])
    fields: dict[str, Any] = {}
    for field, part in schema["properties"].items():
        if not isinstance(part, dict) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", field):
            raise _UnreadableSchema(f"the field '{field}' of '{name}' is not rebuilt")
        annotation = _annotation(part, definitions, built, depth)
        default = part.get("default") if field not in required else ...
        told = {key: part[key] for key in ("title", "description") if isinstance(part.get(key), str)}
        fields[field] = (annotation, Field(default, **told))
    config = ConfigDict(extra="forbid") if schema.get("additionalProperties") is False else None
    return create_model(name, __config__=config, __doc__=schema.get("description"), **fields)


def _annotation(
    part: dict[str, Any], definitions: dict[str, Any], built: dict[str, type[BaseModel]], depth: int
) -> Any:
    if depth > 20:
        raise _UnreadableSchema("it is nested too deeply")
    if "$ref" in part:
        name = str(part["$ref"]).removeprefix("#/$defs/")
        if name not in definitions:
            raise _UnreadableSchema(f"'{name}' is not defined")
        if name not in built:
            built[name] = _model(name, definitions[name], definitions, built, depth + 1)
        return built[name]
    if "const" in part or "enum" in part:
        values = part.get("enum", [part.get("const")])
        return Literal[tuple(values)]  # type: ignore[valid-type]  # the values are known at run time only
    if "anyOf" in part and isinstance(part["anyOf"], list):
        options = [option for option in part["anyOf"] if option != {"type": "null"}]
        if len(options) == 1 and len(part["anyOf"]) == 2:
            return _annotation(options[0], definitions, built, depth + 1) | None
    if part.get("type") == "array" and isinstance(part.get("items"), dict):
        return list[_annotation(part["items"], definitions, built, depth + 1)]  # type: ignore[misc]  # likewise
    if part.get("type") in _JSON_TYPES and not set(part) - {"type", "title", "description", "default"}:
        return _JSON_TYPES[part["type"]]
    raise _UnreadableSchema(f"a field of type {part.get('type', 'any')} is not rebuilt")
