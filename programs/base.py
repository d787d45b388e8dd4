"""What a strategy is: a DSPy module built from a small config, with named role predictors and a typed transcript."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import dspy
from dspy.primitives.module import set_attribute_by_name
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import InputError
from ..registry import Registry, nearest
from ..signatures.answers import display
from ..signatures.demonstrations import Demonstration
from ..signatures.transcript import Decision, Persona, Transcript, Turn
from .asking import Ask, Reply, Script, arun, run

#: All strategies by name. A new one is one module in this package with `@STRATEGIES.register("name")` on its class.
STRATEGIES: Registry[type[Strategy]] = Registry("strategy", __package__)


class StrategyConfig(BaseModel):
    """What every strategy can be told. The bounds of the fields are the search space of `tune`.

    Attributes:
        seed: another seed gives other samples of the same debate.
        temperature: of all roles; None leaves the model's own.
        temperatures: of single roles by name; they override `temperature`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = Field(default=0, ge=0, json_schema_extra={"search": False})
    temperature: float | None = Field(default=None, ge=0, le=2)
    temperatures: dict[str, float] = Field(default_factory=dict, json_schema_extra={"search": False})


def build_config(kind: type[StrategyConfig], values: dict[str, Any], strategy: str) -> Any:
    """Build a config from flags or a file.

    Raises:
        InputError: for an unknown field or a value out of bounds; the text says what would be right.
    """
    unknown = [name for name in values if name not in kind.model_fields]
    if unknown:
        known = sorted(kind.model_fields)
        raise InputError(
            f"strategy '{strategy}' has no setting '{unknown[0]}'.{nearest(unknown[0], known)} Its settings: "
            f"{', '.join(known)}"
        )
    try:
        return kind(**values)
    except ValidationError as error:
        problem = error.errors()[0]
        name = ".".join(str(part) for part in problem["loc"]) or "config"
        given = f" is {problem['input']!r}" if problem["loc"] else ""
        message = problem["msg"].removeprefix("Value error, ")
        raise InputError(f"{name}{given}: {message[0].lower()}{message[1:]}") from None


