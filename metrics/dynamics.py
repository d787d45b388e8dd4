"""What happens in debates: accuracy and agreement by round, flips, who follows whom, and how pairs decide.

Everything is computed from transcripts, our own or imported, so that strategies and logs of others compare. Answers are
voting buckets; None is a blank. Where an agent says nothing in a round it keeps its answer (see
`Transcript.trajectory`), and a debate that ended early keeps its last answers in later rounds, so that every round is
computed over the same debates.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from ..signatures.transcript import Transcript

#: Tells whether a bucket is right; None where that is not known (logs without the gold answers).
IsRight = Callable[[str], bool]

Flip = Literal[
    "right -> right",
    "right -> wrong",
    "wrong -> right",
    "wrong -> same wrong",
    "wrong -> other wrong",
    "right -> blank",
    "wrong -> blank",
    "blank -> right",
    "blank -> wrong",
    "blank -> blank",
    "kept",
    "changed",
    "answer -> blank",
    "blank -> answer",
]
#: What becomes of an agent's answer from one round to the next, where the right answer is known: exhaustive, exclusive.
FLIPS: tuple[Flip, ...] = (
    "right -> right",
    "right -> wrong",
    "right -> blank",
    "wrong -> right",
    "wrong -> same wrong",
    "wrong -> other wrong",
    "wrong -> blank",
    "blank -> right",
    "blank -> wrong",
    "blank -> blank",
)
#: The same where the right answer is not known.
BLIND_FLIPS: tuple[Flip, ...] = ("kept", "changed", "answer -> blank", "blank -> answer", "blank -> blank")

PairCategory = Literal[
    "both_right",
    "one_spoiled",
    "both_spoiled",
    "one_corrected",
    "still_split",
    "swapped",
    "right_one_lost",
    "both_corrected",
    "one_of_two_corrected",
    "both_wrong",
]
PAIR_CATEGORIES: tuple[PairCategory, ...] = (
    "both_right",
    "one_spoiled",
    "both_spoiled",
    "one_corrected",
    "still_split",
    "swapped",
    "right_one_lost",
    "both_corrected",
    "one_of_two_corrected",
    "both_wrong",
)


@dataclass(frozen=True)
class RoundState:
    """One round of one debate.

    Attributes:
        right: how many agents have the right answer; None where it is not known.
        plurality: the answer most agents hold; of tied ones that of the lowest agent; None when all are blank.
        support: how many agents hold it.
        consensus: all agents hold the same answer.
        entropy: of the answers given, in bits; blanks are left out. None when all are blank.
        blanks: agents without an answer.
    """

    right: int | None
    plurality: str | None
    support: int
    consensus: bool
    entropy: float | None
    blanks: int


def round_state(answers: Sequence[str | None], is_right: IsRight | None = None) -> RoundState:
    """Return the state of one round.

    Args:
        answers: each agent's bucket; None for a blank.
        is_right: tells whether a bucket is right.
    """
    counts = Counter(answer for answer in answers if answer is not None)
    support = max(counts.values(), default=0)
    plurality = next((answer for answer in answers if answer is not None and counts[answer] == support), None)
    given = counts.total()
    entropy = -sum(k / given * math.log2(k / given) for k in counts.values()) if given else None
    return RoundState(
        right=None if is_right is None else sum(k for answer, k in counts.items() if is_right(answer)),
        plurality=plurality,
        support=support,
        consensus=bool(answers) and support == len(answers),
        entropy=abs(entropy) if entropy is not None else None,  # -0.0 for one answer
        blanks=len(answers) - given,
    )


def flip(before: str | None, after: str | None, is_right: IsRight | None = None) -> Flip:
    """Return what became of an agent's answer from one round to the next: one of `FLIPS`, or of `BLIND_FLIPS`."""
    if before is None:
        if after is None:
            return "blank -> blank"
        if is_right is None:
            return "blank -> answer"
        return "blank -> right" if is_right(after) else "blank -> wrong"
    if is_right is None:
        return "answer -> blank" if after is None else "kept" if before == after else "changed"
    if is_right(before):
        return "right -> blank" if after is None else "right -> right" if is_right(after) else "right -> wrong"
    if after is None:
        return "wrong -> blank"
    if is_right(after):
        return "wrong -> right"
    return "wrong -> same wrong" if before == after else "wrong -> other wrong"


@dataclass(frozen=True)
class Change:
    """An agent's change of answer.

    Attributes:
        round: in which it gave the new answer (from 2 on).
        agent: its index.
        kind: right or wrong, before and after.
        followed: agents that held the new answer in the round before; none when the answer is new.
        with_plurality: it went to the answer most agents held in the round before.
    """

    round: int
    agent: int
    kind: Flip
    followed: tuple[int, ...]
    with_plurality: bool


