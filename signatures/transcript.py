"""What was said in a debate, typed: personas, turns, ballots, the decision, and the transcript that keeps them all.

Rounds count from 1 (the opening); round 0 is what happens before anyone argues (naming the personas).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Persona(BaseModel):
    """One participant of a debate.

    Attributes:
        name: how the others address it, unique in its debate.
        expertise: what it knows about.
        stance: how it argues ("sceptical of shortcuts", "devil's advocate").
    """

    # Schemas are part of prompts: what a model needs to know of a persona, not all that this docstring says.
    model_config = ConfigDict(frozen=True, json_schema_extra={"description": "One participant of a debate."})

    name: str = Field(description="a short name, unique among the participants")
    expertise: str = Field(default="", description="what this participant knows well")
    stance: str = Field(default="", description="how this participant approaches the discussion")

    def __str__(self) -> str:
        details = "; ".join(part for part in (self.expertise, self.stance) if part)
        return f"{self.name} ({details})" if details else self.name


class Critique(BaseModel):
    """What one participant finds wrong (or right) in another's argument."""

    target: str = Field(description="the name of the participant whose argument is criticised")
    critique: str = Field(description="what is wrong or unproven in that argument, or why it holds")


class Usage(BaseModel):
    """What model calls cost.

    Attributes:
        calls: calls sent to a model, failed ones included where they were counted.
        cached: replies served from the cache, at no cost.
        prompt_tokens: tokens sent in `calls`.
        completion_tokens: tokens received in `calls`.
        cost: US dollars, None when no price is known for some call.
        seconds: time spent waiting for replies, added up over calls (not wall-clock time).
        cached_prompt_tokens: tokens that the cached replies took when they were paid for.
        cached_completion_tokens: likewise.
        cached_cost: likewise, None when unknown.
    """

    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    cached_prompt_tokens: int = 0
    cached_completion_tokens: int = 0
    cached_cost: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            cached=self.cached + other.cached,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost=_sum(self.cost, other.cost),
            seconds=self.seconds + other.seconds,
            cached_prompt_tokens=self.cached_prompt_tokens + other.cached_prompt_tokens,
            cached_completion_tokens=self.cached_completion_tokens + other.cached_completion_tokens,
            cached_cost=_sum(self.cached_cost, other.cached_cost),
        )

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def uncached(self) -> Usage:
        """Return what the same calls cost whoever has no cache: what a strategy costs, not what this run paid."""
        return Usage(
            calls=self.calls + self.cached,
            prompt_tokens=self.prompt_tokens + self.cached_prompt_tokens,
            completion_tokens=self.completion_tokens + self.cached_completion_tokens,
            cost=_sum(self.cost, self.cached_cost),
            seconds=self.seconds,
        )


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


#: Parts of a transcript that are named for a role; the others are named for their round.
PARTS = {"identify": "Participants", "vote": "Vote", "judge": "Judgement", "summarise": "Summary"}


class Turn(BaseModel):
    """One thing said by one agent, or its abstention.

    Attributes:
        round: 0 before the debate, 1 for the opening, then one more each round; a vote has the last round's number.
        agent: 0-based index of the agent; None for those who are not agents (moderator, judge, summariser).
        name: the speaker's name.
        role: the predictor that spoke: "identify", "argue", "rebut", "vote", "reflect", "feedback", "judge", ...
        model: the model's name.
        said: the role's output fields, as JSON data (reasoning, critiques, reason, choice, ...).
        answer: the answer stated in this turn as JSON data, None where the role states none or it is blank.
        bucket: the answer's voting bucket, see `signatures.answers.canonical`.
        abstained: the reply could not be read even when asked again, or the agent gave no answer.
        problem: why it abstained.
        usage: what this turn cost, retries included.
    """

    round: int
    agent: int | None = None
    name: str = ""
    role: str
    model: str | None = None
    said: dict[str, Any] = Field(default_factory=dict)
    answer: Any = None
    bucket: str | None = None
    abstained: bool = False
    problem: str | None = None
    usage: Usage = Field(default_factory=Usage)

    @property
    def part(self) -> str:
        """The title of the part of the transcript that it belongs to."""
        return PARTS.get(self.role) or (f"Round {self.round}" if self.round else self.role.capitalize())


