"""`models.yaml`: models by names of the user's own, with their endpoint, defaults and prices.

weak:
  model: qwen2.5-7b-instruct          # a server's model, or any name that `lm` takes
  api_base: http://127.0.0.1:8000/v1  # left out: `model` is a DSPy / LiteLLM name, `local...` or `simulated...`
  api_key_env: LAB_API_KEY            # the environment variable that holds the key; a key itself is refused
  temperature: 0.7
  max_tokens: 1024
  prompt_price: 0.15                  # US dollars for a million tokens
  completion_price: 0.60
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import InputError
from ..registry import nearest

#: Read when no file is named and `TOWNHALL_MODELS` is not set.
DEFAULT_FILE = "models.yaml"
_RESERVED = ("local", "simulated")
_SECRETS = frozenset({"api_key", "key", "apikey", "token", "secret", "password"})


class NamedModel(BaseModel):
    """One entry of `models.yaml`; see the module for an example.

    Attributes:
        model: the model's name: the server's own with `api_base`, else any that `lm` takes.
        api_base: of an OpenAI-compatible server.
        api_key_env: name of the environment variable that holds the key.
        temperature: default of its requests.
        max_tokens: default of its requests.
        seed: default of its requests.
        timeout: seconds without a byte after which the server counts as stalled.
        concurrency: calls at the same time, by default.
        prompt_price: US dollars for a million prompt tokens; overrides what is known of the model.
        completion_price: US dollars for a million completion tokens.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    model: str = Field(min_length=1)
    api_base: str | None = None
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    seed: int | None = None
    timeout: float | None = Field(default=None, gt=0)
    concurrency: int | None = Field(default=None, ge=1)
    prompt_price: float | None = Field(default=None, ge=0)
    completion_price: float | None = Field(default=None, ge=0)


@dataclass(frozen=True)
class ModelsFile:
    """A file of named models: its path and its entries by name."""

    path: Path
    entries: dict[str, NamedModel]


def find_models_file(named: str | os.PathLike[str] | None = None) -> ModelsFile | None:
    """Return the models file: the one named, else that of `TOWNHALL_MODELS`, else `models.yaml` in this folder.

    Returns:
        None when none is named and there is no default one.

    Raises:
        InputError: when the named one is missing, or the one found is not as it should be.
    """
    chosen = named or os.environ.get("TOWNHALL_MODELS")
    if chosen:
        return read_models_file(Path(chosen).expanduser())
    default = Path(DEFAULT_FILE)
    return read_models_file(default) if default.is_file() else None


def read_models_file(file: Path) -> ModelsFile:
    """Read a file of named models.

    Raises:
        InputError: when it is missing or wrong; the text names the line and the field.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{file}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read ({error})") from None
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise InputError(f"{file}{line}: not YAML ({getattr(error, 'problem', None) or error})") from None
    if not isinstance(root, yaml.MappingNode) or not root.value:
        raise InputError(f"{file}: must map names to models, each with the field 'model'")
    entries: dict[str, NamedModel] = {}
    for key, value in root.value:
        name, where = str(key.value), f"{file}, line {key.start_mark.line + 1}"
        if name in entries:
            raise InputError(f"{where}: the model '{name}' is named twice")
        if name.partition("/")[0].partition("?")[0] in _RESERVED:
            raise InputError(f"{where}: the name '{name}' is taken by a built-in model; choose another")
        entries[name] = _entry(name, value, file, where)
    return ModelsFile(file, entries)


def _entry(name: str, node: Any, file: Path, where: str) -> NamedModel:
    if not isinstance(node, yaml.MappingNode):
        raise InputError(f"{where}: the model '{name}' must have fields, at least 'model'")
    lines = {str(key.value): key.start_mark.line + 1 for key, _ in node.value}
    for field in lines:
        if field.lower() in _SECRETS:
            raise InputError(
                f"{file}, line {lines[field]}: '{field}' must not be in the file; put the key into an environment "
                f"variable and name that one with 'api_key_env'"
            )
        if field not in NamedModel.model_fields:
            known = list(NamedModel.model_fields)
            raise InputError(
                f"{file}, line {lines[field]}: unknown field '{field}' of model '{name}'.{nearest(field, known)} "
                f"Known: {', '.join(known)}"
            )
    values = yaml.SafeLoader("").construct_document(node)
    try:
        return NamedModel.model_validate(values)
    except ValidationError as error:
        problem = error.errors()[0]
        field = str(problem["loc"][0]) if problem["loc"] else ""
        at = f"{file}, line {lines[field]}" if field in lines else where
        raise InputError(f"{at}: field '{field}' of model '{name}': {problem['msg']}") from None
