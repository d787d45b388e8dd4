"""What an exported debate runs on: calls to an OpenAI-compatible server instead of DSPy, and a command line.

The functions and classes here are copied into exported files; beside the standard library they may use Pydantic (which
the `openai` package brings with it) and what else of ours can be copied.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from ...errors import InputError, TownhallError
from ...programs.adapter import _encodable, _finite, coerce
from ...programs.asking import sample_id
from ...signatures.answers import canonical, display, plain
from ...signatures.transcript import Decision, Persona, Transcript, Turn, Usage
from ..similarity import nearest


class Prediction(SimpleNamespace):
    """A reply's output fields, or a debate's result."""


class dspy:
    """The names of DSPy that the code of debates mentions."""

    Prediction = Prediction
    settings = SimpleNamespace(lm=None)


@dataclass(frozen=True)
class Model:
    """A model by its name on the server."""

    model: str = ""
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Ask:
    """One call of a role; see `Strategy.ask`."""

    prompt: Mapping[str, Any]
    outputs: Mapping[str, Any]
    role: str
    inputs: dict[str, Any]
    round: int
    agent: int | None
    name: str
    lm: Model | None
    temperature: float | None
    sample: int
    seed: int
    check: Callable[[Any], str | None] | None
    answer_field: str | None
    repeat: int = 0


@dataclass
class Reply:
    """What came back for an ask; no prediction when the agent abstained."""

    prediction: Any
    turn: Turn
    last: Any = None
    answer: Any = None


#: A debate's flow: yields the asks of a step, is sent their replies, returns its result.
Script = Generator[Sequence[Ask], list[Reply], Any]


class Registry(dict[str, Any]):
    """Named things, filled by decorators."""

    def __init__(self, kind: str, package: str | None = None) -> None:
        super().__init__()
        self.kind = kind

    def register(self, name: str) -> Callable[[Any], Any]:
        """Return a decorator that registers its argument under a name."""

        def decorate(item: Any) -> Any:
            self[name] = item
            return item

        return decorate

    def get(self, name: str) -> Any:  # type: ignore[override]  # unknown names are an error, not None
        """Return what is registered under a name."""
        if name not in self:
            raise InputError(f"unknown {self.kind} '{name}'. Known: {', '.join(self.names())}")
        return self[name]

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self)


class Strategy:
    """Base of the debate.

    Args:
        settings: fields of its `Config`.
        roles: each role's prompt: chat messages with placeholders.
        outputs: each role's output fields and their types.
    """

    name = ""
    Config: Any = None

    def __init__(self, settings: Mapping[str, Any], roles: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        self.config = self.Config(**settings)
        self.roles = roles
        self.outputs = outputs
        self.members: list[Strategy] = []
        self.models: list[Model] = []
        self.judge: Model | None = None

    @property
    def agents(self) -> int:
        """How many agents take part."""
        return 1

    def script(self, question: str) -> Script:
        """Return the debate's flow."""
        raise NotImplementedError

    def use(self, models: Sequence[Model], judge: Model | None) -> None:
        """Set the agents' models, assigned in turn, and the judge's."""
        self.models, self.judge = list(models), judge
        for member in self.members:
            member.use(models, judge)

    def lm_of(self, agent: int) -> Model | None:
        """Return an agent's model."""
        return self.models[agent % len(self.models)] if self.models else Model()

    @property
    def judge_lm(self) -> Model | None:
        """The judge's model: the first agent's, unless another is set."""
        return self.judge or self.lm_of(0)

    def sample_of(self, agent: int | None) -> int:
        """Return the number of an agent's sample: how many agents before it have its model."""
        if agent is None:
            return 0
        return sum(self.lm_of(other) == self.lm_of(agent) for other in range(agent))

    def ask(
        self,
        role: str,
        inputs: dict[str, Any],
        *,
        round: int,
        agent: int | None = None,
        name: str = "",
        lm: Model | None = None,
        check: Callable[[Any], str | None] | None = None,
        answer_field: str | None = "answer",
    ) -> Ask:
        """Return one call of a role."""
        return Ask(
            prompt=self.roles[role],
            outputs=self.outputs[role],
            role=role,
            inputs=inputs,
            round=round,
            agent=agent,
            name=name,
            lm=lm or self.lm_of(agent or 0),
            temperature=self.config.temperatures.get(role, self.config.temperature),
            sample=self.sample_of(agent),
            seed=self.config.seed,
            check=check,
            answer_field=answer_field,
        )

    def conclude(
        self, question: str, turns: Sequence[Turn], answer: Any, decision: Decision, personas: Sequence[Persona] = ()
    ) -> Prediction:
        """Return the debate's result."""
        agents = max((turn.agent + 1 for turn in turns if turn.agent is not None), default=self.agents)
        models = [
            next((turn.model for turn in turns if turn.agent == agent and turn.model), None) for agent in range(agents)
        ]
        transcript = Transcript(
            strategy=self.name,
            question=question,
            personas=list(personas),
            models=models,
            turns=list(turns),
            decision=decision,
        )
        return Prediction(answer=answer, decision=decision, transcript=transcript)