class _Panel:
    """The agents' models. Shared, never copied: models hold connections and caches."""

    def __init__(self, lms: Sequence[dspy.LM], judge: dspy.LM | None) -> None:
        self.lms = tuple(lms)
        self.judge = judge

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class Strategy(dspy.Module):
    """Base of all strategies.

    A strategy is called as `program(question=..., **context)` and returns `dspy.Prediction(answer, decision,
    transcript)`; `answer` has the task's answer type or is None (a blank). Context fields are shown below the question.

    Args:
        config: the strategy's config; its fields may be given as keyword arguments instead.
        answer: the type of the answer: int, float, str, a Literal, `signatures.answers.Grid` or a Pydantic model.
        lms: the agents' models, assigned in turn; none for the configured model.
        judge_lm: the judge's model; None for the first agent's.
        **settings: fields of the config.

    Raises:
        InputError: for a setting that is unknown or out of bounds.
    """

    name: ClassVar[str]
    #: One line for `townhall list strategies`.
    summary: ClassVar[str]
    Config: ClassVar[type[StrategyConfig]] = StrategyConfig

    def __init__(
        self,
        config: StrategyConfig | None = None,
        *,
        answer: Any = str,
        lms: Sequence[dspy.LM] | None = None,
        judge_lm: dspy.LM | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        values = {**(config.model_dump() if config is not None else {}), **settings}
        self.config: Any = build_config(self.Config, values, self.name)
        self.answer_type = answer
        self._panel = _Panel(lms or (), judge_lm)
        self._prepare()
        self._check_temperatures()

    # -- what a strategy must say --------------------------------------------------------------------------------

    @abstractmethod
    def _prepare(self) -> None:
        """Create the role predictors, one named attribute a role, and check what depends on the models."""

    @abstractmethod
    def script(self, question: str) -> Script[dspy.Prediction]:
        """Return the debate's flow; see `asking`."""

    @abstractmethod
    def max_calls(self) -> int:
        """Return the most model calls that one question takes when every reply is readable."""

    def check_models(self) -> None:
        """Check that the models suit the settings; called before anything is spent.

        Raises:
            InputError: when they do not.
        """
        return  # most strategies take any

    def demonstrate(self, demonstrations: Sequence[Demonstration]) -> Self:
        """Give the roles worked demonstrations, made from a task's worked problems. Returns the strategy itself."""
        return self

    @property
    def agents(self) -> int:
        """How many agents take part."""
        return 1

    def _check_temperatures(self) -> None:
        roles = sorted(name for name, _ in self.named_predictors())
        for role, temperature in self.config.temperatures.items():
            if role not in roles:
                raise InputError(
                    f"temperatures: strategy '{self.name}' has no role '{role}'.{nearest(role, roles)} Its roles: "
                    f"{', '.join(roles)}"
                )
            if not 0 <= temperature <= 2:
                raise InputError(f"temperatures.{role} is {temperature}; it must be from 0 to 2")

    # -- what every strategy can do ------------------------------------------------------------------------------

    def forward(self, question: str, **context: Any) -> dspy.Prediction:
        """Debate one question; see the class."""
        return run(self.script(with_context(question, context)))

    async def aforward(self, question: str, **context: Any) -> dspy.Prediction:
        """Debate one question with asyncio; see the class."""
        return await arun(self.script(with_context(question, context)))

    def reconfigured(self, **settings: Any) -> Self:
        """Return a strategy with other settings and this one's prompts, demonstrations and models.

        Roles are tuned once and serve any number of agents and rounds.

        Raises:
            InputError: for a setting that is unknown or out of bounds.
        """
        values = {**self.config.model_dump(), **settings}
        other = type(self)(
            build_config(self.Config, values, self.name),
            answer=self.answer_type,
            lms=self._panel.lms,
            judge_lm=self._panel.judge,
        )
        tuned = dict(self.named_predictors())
        untuned = dict(type(self)(self.config, answer=self.answer_type).named_predictors())
        for name, predictor in other.named_predictors():
            if name in tuned:
                if type(tuned[name]) is not type(predictor):
                    # A role that chooses among its demonstrations goes on doing so.
                    signature, predictor = predictor.signature, copy.copy(tuned[name])
                    predictor.signature = signature
                    set_attribute_by_name(other, name, predictor)
                predictor.signature = retuned(predictor.signature, tuned[name].signature, untuned[name].signature)
                predictor.demos = list(tuned[name].demos)
                predictor.lm = tuned[name].lm
                predictor.config = dict(tuned[name].config)
        return other

    def with_models(self, lms: Sequence[dspy.LM] | None = None, judge_lm: dspy.LM | None = None) -> Self:
        """Set the agents' models. Returns the strategy itself."""
        self._panel = _Panel(lms or (), judge_lm)
        return self

    @property
    def lms(self) -> tuple[dspy.LM, ...]:
        """The agents' models as given, before they are assigned in turn; empty for the configured model."""
        return self._panel.lms

    def lm_of(self, agent: int) -> dspy.LM | None:
        """Return an agent's model: the given ones in turn, None for the configured one."""
        return self._panel.lms[agent % len(self._panel.lms)] if self._panel.lms else None

    def sample_of(self, agent: int | None) -> int:
        """Return the number of an agent's sample: how many agents before it have a model of the same name.

        Agents of one model thus get different samples, and an agent whose model nobody before it has says the same
        whoever its partners are: debates that share a model share its first answers through the cache.
        """
        if agent is None:
            return 0
        name = getattr(self.lm_of(agent), "model", None)
        return sum(getattr(self.lm_of(other), "model", None) == name for other in range(agent))

    @property
    def judge_lm(self) -> dspy.LM | None:
        """The judge's model; None for the configured one."""
        return self._panel.judge or (self._panel.lms[0] if self._panel.lms else None)

    def role(self, signature: type[dspy.Signature], answer_field: str | None = "answer") -> dspy.Predict:
        """Return a predictor of a role, its answer field being of this strategy's answer type."""
        if answer_field is not None and self.answer_type is not str:
            signature = signature.with_updated_fields(answer_field, type_=self.answer_type)
        return dspy.Predict(signature)

    def ask(
        self,
        role: str,
        inputs: dict[str, Any],
        *,
        round: int,
        agent: int | None = None,
        name: str = "",
        lm: dspy.LM | None = None,
        check: Callable[[dspy.Prediction], str | None] | None = None,
        answer_field: str | None = "answer",
        predictor: dspy.Predict | None = None,
    ) -> Ask:
        """Return one call of the role whose predictor is the attribute `role`."""
        return Ask(
            predictor=predictor if predictor is not None else getattr(self, role),
            role=role,
            inputs=inputs,
            round=round,
            agent=agent,
            name=name,
            lm=lm if lm is not None else (self.lm_of(agent) if agent is not None else self.lm_of(0)),
            temperature=self.config.temperatures.get(role, self.config.temperature),
            sample=self.sample_of(agent),
            seed=self.config.seed,
            check=check,
            answer_field=answer_field,
        )

    def conclude(
        self, question: str, turns: Sequence[Turn], answer: Any, decision: Decision, personas: Sequence[Persona] = ()
    ) -> dspy.Prediction:
        """Return the strategy's result from what was said and decided."""
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
        return dspy.Prediction(answer=answer, decision=decision, transcript=transcript)


def with_context(question: str, context: dict[str, Any]) -> str:
    """Return the question with each context field in a paragraph below it."""
    parts = [question]
    for name, value in context.items():
        if value is not None:
            parts.append(f"{name.replace('_', ' ').capitalize()}: {display(value)}")
    return "\n\n".join(parts)


def retuned(
    signature: type[dspy.Signature], tuned: type[dspy.Signature], untuned: type[dspy.Signature]
) -> type[dspy.Signature]:
    """Return `signature` with what was tuned: instructions and field descriptions of `tuned` that `untuned` lacks.

    What nobody tuned follows the settings, which may add or drop fields or give other instructions.
    """
    if tuned.instructions != untuned.instructions:
        signature = signature.with_instructions(tuned.instructions)
    for name in signature.fields:
        if name not in tuned.fields or name not in untuned.fields:
            continue
        for part in ("prefix", "desc"):
            written = tuned.fields[name].json_schema_extra[part]
            if written != untuned.fields[name].json_schema_extra[part]:
                signature = signature.with_updated_fields(name, **{part: written})
    return signature


def answers_of(replies: Sequence[Reply], before: Sequence[Any] | None = None) -> list[Any]:
    """Return the agents' typed answers; an agent that abstained in a later round keeps its answer of before."""
    return [
        reply.answer if reply.answer is not None else (before[index] if before is not None else None)
        for index, reply in enumerate(replies)
    ]
