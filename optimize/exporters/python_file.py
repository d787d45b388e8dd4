"""One Python file that runs the whole debate."""

from __future__ import annotations

import inspect
import json
import sys
import textwrap
from collections.abc import Iterable
from typing import Any, ClassVar, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from ... import __version__
from ...errors import InputError
from ...programs import asking
from ...programs import base as programs_base
from ...programs.base import Strategy
from ...signatures.answers import Grid
from ..ensemble import Ensemble
from . import debate_runtime
from .base import EXPORTERS, Export, Exporter
from .bundling import Bundle, reachable_members
from .messages import role_data

_RUNTIME = debate_runtime.__name__
#: What of ours has a stand-in in exported files.
_STAND_INS = {
    (programs_base.__name__, "Strategy"): (_RUNTIME, "Strategy"),
    (asking.__name__, "Ask"): (_RUNTIME, "Ask"),
    (asking.__name__, "Reply"): (_RUNTIME, "Reply"),
    (asking.__name__, "Script"): (_RUNTIME, "Script"),
    (Strategy.__module__.rpartition(".programs")[0] + ".registry", "Registry"): (_RUNTIME, "Registry"),
    ("dspy", ""): (_RUNTIME, "dspy"),
}
#: What the runtime uses of a strategy.
_USED = ("script", "agents", "name", "Config")
_WIDTH = 110


@EXPORTERS.register("python")
class PythonFile(Exporter):
    """One file that depends on the `openai` package only and runs the debate against any OpenAI-compatible server.

    Its prompts are data at the top; below them stands the strategy's own code, copied from this package.
    """

    name: ClassVar[str] = "python"
    summary: ClassVar[str] = "one Python file that runs the whole debate with the openai package alone"
    file: ClassVar[str | None] = "debate.py"

    def files(self, export: Export) -> dict[str, str]:
        """See `Exporter.files`."""
        return {"debate.py": debate_file(export)}


def debate_file(export: Export) -> str:
    """Return the file's text.

    Raises:
        InputError: for a strategy or answer type that cannot be copied.
    """
    program = export.program
    members = program.members if isinstance(program, Ensemble) else []
    kinds = [type(program), *dict.fromkeys(type(member) for member in members)]
    bundle = Bundle(_STAND_INS)
    bundle.members = {kind: names for item in kinds for kind, names in reachable_members(item, Strategy, _USED).items()}
    types = _Types(bundle)
    outputs = {
        name: {field: types.expression(info.annotation) for field, info in predictor.signature.output_fields.items()}
        for name, predictor in program.named_predictors()
    }
    for kind in kinds:
        bundle.add(kind)
    for name in ("main", "answer_prompt"):
        bundle.need(_RUNTIME, name)
    description = f"{export.title}: {program.summary}."
    parts = [
        _header(export, description),
        "from __future__ import annotations",
        grouped_imports({*bundle.imports, "import sys"}),
        "# -- the prompts " + "-" * 100,
        _data("PROMPTS", {name: role_data(predictor) for name, predictor in program.named_predictors()}),
        "# -- what they run in, and the debate itself " + "-" * 72,
        *(source for source in (*types.sources, *bundle.sources)),
        "# -- this debate " + "-" * 100,
        _outputs(outputs),
        _debate(program, members),
        _call(description, export.model),
    ]
    return "\n\n\n".join(part.strip("\n") for part in parts) + "\n"


def _header(export: Export, description: str) -> str:
    wrapped = textwrap.fill(description, _WIDTH)
    return f'''#!/usr/bin/env python3
"""{wrapped}

Exported by townhall {__version__}. It needs Python 3.11 or later and the package `openai` (pip install openai).

    python debate.py --model {export.model} "your question"
    python debate.py --api-base http://127.0.0.1:8000/v1 --model NAME --file questions.jsonl --json

The server's key comes from the environment (OPENAI_API_KEY). `--help` tells the rest.
"""'''


def grouped_imports(statements: Iterable[str]) -> str:
    """Return import statements as people write them: one a module, the standard library first."""
    names: dict[str, list[str]] = {}
    plain = []
    for statement in statements:
        if statement.startswith("import "):
            plain.append(statement)
        else:
            module, _, name = statement.removeprefix("from ").partition(" import ")
            names.setdefault(module, []).append(name)
    lines = [*plain, *(f"from {module} import {', '.join(sorted(listed))}" for module, listed in names.items())]
    standard = [line for line in lines if line.split()[1].split(".")[0] in sys.stdlib_module_names]
    others = [line for line in lines if line not in standard]
    groups = [sorted(group, key=lambda line: (line.startswith("from"), line)) for group in (standard, others)]
    return "\n\n".join("\n".join(group) for group in groups if group)


