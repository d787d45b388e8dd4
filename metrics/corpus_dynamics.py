"""What happens in many debates: accuracy and agreement by round, flips, what each agent and model did, how pairs ended.

A debate that ended early keeps its last answers in later rounds, so that every round is computed over the same debates.
See `dynamics` for a single one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .dynamics import BLIND_FLIPS, FLIPS, PAIR_CATEGORIES, DebateDynamics, Flip


@dataclass(frozen=True)
class RoundFigures:
    """One round over many debates. Shares are over all of them; those that ended before keep their last answers.

    Attributes:
        round: its number.
        running: debates that had this round.
        accuracy: mean over debates of the share of agents that are right; None where the right answers are not known.
        majority: share of debates whose plurality is right; None likewise.
        agreement: mean share of agents that hold their debate's plurality answer (blanks do not).
        consensus: share of debates in which all agents hold one answer.
        entropy: mean entropy of the answers given, in bits.
        blanks: mean share of agents without an answer.
        flips: from the round before to this one, how many agents' answers went which way (running debates only).
    """

    round: int
    running: int
    accuracy: float | None
    majority: float | None
    agreement: float
    consensus: float
    entropy: float | None
    blanks: float
    flips: dict[str, int]


@dataclass(frozen=True)
class SpeakerFigures:
    """One agent, or one model, over many debates.

    Attributes:
        debates: how many it was in (a model counts once for each agent that it speaks for).
        first: share of its first answers that are right; None where that is not known.
        last: share of its last answers that are right.
        flips: over all rounds, how many of its answers went which way.
        changes: how often it changed its answer.
        followed: changes to an answer that another agent held.
        followed_plurality: changes to the answer that most agents held.
        choices: how often it chose which move ("reflect", "debate").
    """

    debates: int
    first: float | None
    last: float | None
    flips: dict[str, int]
    changes: int
    followed: int
    followed_plurality: int
    choices: dict[str, int]


@dataclass(frozen=True)
class CorpusDynamics:
    """What happened in many debates.

    Attributes:
        debates: how many there are.
        known: how many have known right answers; figures of right and wrong are over these.
        rounds: by round.
        agents: by agent index.
        models: by model name.
        follows: how often agent i changed to the answer that agent j held: `follows[i, j]`; a change to an answer
            that several held counts for each of them.
        began_all_wrong: debates in which no agent was right in the first round.
        all_wrong_to_right: those of them with a right decision.
        began_with_right_minority: debates in which some, but fewer than half, were right in the first round.
        right_minority_lost: those of them with a wrong decision.
        decided_right: debates with a right decision.
        judged: debates that a judge decided.
        judged_right: those of them in which the judge was right.
        judge_could: those of them in which some agent was right at last, so that the judge could be.
        pairs: debates of two by category, see `pair_category`; empty where there are none.
        groups: `pairs` and decisions by group.
    """

    debates: int
    known: int
    rounds: list[RoundFigures]
    agents: dict[int, SpeakerFigures]
    models: dict[str, SpeakerFigures]
    follows: dict[tuple[int, int], int]
    began_all_wrong: int
    all_wrong_to_right: int
    began_with_right_minority: int
    right_minority_lost: int
    decided_right: int
    judged: int
    judged_right: int
    judge_could: int
    pairs: dict[str, int]
    groups: dict[str, CorpusDynamics]

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON data, for records and tables; what was never counted is left out.

        Figures by round are lists, the first round first; flips lead from each round to the next.
        """
        data: dict[str, Any] = {"debates": self.debates, "known": self.known}
        for name in ("running", "accuracy", "majority", "agreement", "consensus", "entropy", "blanks"):
            data[name] = [getattr(one, name) for one in self.rounds]
        kinds = dict.fromkeys(kind for one in self.rounds for kind in one.flips)
        data["flips"] = {kind: [one.flips.get(kind, 0) for one in self.rounds[1:]] for kind in kinds}
        if not self.known:
            del data["accuracy"], data["majority"]
        else:
            for name in (
                "began_all_wrong",
                "all_wrong_to_right",
                "began_with_right_minority",
                "right_minority_lost",
                "decided_right",
            ):
                data[name] = getattr(self, name)
        if self.judged:
            data |= {"judged": self.judged, "judged_right": self.judged_right, "judge_could": self.judge_could}
        if self.pairs:
            data["pairs"] = dict(self.pairs)
        if self.follows:
            data["follows"] = {f"{one} -> {two}": count for (one, two), count in sorted(self.follows.items())}
        for name, speakers in (("agents", self.agents), ("models", self.models)):
            if speakers:
                data[name] = {
                    str(key): {part: value for part, value in vars(speaker).items() if value not in (None, {})}
                    for key, speaker in speakers.items()
                }
        if self.groups:
            data["groups"] = {name: group.as_dict() for name, group in self.groups.items()}
        return data