@dataclass(frozen=True)
class DebateDynamics:
    """What happened in one debate.

    Attributes:
        answers: each agent's bucket by round, `answers[agent][round - 1]`.
        models: each agent's model, by index.
        rounds: the state of each round.
        flips: for each round from the second on, what became of each agent's answer, by agent.
        changes: the agents' changes of answer, in order.
        decided: the debate's decision (its last plurality where it has none).
        known: whether the right answers are known.
        decided_right: whether the decision is right; None where that is not known.
        judged: a judge was called; None where there is no decision.
        choices: for each agent that chose between moves, how often it chose which ("reflect", "debate").
        group: the example's group.
        right: whether each answer is right, `right[agent][round - 1]`; all False where that is not known.
    """

    answers: list[list[str | None]]
    models: list[str | None]
    rounds: list[RoundState]
    flips: list[list[Flip]]
    changes: list[Change]
    decided: str | None
    known: bool
    decided_right: bool | None
    judged: bool | None
    choices: dict[int, Counter[str]]
    group: str | None = None
    right: list[list[bool]] = field(default_factory=list)

    @property
    def began_all_wrong(self) -> bool:
        """No agent had the right answer in the first round."""
        return self.known and bool(self.rounds) and self.rounds[0].right == 0

    @property
    def began_with_right_minority(self) -> bool:
        """Some agent had the right answer in the first round, but fewer than half of them."""
        agents = len(self.answers)
        return self.known and bool(self.rounds) and 0 < 2 * (self.rounds[0].right or 0) < agents

    @property
    def pair(self) -> PairCategory | None:
        """How a debate of two went, see `pair_category`; None for other debates and unknown right answers."""
        if not self.known or len(self.right) != 2 or not self.rounds:
            return None
        return pair_category((self.right[0][0], self.right[1][0]), (self.right[0][-1], self.right[1][-1]))


def debate_dynamics(
    transcript: Transcript, gold: str | IsRight | None = None, *, group: str | None = None
) -> DebateDynamics:
    """Return what happened in one debate.

    Args:
        transcript: our own or an imported one.
        gold: the right answer's bucket, or a function that tells whether a bucket is right; None if it is not known.
        group: the example's group.
    """
    is_right: IsRight | None = (lambda bucket: bucket == gold) if isinstance(gold, str) else gold
    answers = transcript.trajectory()
    columns = [list(column) for column in zip(*answers, strict=True)]
    states = [round_state(column, is_right) for column in columns]
    flips = [
        [flip(before, after, is_right) for before, after in zip(one, two, strict=True)]
        for one, two in pairwise(columns)
    ]
    decision = transcript.decision
    decided = decision.bucket if decision is not None else states[-1].plurality if states else None
    known = is_right is not None
    return DebateDynamics(
        answers=answers,
        models=_models(transcript, len(answers)),
        rounds=states,
        flips=flips,
        changes=list(_changes(columns, states, flips)),
        decided=decided,
        known=known,
        decided_right=None if is_right is None else decided is not None and is_right(decided),
        judged=None if decision is None else decision.judged,
        choices=_choices(transcript),
        group=group,
        right=[[bool(is_right and cell is not None and is_right(cell)) for cell in row] for row in answers],
    )


def _models(transcript: Transcript, agents: int) -> list[str | None]:
    models = list(transcript.models[:agents]) + [None] * (agents - len(transcript.models))
    for turn in transcript.turns:
        if turn.agent is not None and turn.agent < agents and models[turn.agent] is None:
            models[turn.agent] = turn.model
    return models


def _changes(
    columns: Sequence[Sequence[str | None]], states: Sequence[RoundState], flips: Sequence[Sequence[Flip]]
) -> Iterator[Change]:
    for number, (one, two) in enumerate(pairwise(columns), start=2):
        for agent, (before, after) in enumerate(zip(one, two, strict=True)):
            if after is None or after == before:
                continue
            yield Change(
                round=number,
                agent=agent,
                kind=flips[number - 2][agent],
                followed=tuple(other for other, held in enumerate(one) if other != agent and held == after),
                with_plurality=after == states[number - 2].plurality,
            )


def _choices(transcript: Transcript) -> dict[int, Counter[str]]:
    chosen: dict[int, Counter[str]] = {}
    for turn in transcript.of(role="choose"):
        if turn.agent is not None and not turn.abstained and (choice := turn.said.get("choice")):
            chosen.setdefault(turn.agent, Counter())[str(choice)] += 1
    return chosen


def pair_category(first: tuple[bool, bool], last: tuple[bool, bool]) -> PairCategory:
    """Return how a debate of two agents went, by who was right at first and at last (a blank is not right).

    Every debate is in exactly one category:

    - `both_right`: both were right from the start and stayed so.
    - `one_spoiled`: both were right, one ended wrong.
    - `both_spoiled`: both were right, both ended wrong.
    - `one_corrected`: one was right, and the other came over to it.
    - `still_split`: one was right, the same one still is and the other is not.
    - `swapped`: one was right and gave it up, the other one found it.
    - `right_one_lost`: one was right, both ended wrong.
    - `both_corrected`: both were wrong, both ended right.
    - `one_of_two_corrected`: both were wrong, one ended right.
    - `both_wrong`: both were wrong and stayed so, with the same answers or others.
    """
    ended = sum(last)
    if all(first):
        return ("both_spoiled", "one_spoiled", "both_right")[ended]
    if not any(first):
        return ("both_wrong", "one_of_two_corrected", "both_corrected")[ended]
    if ended == 1:
        return "still_split" if first == last else "swapped"
    return "one_corrected" if ended == 2 else "right_one_lost"


# -- many debates ----------------------------------------------------------------------------------------------------


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
