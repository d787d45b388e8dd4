"""A society of agents: they answer independently, read each other's answers, revise over rounds, and the majority wins.

Multiagent Debate, section 2 (3 agents, 2 rounds, zero-shot chain of thought in its main setting).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import dspy
from pydantic import Field, field_validator, model_validator

from ..signatures.demonstrations import Demonstration
from ..signatures.society import ReviseBriefly, ReviseStubbornly, SummariseAnswers
from ..signatures.transcript import Persona, Turn
from .answering import (
    AnsweringConfig,
    agreed,
    first_answer,
    first_answer_demos,
    introduce,
    state,
    statements_of,
    with_reasoning,
)
from .asking import Script
from .base import STRATEGIES, Strategy, StrategyConfig, answers_of
from .decisions import decide, known_rule
from .town_hall import distinct

Topology = Literal["all", "ring", "star"]


class SocietyConfig(AnsweringConfig):
    """Settings of `society`; see also `AnsweringConfig`.

    Attributes:
        agents: how many agents answer; one agent is the strategy `single`.
        rounds: how many rounds, the independent answers included: 1 is a majority vote, 2 one round of revision.
        prompt_style: "short" asks to take the others' opinions into account; "long" to treat them as advice and to
            check the own reasoning first, which makes agents more stubborn (the paper's two prompts).
        summarise: one call a round sums up all answers, and every agent reads that summary instead of the answers.
        persona_list: the agents' personas, in turn when there are fewer than agents; none for agents without persona.
        show_names: whether agents read each other's names and expertise, or only "Another agent".
        topology: whose answers an agent reads: "all"; its two neighbours in a "ring"; in a "star" the first agent
            reads all and the others read only the first.
        history: whether agents read the answers of the "last" round, or of "all" rounds so far, as in the paper.
        decision: the rule applied to the last answers.
        stop_when_unanimous: end the rounds as soon as all agree.
    """

    agents: int = Field(default=3, ge=2, le=9)
    rounds: int = Field(default=2, ge=1, le=6)
    prompt_style: Literal["short", "long"] = "long"
    summarise: bool = False
    persona_list: list[Persona] = Field(default_factory=list, json_schema_extra={"search": False})
    show_names: bool = False
    topology: Topology = "all"
    history: Literal["last", "all"] = "last"
    decision: str = Field(default="majority", json_schema_extra={"registry": "decisions"})
    stop_when_unanimous: bool = False

    _check_decision = field_validator("decision")(known_rule)

    @field_validator("agents", mode="before")
    @classmethod
    def _not_alone(cls, value: Any) -> Any:
        if str(value) == "1":
            raise ValueError("one agent has nobody to read; use strategy 'single' or 'self-reflection', or 2 to 9")
        return value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.summarise and self.topology != "all":
            raise ValueError(f"a summary is of all answers; it does not go with topology '{self.topology}'")
        return self


@STRATEGIES.register("society")
class Society(Strategy):
    """Agents answer, read the others and revise; the majority of the last answers wins. See `Strategy` for arguments.

    Calls for N agents and R rounds: N*R, and R - 1 more with `summarise`. Answers read in a round: N*(N-1) by "all",
    2*N in a "ring" (N > 2), 2*(N-1) in a "star"; with `summarise` N by the summariser and one summary by each agent, so
    that the cost of a round grows with N instead of N squared. An agent that abstains in a round stands by what it said
    before; agents that never answered are not read. Where a summary cannot be read, agents read the answers in full.
    """

    name: ClassVar[str] = "society"
    summary: ClassVar[str] = "agents answer, read each other's answers and revise over rounds; the majority wins"
    Config: ClassVar[type[StrategyConfig]] = SocietyConfig

    def _prepare(self) -> None:
        config = self.config
        revise = ReviseBriefly if config.prompt_style == "short" else ReviseStubbornly
        self.solve = self.role(self._with_persona(first_answer(config.cot)))
        self.revise = self.role(self._with_persona(with_reasoning(revise, config.cot)))
        self.summarise = self.role(SummariseAnswers, answer_field=None)

    def _with_persona(self, signature: type[dspy.Signature]) -> type[dspy.Signature]:
        """Return the signature with a persona to read; one without, where the agents have none."""
        if not self.config.persona_list:
            return signature
        return signature.append("persona", dspy.InputField(desc="who you are"), type_=str)

    @property
    def agents(self) -> int:
        """How many agents answer."""
        return self.config.agents

    def max_calls(self) -> int:
        """See the class."""
        config = self.config
        return config.agents * config.rounds + (config.rounds - 1 if config.summarise else 0)

    # -- the debate ----------------------------------------------------------------------------------------------

    def script(self, question: str) -> Script[dspy.Prediction]:
        """Answer, read and revise; see `Strategy.script`."""
        config = self.config
        personas = self._personas()
        names = [persona.name for persona in personas]
        who = [{"persona": introduce(persona, persona.name)} if config.persona_list else {} for persona in personas]
        replies = yield [
            self.ask("solve", {"question": question, **who[agent]}, round=1, agent=agent, name=names[agent])
            for agent in range(config.agents)
        ]
        turns = [reply.turn for reply in replies]
        answers = answers_of(replies)
        rounds = [statements_of(replies, [""] * config.agents)]
        summaries: list[str | None] = []
        for number in range(2, config.rounds + 1):
            if config.stop_when_unanimous and agreed(answers):
                break
            if config.summarise:
                summaries.append((yield from self._sum_up(question, number, rounds[-1], personas, turns)))
            replies = yield [
                self.ask(
                    "revise",
                    {
                        "question": question,
                        "other_answers": self._others(agent, rounds, summaries, personas),
                        "own_answer": self._own(agent, rounds),
                        **who[agent],
                    },
                    round=number,
                    agent=agent,
                    name=names[agent],
                )
                for agent in range(config.agents)
            ]
            turns += [reply.turn for reply in replies]
            answers = answers_of(replies, answers)
            rounds.append(statements_of(replies, rounds[-1]))
        answer, decision = decide(config.decision, answers)
        return self.conclude(question, turns, answer, decision, personas if config.persona_list else ())

    def _personas(self) -> list[Persona]:
        config = self.config
        if not config.persona_list:
            return [Persona(name=f"Agent {agent + 1}") for agent in range(config.agents)]
        return distinct([config.persona_list[agent % len(config.persona_list)] for agent in range(config.agents)])

    def _sum_up(
        self, question: str, number: int, said: Sequence[str], personas: Sequence[Persona], turns: list[Turn]
    ) -> Script[str | None]:
        answers = self._listed(range(self.config.agents), said, personas)
        [reply] = yield [
            self.ask(
                "summarise",
                {"question": question, "answers": answers},
                round=number,
                name="Summariser",
                answer_field=None,
            )
        ]
        turns.append(reply.turn)
        return str(reply.prediction.summary) if reply.prediction is not None else None

    def _others(
        self, agent: int, rounds: Sequence[list[str]], summaries: Sequence[str | None], personas: Sequence[Persona]
    ) -> str:
        """Return what an agent reads of the others in the next round."""
        read = read_by(self.config.topology, self.config.agents, agent)
        parts = []
        for index, said in enumerate(rounds):
            summary = summaries[index] if self.config.summarise else None
            parts.append(summary or self._listed(read, said, personas))
        return self._by_round(parts)

    def _own(self, agent: int, rounds: Sequence[list[str]]) -> str:
        return self._by_round([said[agent] or state(None, None) for said in rounds])

    def _by_round(self, parts: Sequence[str]) -> str:
        if self.config.history == "last":
            return parts[-1]
        return "\n\n".join(f"Round {number}\n\n{part}" for number, part in enumerate(parts, start=1))

    def _listed(self, agents: Sequence[int], said: Sequence[str], personas: Sequence[Persona]) -> str:
        lines = [f"{self._title(personas[agent])}: {said[agent]}" for agent in agents if said[agent]]
        return "\n\n".join(lines) or "Nobody has given a readable answer yet."

    def _title(self, persona: Persona) -> str:
        if not self.config.show_names:
            return "Another agent"
        return f"{persona.name} ({persona.expertise})" if persona.expertise else persona.name

    # -- demonstrations ------------------------------------------------------------------------------------------

    def demonstrate(self, demonstrations: Sequence[Demonstration]) -> Self:
        """Show answering and revising in the first `shots` worked problems: of two others, one is mistaken.

        The summariser gets none: a worked problem holds no summary, and one made of whole answers would teach copying.
        """
        shown = demonstrations[: self.config.shots]
        self.solve.demos = first_answer_demos(shown)
        self.revise.demos = []
        for item, first in zip(shown, self.solve.demos, strict=True):
            right = state(item.reasoning if self.config.cot else None, item.answer)
            wrong = state(item.mistaken_reasoning if self.config.cot else None, item.mistaken_answer)
            who: dict[str, Any] = {}
            if self.config.persona_list:
                who = {"persona": introduce(item.personas[0], item.personas[0].name)}
                first.persona = who["persona"]
            self.revise.demos.append(
                dspy.Example(
                    question=item.question,
                    other_answers=self._listed([1, 2], ["", wrong, right], item.personas),
                    own_answer=right,
                    reasoning=f"{item.reasoning} Against the other solution: {item.correction}",
                    answer=item.answer,
                    **who,
                )
            )
        return self


def read_by(topology: Topology, agents: int, agent: int) -> list[int]:
    """Return whose answers an agent reads, by index and in order."""
    others = [other for other in range(agents) if other != agent]
    if topology == "ring":
        return [other for other in others if (other - agent) % agents in (1, agents - 1)]
    if topology == "star" and agent != 0:
        return [0]
    return others
