"""A promptfoo configuration with tests."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar, Literal, get_origin

import yaml
from pydantic import TypeAdapter, ValidationError

from ...signatures.answers import canonical, plain
from ..nearest_demos import NearestDemos
from ..plain_files import to_json
from ..templates import marked_messages, rewritten
from .base import EXPORTERS, Export, Exporter, Question
from .python_file import debate_file

#: Free texts longer than this are not expected to come out word for word.
_EXACT = 40


@EXPORTERS.register("promptfoo")
class Promptfoo(Exporter):
    """`promptfooconfig.yaml` with assertions on the answers; `promptfoo eval` in its folder runs it.

    A program of one call is a prompt file. A debate is more than a prompt: it is a Python provider, `debate.py`, which
    promptfoo calls for each test.
    """

    name: ClassVar[str] = "promptfoo"
    summary: ClassVar[str] = "a promptfoo configuration with assertions; debates come as a Python provider"

    def files(self, export: Export) -> dict[str, str]:
        """See `Exporter.files`."""
        roles = export.roles
        alone = len(roles) == 1 and export.program.max_calls() == 1 and _is_scalar(export.program.answer_type)
        predictor = next(iter(roles.values()))
        if alone and not isinstance(predictor, NearestDemos):
            return self._prompt(export, predictor)
        return self._provider(export)

    def _prompt(self, export: Export, predictor: Any) -> dict[str, str]:
        messages = rewritten(marked_messages(predictor), nunjucks_literal, lambda name: f"{{{{{name}}}}}")
        settings = export.info.settings
        # Inputs beside the question follow the settings: the single-prompt town hall reads its size.
        given = {"participants": settings.get("personas"), "rounds": settings.get("rounds")}
        others = {name: given[name] for name in predictor.signature.input_fields if given.get(name) is not None}
        config = {
            "description": export.title,
            "prompts": ["file://prompt.json"],
            "providers": [
                {"id": f"openai:chat:{export.model}", "config": {"temperature": settings.get("temperature") or 0}}
            ],
            **({"defaultTest": {"vars": others}} if others else {}),
            "tests": [
                {"vars": {"question": escaped(item.question)}, "assert": [_on_reply(item)]} for item in export.questions
            ],
        }
        return {"promptfooconfig.yaml": _yaml(config), "prompt.json": to_json(messages)}

    def _provider(self, export: Export) -> dict[str, str]:
        provider = {"id": "file://debate.py", "label": export.title, "config": {"model": export.model}}
        config = {
            "description": export.title,
            "prompts": ["{{question}}"],
            "providers": [provider],
            "tests": [
                {
                    "vars": {"question": escaped(item.question)},
                    "assert": [_on_debate(item, export.program.answer_type)],
                }
                for item in export.questions
            ],
        }
        return {"promptfooconfig.yaml": _yaml(config), "debate.py": debate_file(export)}


def nunjucks_literal(text: str) -> str:
    """Return literal text as promptfoo's templates have it: no brace of it may begin a tag."""
    return re.sub(r"\{(?=[{%#]|$)", '{{ "{" }}', text)


def escaped(text: str) -> str:
    """Return a variable's value; promptfoo renders variables as templates too."""
    return nunjucks_literal(text)


def _is_scalar(answer: Any) -> bool:
    return answer in (int, float, str, bool) or get_origin(answer) is Literal


def _on_reply(item: Question) -> dict[str, Any]:
    """Return an assertion on the JSON reply of a single call."""
    answer = "JSON.parse(output.slice(output.indexOf('{'), output.lastIndexOf('}') + 1)).answer"
    if isinstance(item.answer, bool) or not isinstance(item.answer, int | float | str):
        return {"type": "javascript", "value": f"{answer} === {json.dumps(item.answer)}"}
    if isinstance(item.answer, int | float):
        return {"type": "javascript", "value": f"Number({answer}) === {json.dumps(item.answer)}"}
    if len(item.answer) > _EXACT:
        return {"type": "javascript", "value": f"String({answer}).trim().length > 0"}
    wanted = json.dumps(item.answer.strip().lower())
    return {"type": "javascript", "value": f"String({answer}).trim().toLowerCase() === {wanted}"}


def _on_debate(item: Question, answer_type: Any) -> dict[str, Any]:
    """Return an assertion on a debate's result, as `debate.py` returns it: by the bucket that votes are counted in."""
    if answer_type is str and (not isinstance(item.answer, str) or len(item.answer) > _EXACT):
        return {"type": "javascript", "value": "JSON.parse(output).answer !== null"}
    try:
        typed = TypeAdapter(answer_type).validate_python(item.answer)
    except ValidationError:
        typed = plain(item.answer)
    return {"type": "javascript", "value": f"JSON.parse(output).bucket === {json.dumps(canonical(typed))}"}


def _yaml(config: dict[str, Any]) -> str:
    head = "# yaml-language-server: $schema=https://promptfoo.dev/config-schema.json\n"
    return head + yaml.safe_dump(config, allow_unicode=True, sort_keys=False, width=110)