def literal(value: Any, indent: int = 0) -> str:
    """Return JSON data as a Python literal; a text of several lines stands in as many."""
    inner, outer = " " * (indent + 4), " " * indent
    if isinstance(value, str):
        lines = value.splitlines(keepends=True)
        if len(lines) < 2:
            return json.dumps(value, ensure_ascii=False)
        parts = "\n".join(inner + json.dumps(line, ensure_ascii=False) for line in lines)
        return f"(\n{parts}\n{outer})"
    if isinstance(value, dict) and value:
        items = "\n".join(f"{inner}{json.dumps(key)}: {literal(item, indent + 4)}," for key, item in value.items())
        return f"{{\n{items}\n{outer}}}"
    if isinstance(value, list) and value:
        short = f"[{', '.join(map(repr, value))}]"
        if all(isinstance(item, int | float) for item in value) and len(short) < 80:
            return short
        items = "\n".join(f"{inner}{literal(item, indent + 4)}," for item in value)
        return f"[\n{items}\n{outer}]"
    return repr(value)


def _data(name: str, value: Any) -> str:
    return f"{name} = {literal(value)}"


def _outputs(outputs: dict[str, dict[str, str]]) -> str:
    lines = ["#: The output fields of each role.", "OUTPUTS = {"]
    for role, fields in outputs.items():
        inner = ", ".join(f"{name!r}: {expression}" for name, expression in fields.items())
        lines.append(f"    {role!r}: {{{inner}}},")
    return "\n".join([*lines, "}"])


def _debate(program: Strategy, members: list[Strategy]) -> str:
    settings = _data("SETTINGS", program.config.model_dump(mode="json"))
    lines = [settings, f"DEBATE = {type(program).__name__}(SETTINGS, PROMPTS, OUTPUTS)"]
    if members:
        lines.append("DEBATE.members = [")
        for number, member in enumerate(members):
            prefix = f"members[{number}]."
            own = f"for name, value in {{}}.items() if name.startswith({prefix!r})}}"
            prompts, outputs = (
                f"{{name.removeprefix({prefix!r}): value {own.replace('{}', table, 1)}"
                for table in ("PROMPTS", "OUTPUTS")
            )
            settings = literal(member.config.model_dump(mode="json"), 8)
            kind = type(member).__name__
            lines.append(f"    {kind}(\n        {settings},\n        {prompts},\n        {outputs},\n    ),")
        lines.append("]")
    return "\n".join(lines)


def _call(description: str, model: str) -> str:
    return f'''def call_api(prompt, options, context):
    """Answer for promptfoo, as a Python provider; its config may name api_base, model, judge_model, temperature."""
    return answer_prompt(DEBATE, prompt, options.get("config", {{}}))


if __name__ == "__main__":
    sys.exit(main(DEBATE, {description!r}, {model!r}))'''


class _Types:
    """Writes types as Python expressions; models become classes of the file.

    Attributes:
        sources: classes written anew, in order.
    """

    def __init__(self, bundle: Bundle) -> None:
        self.sources: list[str] = []
        self._bundle = bundle
        self._written: dict[str, type] = {}

    def expression(self, annotation: Any) -> str:
        """Return a type as an expression, and add what it needs to the file.

        Raises:
            InputError: for a type that cannot be written.
        """
        if annotation in (int, float, str, bool):
            return str(annotation.__name__)
        if annotation is type(None):
            return "None"
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Literal:
            self._bundle.imports.add("from typing import Literal")
            return f"Literal[{', '.join(map(repr, arguments))}]"
        if origin in (list, tuple, set, dict):
            return f"{origin.__name__}[{', '.join(self.expression(item) for item in arguments)}]"
        if origin is not None and type(None) in arguments:
            return " | ".join(self.expression(item) for item in arguments)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return self._model(annotation)
        raise InputError(f"python: the type {annotation} cannot be written into a file")

    def _model(self, model: type[BaseModel]) -> str:
        if model is Grid or (model.__module__.startswith(__package__.split(".")[0] + ".") and _has_source(model)):
            self._bundle.add(model)
            return model.__name__
        if self._written.setdefault(model.__name__, model) is not model:
            raise InputError(f"python: two answer types are named {model.__name__}")
        if callable(getattr(model, "canonical", None)) or model.__str__ is not BaseModel.__str__:
            raise InputError(f"python: the class {model.__name__} has code of its own, which cannot be copied")
        self._bundle.imports.add("from pydantic import BaseModel, Field")
        lines = [f"class {model.__name__}(BaseModel):", f"    {(model.__doc__ or model.__name__)!r}", ""]
        for name, info in model.model_fields.items():
            told = [f"description={info.description!r}"] if info.description else []
            if info.default is not PydanticUndefined:
                told.insert(0, repr(info.default))
            lines.append(f"    {name}: {self.expression(info.annotation)} = Field({', '.join(told)})")
        self.sources.append("\n".join(lines))
        return model.__name__


def _has_source(model: type) -> bool:
    try:
        inspect.getsource(model)
    except (OSError, TypeError):
        return False
    return True