class Candidate(BaseModel):
    """A distinct answer on the ballot.

    Attributes:
        number: 1-based, as the voters see it.
        answer: JSON data.
        bucket: the voting bucket.
        supporters: indices of the agents that hold it after the last round.
        votes: ballots for it.
    """

    number: int
    answer: Any
    bucket: str
    supporters: list[int] = Field(default_factory=list)
    votes: float = 0


class Ballot(BaseModel):
    """One agent's vote: the number of a candidate (None: abstained) and why."""

    agent: int
    name: str = ""
    choice: int | None
    reason: str = ""


class Decision(BaseModel):
    """How a debate was decided.

    Attributes:
        rule: name of the decision rule ("majority", "judge", ...).
        answer: the winning answer as JSON data, None for a blank.
        bucket: its voting bucket.
        candidates: all distinct answers with supporters and votes.
        votes: the ballots.
        abstentions: agents that gave no readable answer or ballot.
        unanimous: all agents that did not abstain agreed before any vote.
        tie: the rule had to break a tie.
        tie_break: the rule that broke it, in words.
        judged: a judge was called.
        reason: a judge's reason, where there is one.
    """

    rule: str
    answer: Any = None
    bucket: str | None = None
    candidates: list[Candidate] = Field(default_factory=list)
    votes: list[Ballot] = Field(default_factory=list)
    abstentions: int = 0
    unanimous: bool = False
    tie: bool = False
    tie_break: str | None = None
    judged: bool = False
    reason: str | None = None


class Transcript(BaseModel):
    """All that was said in one debate, in a fixed order: by round, then by agent.

    Attributes:
        strategy: name of the strategy.
        question: the question as the agents read it.
        personas: the participants, by agent index.
        models: each agent's model name, by agent index.
        turns: everything said.
        decision: how it ended; None when the debate broke off.
        source: "debate" for our own, or the name of the importer ("dylan").
    """

    strategy: str
    question: str = ""
    personas: list[Persona] = Field(default_factory=list)
    models: list[str | None] = Field(default_factory=list)
    turns: list[Turn] = Field(default_factory=list)
    decision: Decision | None = None
    source: Literal["debate"] | str = "debate"

    def of(self, *, round: int | None = None, agent: int | None = None, role: str | None = None) -> Iterator[Turn]:
        """Yield the turns of a round, an agent and a role, in order."""
        for turn in self.turns:
            if (
                (round is None or turn.round == round)
                and (agent is None or turn.agent == agent)
                and (role is None or turn.role == role)
            ):
                yield turn

    def trajectory(self) -> list[list[str | None]]:
        """Return each agent's answer bucket by round: `trajectory()[agent][round - 1]`.

        None where the agent abstained. A round in which an agent did not speak keeps its answer of the round before.
        Votes, feedback and the like state no answer and do not count.
        """
        agents = max((turn.agent + 1 for turn in self.turns if turn.agent is not None), default=0)
        rounds = max((turn.round for turn in self.turns if turn.agent is not None and states_answer(turn)), default=0)
        table: list[list[str | None]] = [[None] * rounds for _ in range(agents)]
        spoke = [[False] * rounds for _ in range(agents)]
        for turn in self.turns:
            if turn.agent is not None and turn.round >= 1 and states_answer(turn):
                table[turn.agent][turn.round - 1] = turn.bucket
                spoke[turn.agent][turn.round - 1] = True
        for agent in range(agents):
            for column in range(1, rounds):
                if not spoke[agent][column]:
                    table[agent][column] = table[agent][column - 1]
        return table

    def usage(self) -> Usage:
        """Return what the whole debate cost."""
        return sum((turn.usage for turn in self.turns), Usage())

    def usage_by_role(self) -> dict[str, Usage]:
        """Return what each role cost."""
        roles: dict[str, Usage] = {}
        for turn in self.turns:
            roles[turn.role] = roles.get(turn.role, Usage()) + turn.usage
        return roles


#: Roles whose turns state no answer of the agent's own.
SILENT_ROLES = frozenset({"identify", "vote", "feedback", "reflect", "choose", "summarise", "judge", "critique"})


def states_answer(turn: Turn) -> bool:
    """Return whether a turn's role states an answer (which may be blank)."""
    return turn.role not in SILENT_ROLES