@dataclass
class Once:
    """A reply that is asked for once."""

    lock: Any = field(default_factory=threading.Lock)
    text: str | None = None


class Speaker:
    """Asks a server for the agents.

    Args:
        client: an `openai.OpenAI`.
        temperature: of roles that have none of their own; None for the server's.
        max_tokens: of a reply; None for the server's.
        seeds: send a seed with each request, another one for each sample.
        response_format: "none", "json_object" or "json_schema".
        concurrency: most requests at the same time.
    """

    #: A second attempt at temperature 0 would return the same unreadable reply; it is made a little warmer.
    RETRY_TEMPERATURE = 0.3

    def __init__(
        self,
        client: Any,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        seeds: bool = False,
        response_format: str = "none",
        concurrency: int = 8,
    ) -> None:
        self.client = client
        self.temperature = temperature
        self.max_tokens = max_tokens
        self.seeds = seeds
        self.response_format = response_format
        self.concurrency = concurrency
        self._certain: dict[str, Once] = {}
        self._lock = threading.Lock()

    def hold(self, debate: Strategy, question: str) -> Prediction:
        """Hold a debate on a question; returns its `answer`, `decision` and `transcript`."""
        script = debate.script(question)
        seen: dict[str, int] = {}
        try:
            asks = next(script)
            while True:
                asks = script.send(self._all(self._numbered(asks, seen)))
        except StopIteration as stop:
            result: Prediction = stop.value
            return result

    def _numbered(self, asks: Sequence[Ask], seen: dict[str, int]) -> list[Ask]:
        """Return the asks with how often each agent was asked the very same before."""
        numbered = []
        for ask in asks:
            # The prompt tells apart the members of an ensemble.
            key = json.dumps([id(ask.prompt), ask.agent, ask.inputs], sort_keys=True, default=str)
            numbered.append(replace(ask, repeat=seen.get(key, 0)))
            seen[key] = seen.get(key, 0) + 1
        return numbered

    def _all(self, asks: Sequence[Ask]) -> list[Reply]:
        """Return the replies to the asks of a step, in their order; they are made at the same time."""
        with ThreadPoolExecutor(max_workers=max(1, min(self.concurrency, len(asks)))) as pool:
            return list(pool.map(self._one, asks))

    def _one(self, ask: Ask) -> Reply:
        """Ask; once more when the reply cannot be read or is refused by the ask's check; then the agent abstains."""
        messages = fill(ask.prompt, ask.inputs)
        usage, problem, last = Usage(), None, None
        for attempt in range(2):
            text, spent = self._complete(ask, messages, attempt)
            usage = usage + spent
            try:
                prediction = Prediction(**read_reply(text, ask.outputs))
            except ValueError as error:
                problem = f"unreadable reply ({error}): {text[:200]!r}" if text.strip() else "empty reply"
                continue
            problem = ask.check(prediction) if ask.check else None
            if problem is None:
                return self._reply(ask, prediction, usage, None, None)
            last = prediction
        return self._reply(ask, None, usage, problem, last)

    def _reply(self, ask: Ask, prediction: Any, usage: Usage, problem: str | None, last: Any) -> Reply:
        said = {} if prediction is None else {name: plain(value) for name, value in vars(prediction).items()}
        typed = getattr(prediction, ask.answer_field, None) if ask.answer_field else None
        answer = said.pop(ask.answer_field, None) if ask.answer_field else None
        turn = Turn(
            round=ask.round,
            agent=ask.agent,
            name=ask.name,
            role=ask.role,
            model=ask.lm.model if ask.lm else None,
            said=said,
            answer=answer,
            bucket=canonical(typed) if typed is not None else None,
            abstained=prediction is None,
            problem=problem,
            usage=usage,
        )
        return Reply(prediction, turn, last, typed)

    def _complete(self, ask: Ask, messages: list[dict[str, str]], attempt: int) -> tuple[str, Usage]:
        """Return the text of one reply, and what it took."""
        request: dict[str, Any] = {"model": ask.lm.model if ask.lm else "", "messages": messages}
        temperature = ask.temperature if ask.temperature is not None else self.temperature
        if temperature == 0 and attempt:
            temperature = self.RETRY_TEMPERATURE
        if temperature is not None:
            request["temperature"] = temperature
        if self.max_tokens is not None:
            request["max_tokens"] = self.max_tokens
        if self.seeds and temperature != 0:
            request["seed"] = sample_id(None, ask.seed, ask.sample, ask.repeat, attempt)
        if self.response_format == "json_object":
            request["response_format"] = {"type": "json_object"}
        elif self.response_format == "json_schema":
            schema = {"name": ask.role, "schema": ask.prompt["schema"], "strict": True}
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        if temperature != 0:
            return self._send(request)
        # At temperature 0 the same request has one reply, whoever asks.
        with self._lock:
            once = self._certain.setdefault(json.dumps([request["model"], messages]), Once())
        with once.lock:
            if once.text is None:
                once.text, usage = self._send(request)
                return once.text, usage
            return once.text, Usage(cached=1)

    def _send(self, request: dict[str, Any]) -> tuple[str, Usage]:
        response = self.client.chat.completions.create(**request)
        text = response.choices[0].message.content if response.choices else None
        used = response.usage
        usage = Usage(
            calls=1,
            prompt_tokens=getattr(used, "prompt_tokens", None) or 0,
            completion_tokens=getattr(used, "completion_tokens", None) or 0,
            cost=None,
        )
        return text or "", usage