def corpus_dynamics(debates: Iterable[DebateDynamics], *, by_group: bool = True) -> CorpusDynamics:
    """Return the figures of many debates together.

    Args:
        debates: those without any answer (nobody spoke) are left out.
        by_group: whether the same figures are computed for each group, where debates have one.
    """
    found = [debate for debate in debates if debate.rounds]
    known = [debate for debate in found if debate.known]
    judged = [debate for debate in found if debate.judged]
    names = sorted({debate.group for debate in found if debate.group is not None}) if by_group else []
    all_wrong = [debate for debate in known if debate.began_all_wrong]
    minority = [debate for debate in known if debate.began_with_right_minority]
    pairs = Counter(debate.pair for debate in known if debate.pair is not None)
    return CorpusDynamics(
        debates=len(found),
        known=len(known),
        rounds=list(_rounds(found, known)),
        agents=_speakers(found, lambda debate, agent: agent),
        models=_speakers(found, lambda debate, agent: debate.models[agent]),
        follows=dict(
            Counter((change.agent, other) for debate in found for change in debate.changes for other in change.followed)
        ),
        began_all_wrong=len(all_wrong),
        all_wrong_to_right=sum(bool(debate.decided_right) for debate in all_wrong),
        began_with_right_minority=len(minority),
        right_minority_lost=sum(not debate.decided_right for debate in minority),
        decided_right=sum(bool(debate.decided_right) for debate in known),
        judged=len(judged),
        judged_right=sum(bool(debate.decided_right) for debate in judged),
        judge_could=sum(any(row[-1] for row in debate.right) for debate in judged),
        pairs={name: pairs[name] for name in PAIR_CATEGORIES} if pairs else {},
        groups={
            name: corpus_dynamics([debate for debate in found if debate.group == name], by_group=False)
            for name in names
        },
    )


def _rounds(found: Sequence[DebateDynamics], known: Sequence[DebateDynamics]) -> Iterator[RoundFigures]:
    for number in range(1, max((len(debate.rounds) for debate in found), default=0) + 1):
        states = [(debate, debate.rounds[min(number, len(debate.rounds)) - 1]) for debate in found]
        running = [debate for debate in found if len(debate.rounds) >= number]
        entropies = [state.entropy for _, state in states if state.entropy is not None]
        yield RoundFigures(
            round=number,
            running=len(running),
            accuracy=_mean([(state.right or 0) / len(debate.answers) for debate, state in states if debate.known]),
            majority=_mean([float(_plurality_right(debate, number)) for debate in known]),
            agreement=_mean([state.support / len(debate.answers) for debate, state in states]) or 0.0,
            consensus=_mean([float(state.consensus) for _, state in states]) or 0.0,
            entropy=_mean(entropies),
            blanks=_mean([state.blanks / len(debate.answers) for debate, state in states]) or 0.0,
            flips=_counted(kind for debate in running if number > 1 for kind in debate.flips[number - 2]),
        )


def _plurality_right(debate: DebateDynamics, number: int) -> bool:
    column = min(number, len(debate.rounds)) - 1
    plurality = debate.rounds[column].plurality
    return any(
        row[column] and held[column] == plurality for row, held in zip(debate.right, debate.answers, strict=True)
    )


def _speakers(found: Sequence[DebateDynamics], key: Callable[[DebateDynamics, int], Any]) -> dict[Any, SpeakerFigures]:
    parts: dict[Any, list[tuple[DebateDynamics, int]]] = {}
    for debate in found:
        for agent in range(len(debate.answers)):
            if (name := key(debate, agent)) is not None:
                parts.setdefault(name, []).append((debate, agent))
    return {name: _speaker(part) for name, part in sorted(parts.items())}


def _speaker(parts: Sequence[tuple[DebateDynamics, int]]) -> SpeakerFigures:
    known = [(debate, agent) for debate, agent in parts if debate.known]
    changes = [change for debate, agent in parts for change in debate.changes if change.agent == agent]
    choices: Counter[str] = Counter()
    for debate, agent in parts:
        choices.update(debate.choices.get(agent, {}))
    return SpeakerFigures(
        debates=len(parts),
        first=_mean([float(debate.right[agent][0]) for debate, agent in known]),
        last=_mean([float(debate.right[agent][-1]) for debate, agent in known]),
        flips=_counted(kinds[agent] for debate, agent in parts for kinds in debate.flips),
        changes=len(changes),
        followed=sum(bool(change.followed) for change in changes),
        followed_plurality=sum(change.with_plurality for change in changes),
        choices=dict(sorted(choices.items())),
    )


def _counted(kinds: Iterable[Flip]) -> dict[str, int]:
    counts = Counter(kinds)
    return {kind: counts[kind] for kind in dict.fromkeys((*FLIPS, *BLIND_FLIPS)) if counts[kind]}


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
