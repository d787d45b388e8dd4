"""A strategy's settings as command-line options, made from the fields of its config."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

import click

from ..errors import InputError
from .params import CommaSeparated, KeyValue, Number, Option

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from ..programs.base import StrategyConfig

#: Prefix of the settings' names among a command's parameters.
PREFIX = "setting_"


def checked(
    settings: Mapping[str, Any], config: type[StrategyConfig], strategy: str, base: Mapping[str, Any]
) -> dict[str, Any]:
    """Return settings that the strategy accepts; a list of personas is used in full unless they say otherwise.

    Args:
        settings: as given.
        config: the strategy's.
        strategy: its name.
        base: the settings that they change, of an artifact's program.

    Raises:
        InputError: for a value that the strategy's config refuses; the text names the option.
    """
    from ..programs.base import build_config

    values = dict(settings)
    if values.get("persona_list") and "persona_style" in config.model_fields:
        values = {"persona_style": "listed", "personas": min(len(values["persona_list"]), 15), **values}
    try:
        build_config(config, {**base, **values}, strategy)
    except InputError as error:
        text = str(error)
        name = next((name for name in config.model_fields if text.startswith(f"{name} is ")), None)
        raise InputError(text.replace(name, f"--{name.replace('_', '-')}", 1) if name else text) from None
    return values


def value_of(args: Sequence[str], option: str) -> str | None:
    """Return the last value of an option among raw arguments; None when it is not there."""
    found = None
    for position, arg in enumerate(args):
        if arg == "--":
            break
        if arg == option and position + 1 < len(args):
            found = args[position + 1]
        elif arg.startswith(f"{option}="):
            found = arg.partition("=")[2]
    return found


def options_of(config: type[BaseModel], taken: set[str], *, every: bool = False) -> list[click.Option]:
    """Return one option for each setting that the command line does not have already.

    Args:
        config: a strategy's config, or another model.
        taken: the command's own options; a setting of such a name becomes `--strategy-NAME`.
        every: also `seed` and `temperature`, which are options of the commands that run strategies.
    """
    helps = attribute_helps(config)
    made = []
    for name, field in config.model_fields.items():
        if name in ("seed", "temperature") and not every:
            continue
        made.append(_option(name, field, helps.get(name, field.description or ""), taken))
    return made


def _option(name: str, field: FieldInfo, text: str, taken: set[str]) -> click.Option:
    flag = f"--{name.replace('_', '-')}"
    kind = _without_none(field.annotation)
    if _is_list_of_objects(kind):
        # Both `personas` and `persona_list` are read from --personas-file.
        flag = f"{flag.removesuffix('-list').removesuffix('s')}s-file"
    if flag in taken:
        flag = flag.replace("--", "--strategy-", 1)
    text = f"{text[:1].upper()}{text[1:]}"
    settings: dict[str, Any] = {"help": text, "default": None, "when_absent": _default_text(field)}
    declared = [flag, f"{PREFIX}{name}"]
    if kind is bool:
        return Option([f"{flag}/--no-{flag.removeprefix('--')}", declared[1]], is_flag=True, **settings)
    if get_origin(kind) is dict:
        settings.pop("default")
        return Option(declared, type=KeyValue(), multiple=True, callback=_typed_values(get_args(kind)[1]), **settings)
    if _is_list_of_objects(kind):
        return Option(declared, type=click.Path(), callback=_read_list, metavar="FILE", **settings)
    return Option(declared, type=_type(kind, field), **settings)


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        options = [option for option in get_args(annotation) if option is not type(None)]
        return options[0] if len(options) == 1 else annotation
    return annotation


def _is_list_of_objects(kind: Any) -> bool:
    from pydantic import BaseModel

    if get_origin(kind) is not list:
        return False
    item = get_args(kind)[0]
    return isinstance(item, type) and issubclass(item, BaseModel)


def _type(kind: Any, field: FieldInfo) -> click.ParamType:
    if get_origin(kind) is Literal:
        return click.Choice([str(option) for option in get_args(kind)])
    extra = field.json_schema_extra
    if isinstance(extra, Mapping) and extra.get("registry") == "decisions":
        from ..programs.decisions import DECISIONS

        return click.Choice(DECISIONS.names())
    if kind in (int, float):
        return Number(kind, **_bounds(field), check=False)  # the config does, and knows why
    if get_origin(kind) in (list, tuple):
        return CommaSeparated(get_args(kind)[0] if get_args(kind) else str)
    return click.STRING


def _bounds(field: FieldInfo) -> dict[str, Any]:
    bounds: dict[str, Any] = {}
    for rule in field.metadata:
        for attribute, name in (("ge", "least"), ("gt", "least"), ("le", "most"), ("lt", "most")):
            if (value := getattr(rule, attribute, None)) is not None:
                bounds[name] = value
                if attribute in ("gt", "lt"):
                    bounds["above" if attribute == "gt" else "below"] = True
    return bounds


def _default_text(field: FieldInfo) -> str | None:
    default = field.get_default(call_default_factory=True)
    if default is None or default == [] or default == {} or field.is_required():
        return None
    if isinstance(default, bool):
        return "yes" if default else "no"
    return str(default)


def _typed_values(kind: type) -> Any:
    def convert(ctx: click.Context, param: click.Parameter, values: Sequence[tuple[str, str]]) -> dict[str, Any] | None:
        out = {}
        for key, text in values:
            try:
                out[key] = kind(text)
            except ValueError:
                raise click.BadParameter(f"'{text}' is not a {kind.__name__}", ctx=ctx, param=param) from None
        return out or None

    return convert


def _read_list(ctx: click.Context, param: click.Parameter, path: str | None) -> list[Any] | None:
    """Read a JSON or YAML file that holds a list of objects (or of names)."""
    if path is None:
        return None
    import yaml

    try:
        with open(path, encoding="utf-8") as stream:
            data = yaml.safe_load(stream)  # JSON is YAML
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: neither JSON nor YAML ({' '.join(str(error).split())})") from None
    if not isinstance(data, list) or not data:
        raise InputError(f"{path}: must hold a list, such as [{{name: Ada, expertise: number theory, stance: doubts}}]")
    items = [{"name": item} if isinstance(item, str) else item for item in data]
    for number, item in enumerate(items, start=1):
        if not isinstance(item, dict) or not isinstance(item.get("name"), str) or not item["name"].strip():
            raise InputError(f"{path}, item {number}: must be a name, or an object with the field 'name'")
    return items


_ATTRIBUTE = re.compile(r"^    (\w+): (.*)$")


def attribute_helps(kind: type) -> dict[str, str]:
    """Return what the `Attributes:` sections of a class and its bases say of each attribute, as one line each."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        text = inspect.cleandoc(base.__dict__.get("__doc__") or "")
        _, _, section = text.partition("Attributes:\n")
        current = None
        for line in section.splitlines():
            if match := _ATTRIBUTE.match(line):
                current = match.group(1)
                found[current] = match.group(2).strip()
            elif line.startswith("        ") and current is not None:
                found[current] += f" {line.strip()}"
            else:
                break
    return found