def fill(prompt: Mapping[str, Any], inputs: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return a role's messages with its inputs filled in.

    `{{name}}` is the value of an input, `{{{{` a literal `{{`; everything else is literal.
    """
    messages = list(prompt["messages"])
    if pool := prompt.get("pool"):
        question = str(inputs.get("question", ""))
        others = [item for item in pool if item["question"] != question]
        chosen = nearest(question, [item["question"] for item in others], prompt["nearest"])
        messages[1:1] = [message for index in chosen for message in others[index]["messages"]]
    names = "|".join(re.escape(name) for name in sorted(inputs, key=len, reverse=True))
    pattern = re.compile(r"\{\{\{\{|\{\{(" + names + r")\}\}")

    def value(match: re.Match[str]) -> str:
        if not match.group(1):
            return "{{"
        given = inputs[match.group(1)]
        return json.dumps(given, ensure_ascii=False) if isinstance(given, dict | list) else str(given)

    return [{"role": message["role"], "content": pattern.sub(value, message["content"])} for message in messages]


def read_reply(text: str, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reply's output fields, typed.

    Raises:
        ValueError: when there is no JSON object in the reply, or a field is missing, null or not of its type.
    """
    found = find_object(text, set(outputs))
    if found is None:
        raise ValueError("no JSON object")
    fields = {}
    for name, annotation in outputs.items():
        if found.get(name) is None:
            raise ValueError(f"the field {name} is missing")
        try:
            fields[name] = _finite(typed(coerce(_encodable(found[name]), annotation), annotation))
        except ValidationError as error:
            raise ValueError(f"the field {name}: {error.errors()[0]['msg']}") from None
    return fields


def typed(value: Any, annotation: Any) -> Any:
    """Return a value as its field's type; a JSON text of it will do."""
    if annotation is str:
        return str(value)
    if isinstance(value, str) and not (get_args(annotation) and value in get_args(annotation)):
        for reading in (json.loads, str):
            try:
                return TypeAdapter(annotation).validate_python(reading(value))
            except (ValueError, ValidationError):
                continue
    return TypeAdapter(annotation).validate_python(value)


def find_object(text: str, wanted: set[str]) -> dict[str, Any] | None:
    """Return the last JSON object of a reply that has all wanted fields, else the last that has one of them."""
    decoder = json.JSONDecoder()
    objects: list[dict[str, Any]] = []
    start = text.find("{")
    while start >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            if isinstance(value, dict):
                objects.append(value)
        start = text.find("{", end)
    complete = [item for item in objects if wanted <= set(item)]
    partial = [item for item in objects if wanted & set(item)]
    usable = complete or partial
    return usable[-1] if usable else None


def as_data(debate: Strategy, question: str, result: Prediction) -> dict[str, Any]:
    """Return a debate's result as JSON data."""
    usage = result.transcript.usage()
    return {
        "question": question,
        "answer": plain(result.answer),
        "bucket": canonical(result.answer),
        "decision": result.decision.model_dump(mode="json"),
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
    }


def said_in(result: Prediction) -> str:
    """Return all that was said, for people."""
    lines = []
    for turn in result.transcript.turns:
        lines.append(f"== round {turn.round}, {turn.name or turn.role} ({turn.role})")
        if turn.abstained:
            lines.append(f"(abstained: {turn.problem})")
        lines += [f"{name}: {display(value)}" for name, value in turn.said.items()]
        if turn.answer is not None:
            lines.append(f"answer: {display(turn.answer)}")
        lines.append("")
    votes = ", ".join(f"{display(item.answer)}: {item.votes:g}" for item in result.decision.candidates)
    lines.append(f"== decision by {result.decision.rule}: {display(result.answer)} ({votes})")
    if result.decision.tie:
        lines.append(f"A tie, broken by: {result.decision.tie_break}")
    return "\n".join(lines)


def connect(api_base: str | None, key_variable: str, timeout: float) -> Any:
    """Return a client of an OpenAI-compatible server; the key comes from the environment."""
    try:
        import openai
    except ImportError:
        raise InputError("the package openai is not installed: pip install openai") from None
    key = os.environ.get(key_variable)
    if not key and api_base is None:
        raise InputError(f"set {key_variable}, or name a server with --api-base")
    return openai.OpenAI(base_url=api_base, api_key=key or "none", timeout=timeout)


def questions_of(path: Path) -> list[str]:
    """Return the questions of a file: JSON lines with the field `question`, else the whole text as one question."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
    if path.suffix.lower() not in (".jsonl", ".ndjson"):
        return [text.strip()]
    questions = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                questions.append(str(json.loads(line)["question"]))
            except (ValueError, KeyError, TypeError):
                raise InputError(f"{path}, line {number}: must be a JSON object with the field question") from None
    return questions


def parser_of(debate: Strategy, description: str, model: str | None) -> argparse.ArgumentParser:
    """Return the command line's parser."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", nargs="?", help="the question; or use --file, or standard input")
    parser.add_argument(
        "--file", type=Path, help="a text file with one question, or JSON lines with the field question"
    )
    parser.add_argument("--api-base", metavar="URL", help="an OpenAI-compatible server (default: OpenAI's own)")
    parser.add_argument(
        "--model",
        action="append",
        metavar="NAME",
        help=f"a model of the server; repeat it for agents with different models, in turn (default: {model or 'none'})",
    )
    parser.add_argument("--judge-model", metavar="NAME", help="the judge's model (default: the first --model)")
    parser.add_argument(
        "--key-variable",
        metavar="NAME",
        default="OPENAI_API_KEY",
        help="the environment variable with the server's key (default: OPENAI_API_KEY)",
    )
    parser.add_argument(
        "--temperature", type=float, help="of roles that have none of their own (default: the server's)"
    )
    parser.add_argument("--max-tokens", type=int, help="most tokens of a reply (default: the server's)")
    parser.add_argument(
        "--seeds",
        action="store_true",
        help="send a seed with each request, another one for each sample; --set seed=N draws others",
    )
    parser.add_argument(
        "--response-format",
        choices=["none", "json_object", "json_schema"],
        default="none",
        help="asks the server for JSON, or for a role's very schema (default: none)",
    )
    parser.add_argument("--concurrency", type=int, default=8, help="most requests at the same time (default: 8)")
    parser.add_argument("--timeout", type=float, default=120, help="seconds a reply may take (default: 120)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"change a setting of the debate: {', '.join(sorted(type(debate.config).model_fields))}",
    )
    parser.add_argument("--transcript", action="store_true", help="print all that was said, before the answer")
    parser.add_argument("--json", action="store_true", help="print a JSON object a question instead of the answer")
    return parser


def changed(debate: Strategy, changes: Sequence[str]) -> Strategy:
    """Return the debate with other settings, `NAME=VALUE` each."""
    values = debate.config.model_dump()
    for change in changes:
        name, sign, text = change.partition("=")
        if not sign or name not in values:
            raise InputError(f"--set {change}: not NAME=VALUE with one of {', '.join(sorted(values))}")
        try:
            values[name] = json.loads(text)
        except ValueError:
            values[name] = text
    try:
        other = type(debate)(values, debate.roles, debate.outputs)
    except ValidationError as error:
        problem = error.errors()[0]
        raise InputError(f"--set {'.'.join(map(str, problem['loc']))}: {problem['msg']}") from None
    other.members = debate.members
    return other


def answer_prompt(debate: Strategy, question: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Hold a debate for promptfoo, with the provider's config: api_base, model, judge_model, temperature, ..."""
    try:
        names = config.get("model") or ""
        models = [Model(name) for name in (names if isinstance(names, list) else [names])]
        judge = config.get("judge_model")
        debate.use(models, Model(judge) if judge else None)
        client = connect(config.get("api_base"), config.get("key_variable", "OPENAI_API_KEY"), 120)
        speaker = Speaker(client, temperature=config.get("temperature"), max_tokens=config.get("max_tokens"))
        data = as_data(debate, question, speaker.hold(debate, question))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    usage = {"prompt": data["prompt_tokens"], "completion": data["completion_tokens"]}
    return {"output": json.dumps(data, ensure_ascii=False), "tokenUsage": {**usage, "total": sum(usage.values())}}


def main(debate: Strategy, description: str, model: str | None, arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = parser_of(debate, description, model).parse_args(arguments)
    try:
        names = options.model or ([model] if model else [])
        if not names:
            raise InputError("name a model with --model")
        if options.file is not None:
            questions = questions_of(options.file)
        else:
            questions = [options.question if options.question is not None else sys.stdin.read().strip()]
        if not any(questions):
            raise InputError("there is no question")
        debate = changed(debate, options.set)
        debate.use([Model(name) for name in names], Model(options.judge_model) if options.judge_model else None)
        speaker = Speaker(
            connect(options.api_base, options.key_variable, options.timeout),
            temperature=options.temperature,
            max_tokens=options.max_tokens,
            seeds=options.seeds,
            response_format=options.response_format,
            concurrency=options.concurrency,
        )
        for question in questions:
            result = speaker.hold(debate, question)
            if options.transcript:
                print(said_in(result), file=sys.stderr if options.json else sys.stdout, flush=True)
            print(
                json.dumps(as_data(debate, question, result), ensure_ascii=False)
                if options.json
                else display(result.answer),
                flush=True,
            )
    except TownhallError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever reads (head) has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # what the client raises: one line for people
        print(f"error: {options.api_base or 'the OpenAI API'}: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0
