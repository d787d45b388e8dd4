"""The town hall: personas chosen for the question argue, criticise, revise over rounds, and vote.

Town Hall Debate Prompting (section 3) holds the debate in one prompt, see `town_hall_prompt`; here every persona speaks
in calls of its own, so that the others' words really come from elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import dspy
from pydantic import Field, model_validator

from ..signatures.answers import display, fold
from ..signatures.demonstrations import Demonstration
from ..signatures.town_hall import Argue, IdentifyPersonas, Rebut, Vote
from ..signatures.transcript import Ballot, Candidate, Critique, Persona, Turn
from .answering import agreed, introduce
from .asking import Reply, Script
from .base import STRATEGIES, Strategy, StrategyConfig, answers_of
from .decisions import DECISIONS, candidates_of, decide

PersonaStyle = Literal["chosen", "experts", "devils-advocate", "none", "listed"]

#: What the identifying model is told to look for, by persona style.
GUIDANCE: dict[str, str] = {
    "chosen": "whoever can contribute most to this question",
    "experts": "experts of different fields that bear on this question",
    "devils-advocate": "whoever can contribute most to this question; a devil's advocate will join them",
}
DEVILS_ADVOCATE = Persona(
    name="Devil's Advocate",
    expertise="finding the weakest step of an argument",
    stance="argues against whatever most participants believe until it is proved",
)


class TownHallConfig(StrategyConfig):
    """Settings of `town-hall`.

    Attributes:
        personas: how many participants debate (the paper studied 2 to 15; 5 did best on grids, 7 on multiple choice).
        rounds: how many rounds, the opening included: 1 is independent arguments and a vote.
        persona_style: "chosen" by the model; "experts" of the domain; "devils-advocate": one among them is;
            "none": participants without persona; "listed": those of `persona_list`.
        persona_list: the personas of the style "listed", in turn when there are fewer than `personas`.
        show_names: whether participants see each other's names and expertise, or only "Participant 2".
        history: whether critics read the "last" round or "all" rounds so far.
        decision: the rule applied to the ballots.
        ballot: whether there is a vote at all, or the last answers are the votes.
        vote_when_unanimous: hold the vote also when all agree already.
        stop_when_unanimous: end the rounds as soon as all agree.
        shots: how many of the task's worked problems are shown to each role.
    """

    personas: int = Field(default=5, ge=1, le=15)
    rounds: int = Field(default=3, ge=1, le=6)
    persona_style: PersonaStyle = "chosen"
    persona_list: list[Persona] = Field(default_factory=list, json_schema_extra={"search": False})
    show_names: bool = True
    history: Literal["last", "all"] = "last"
    decision: str = Field(default="majority", json_schema_extra={"registry": "decisions"})
    ballot: bool = True
    vote_when_unanimous: bool = Field(default=False, json_schema_extra={"search": False})
    stop_when_unanimous: bool = False
    shots: int = Field(default=1, ge=0, le=2)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.persona_style == "listed" and not self.persona_list:
            raise ValueError("persona style 'listed' needs a list of personas (--personas-file)")
        if self.decision not in DECISIONS.names():
            raise ValueError(f"no decision rule '{self.decision}'; known: {', '.join(DECISIONS.names())}")
        return self


@STRATEGIES.register("town-hall")
class TownHall(Strategy):
    """Personas argue, criticise each other and revise, then vote. See `Strategy` for the arguments.

    Calls for N personas and R rounds: 1 (identify) + N*R (argue, rebut) + N (vote); no identify call for personas that
    are given or absent, no vote among fewer than two candidates.
    """

    name: ClassVar[str] = "town-hall"
    summary: ClassVar[str] = "self-chosen personas argue, criticise and revise over rounds, then vote with reasons"
    Config: ClassVar[type[StrategyConfig]] = TownHallConfig

    def _prepare(self) -> None:
        self.identify = self.role(IdentifyPersonas, answer_field=None)
        self.argue = self.role(Argue)
        self.rebut = self.role(Rebut)
        self.vote = self.role(Vote, answer_field=None)

    @property
    def agents(self) -> int:
        """How many personas debate."""
        return self.config.personas

    def _to_identify(self) -> int:
        if self.config.persona_style in ("none", "listed"):
            return 0
        return self.config.personas - (self.config.persona_style == "devils-advocate")

    def max_calls(self) -> int:
        """See the class."""
        config = self.config
        votes = config.personas if config.ballot and config.personas > 1 else 0
        return int(self._to_identify() > 0) + config.personas * config.rounds + votes

    # -- the debate ----------------------------------------------------------------------------------------------

    def script(self, question: str) -> Script[dspy.Prediction]:
        """Identify, open, rebut, vote; see `Strategy.script`."""
        config = self.config
        turns: list[Turn] = []
        personas = yield from self._name_personas(question, turns)
        labels = [persona.name if config.show_names else f"Participant {i + 1}" for i, persona in enumerate(personas)]
        speakers = [introduce(persona, label) for persona, label in zip(personas, labels, strict=True)]

        replies = yield [
            self.ask("argue", {"question": question, "persona": speaker}, round=1, agent=agent, name=labels[agent])
            for agent, speaker in enumerate(speakers)
        ]
        turns += [reply.turn for reply in replies]
        answers = answers_of(replies)
        arguments = [_argument(reply) for reply in replies]
        discussion = [self._minutes(1, personas, labels, replies)]
        for number in range(2, config.rounds + 1):
            if config.stop_when_unanimous and agreed(answers):
                break
            read = "\n\n".join(discussion if config.history == "all" else discussion[-1:])
            replies = yield [
                self.ask(
                    "rebut",
                    {"question": question, "discussion": read, "persona": speaker},
                    round=number,
                    agent=agent,
                    name=labels[agent],
                )
                for agent, speaker in enumerate(speakers)
            ]
            turns += [reply.turn for reply in replies]
            answers = answers_of(replies, answers)
            arguments = [_argument(reply) or arguments[agent] for agent, reply in enumerate(replies)]
            discussion.append(self._minutes(number, personas, labels, replies))
        ballots = yield from self._hold_vote(question, answers, arguments, speakers, labels, turns)
        answer, decision = decide(config.decision, answers, ballots)
        return self.conclude(question, turns, answer, decision, personas)

    def _name_personas(self, question: str, turns: list[Turn]) -> Script[list[Persona]]:
        config = self.config
        if config.persona_style == "none":
            return [Persona(name=f"Participant {number + 1}") for number in range(config.personas)]
        if config.persona_style == "listed":
            return distinct([config.persona_list[i % len(config.persona_list)] for i in range(config.personas)])
        count = self._to_identify()
        found: list[Persona] = []
        if count:
            [reply] = yield [
                self.ask(
                    "identify",
                    {"question": question, "count": count, "guidance": GUIDANCE[config.persona_style]},
                    round=0,
                    name="Moderator",
                    check=lambda prediction: wrong_count(prediction.personas, count),
                    answer_field=None,
                )
            ]
            given = reply.prediction or reply.last
            found, repaired = complete([] if given is None else list(given.personas), count)
            turn = reply.turn
            if repaired:
                # The repair is written down: nobody should take made-up participants for the model's.
                turn = turn.model_copy(update={"abstained": False, "problem": repaired})
            turns.append(turn.model_copy(update={"said": {"personas": [item.model_dump() for item in found]}}))
        if config.persona_style == "devils-advocate":
            found = distinct([*found, DEVILS_ADVOCATE])
        return found

    def _minutes(
        self, number: int, personas: Sequence[Persona], labels: Sequence[str], replies: Sequence[Reply]
    ) -> str:
        """Return what was said in a round, as everyone reads it in the next."""
        parts = [f"Round {number}"]
        for persona, label, reply in zip(personas, labels, replies, strict=True):
            title = f"{label} ({persona.expertise})" if self.config.show_names and persona.expertise else label
            if reply.prediction is None:
                parts.append(f"{title} abstained.")
                continue
            lines = [f"{title}: {_argument(reply)}"]
            critiques = getattr(reply.prediction, "critiques", None) or []
            lines += [f"- on {critique.target}: {critique.critique}" for critique in critiques]
            lines.append(f"Answer: {display(reply.answer)}")
            parts.append("\n".join(lines))
        return "\n\n".join(parts)

    def _hold_vote(
        self,
        question: str,
        answers: Sequence[Any],
        arguments: Sequence[str],
        speakers: Sequence[str],
        labels: Sequence[str],
        turns: list[Turn],
    ) -> Script[list[Ballot] | None]:
        config = self.config
        candidates = candidates_of(answers)
        least = 1 if config.vote_when_unanimous else 2
        if not config.ballot or len(candidates) < least or config.personas < 2:
            return None
        listing = list_candidates(candidates, arguments)
        numbers = {candidate.number for candidate in candidates}
        last = max(turn.round for turn in turns)
        replies = yield [
            self.ask(
                "vote",
                {"question": question, "candidates": listing, "persona": speaker},
                round=last,
                agent=agent,
                name=labels[agent],
                check=lambda prediction: wrong_ballot(prediction.choice, numbers),
                answer_field=None,
            )
            for agent, speaker in enumerate(speakers)
        ]
        turns += [reply.turn for reply in replies]
        return [
            Ballot(
                agent=agent,
                name=labels[agent],
                choice=reply.prediction.choice if reply.prediction else None,
                reason=reply.prediction.reason if reply.prediction else "",
            )
            for agent, reply in enumerate(replies)
        ]

    # -- demonstrations ------------------------------------------------------------------------------------------

    def demonstrate(self, demonstrations: Sequence[Demonstration]) -> Self:
        """Show each role its part in the first `shots` worked problems."""
        shown = demonstrations[: self.config.shots]
        self.identify.demos = [
            dspy.Example(question=item.question, count=3, guidance=GUIDANCE["chosen"], personas=list(item.personas[:3]))
            for item in shown
        ]
        self.argue.demos = [
            dspy.Example(
                question=item.question,
                persona=introduce(item.personas[0], item.personas[0].name),
                argument=item.reasoning,
                answer=item.answer,
            )
            for item in shown
        ]
        self.rebut.demos = [_rebuttal_example(item) for item in shown]
        self.vote.demos = [
            dspy.Example(
                question=item.question,
                candidates=list_candidates(
                    candidates_of([item.mistaken_answer, item.answer]), [item.mistaken_reasoning, item.reasoning]
                ),
                persona=introduce(item.personas[2], item.personas[2].name),
                reason=item.correction,
                choice=2,
            )
            for item in shown
        ]
        return self


def _rebuttal_example(item: Demonstration) -> dspy.Example:
    first, second = item.personas[:2]
    discussion = "\n\n".join(
        [
            "Round 1",
            f"{first.name} ({first.expertise}): {item.reasoning}\nAnswer: {display(item.answer)}",
            f"{second.name} ({second.expertise}): {item.mistaken_reasoning}\nAnswer: {display(item.mistaken_answer)}",
        ]
    )
    return dspy.Example(
        question=item.question,
        discussion=discussion,
        persona=introduce(first, first.name),
        critiques=[Critique(target=second.name, critique=item.correction)],
        argument=item.reasoning,
        answer=item.answer,
    )


def _argument(reply: Reply) -> str:
    return str(reply.prediction.argument) if reply.prediction is not None else ""


def list_candidates(candidates: Sequence[Candidate], arguments: Sequence[str]) -> str:
    """Return the ballot paper: each candidate's number and answer, and its first supporter's argument."""
    lines = []
    for candidate in candidates:
        lines.append(f"{candidate.number}. {display(candidate.answer)}")
        if argument := arguments[candidate.supporters[0]]:
            lines.append(f"   Argument for it: {argument}")
    return "\n".join(lines)


def wrong_ballot(choice: int, numbers: set[int]) -> str | None:
    """Return what is wrong with a ballot; None when it names a candidate."""
    if choice in numbers:
        return None
    return f"a ballot for candidate {choice}, where there are {', '.join(map(str, sorted(numbers)))}"


def wrong_count(personas: Sequence[Persona], count: int) -> str | None:
    """Return what is wrong with a list of personas; None when it has `count` distinct ones.

    Too many are not wrong: the first `count` are taken.
    """
    names = {fold(persona.name) for persona in personas if persona.name.strip()}
    return None if len(names) >= count else f"{len(names)} distinct personas where {count} were asked for"


def complete(personas: Sequence[Persona], count: int) -> tuple[list[Persona], str]:
    """Return exactly `count` personas with distinct names, and what was repaired ("" when nothing was)."""
    kept: dict[str, Persona] = {}
    for persona in personas:
        if persona.name.strip() and fold(persona.name) not in kept:
            kept[fold(persona.name)] = persona
    chosen = list(kept.values())[:count]
    notes = []
    if len(personas) != len(kept):
        notes.append(f"{len(personas) - len(kept)} repeated or nameless left out")
    if len(kept) > count:
        notes.append(f"{len(kept) - count} too many left out")
    if missing := count - len(chosen):
        notes.append(f"{missing} missing, filled up with unnamed participants")
        taken = {fold(persona.name) for persona in chosen}
        spare = (Persona(name=f"Participant {number}") for number in range(1, 10 * count))
        chosen += [persona for persona in spare if fold(persona.name) not in taken][:missing]
    return chosen, "; ".join(notes)


def distinct(personas: Sequence[Persona]) -> list[Persona]:
    """Return the personas with a number behind every name that is taken already."""
    taken: set[str] = set()
    out = []
    for persona in personas:
        name, number = persona.name, 1
        while fold(name) in taken:
            number += 1
            name = f"{persona.name} {number}"
        taken.add(fold(name))
        out.append(persona if number == 1 else persona.model_copy(update={"name": name}))
    return out
