"""What happens in one debate: who is right by round, flips, who follows whom, and how pairs decide.

Everything is computed from transcripts, our own or imported, so that strategies and logs of others compare. Answers are
voting buckets; None is a blank. Where an agent says nothing in a round it keeps its answer (see
`Transcript.trajectory`). `corpus_dynamics` adds up many of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, get_args

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
PAIR_CATEGORIES: tuple[PairCategory, ...] = get_args(PairCategory)


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
