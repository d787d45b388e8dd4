"""Decision rules: from agents' choices among candidate answers to one answer.

Every rule is deterministic and says so when it had to break a tie. A new rule is one function registered here or in a
module of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..registry import Registry
from ..signatures.answers import canonical, plain
from ..signatures.transcript import Ballot, Candidate, Decision

#: How a tie is broken, as it is written into decisions.
TIE_BREAK = "most agents holding it after the last round, then the one proposed first (lowest agent index)"


@dataclass(frozen=True)
class Choice:
    """One agent's say in a decision.

    Attributes:
        agent: its index.
        bucket: the voting bucket of the answer it is for; None when it abstains.
        weight: how much it counts, such as its stated confidence.
    """

    agent: int
    bucket: str | None
    weight: float = 1.0


#: A rule takes the choices and the candidates (in the order of their first proposal) and returns the winners: one
#: candidate, several tied ones, or none (a blank).
Rule = Callable[[Sequence[Choice], Sequence[Candidate]], list[Candidate]]

DECISIONS: Registry[Rule] = Registry("decision rule", __package__)


def _tally(choices: Sequence[Choice], candidates: Sequence[Candidate]) -> dict[str, float]:
    votes = {candidate.bucket: 0.0 for candidate in candidates}
    for choice in choices:
        if choice.bucket is not None and choice.bucket in votes:
            votes[choice.bucket] += choice.weight
    return votes


def _leaders(choices: Sequence[Choice], candidates: Sequence[Candidate]) -> list[Candidate]:
    votes = _tally(choices, candidates)
    most = max(votes.values(), default=0.0)
    return [candidate for candidate in candidates if most > 0 and votes[candidate.bucket] == most]


@DECISIONS.register("majority")
def majority(choices: Sequence[Choice], candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates with the most choices (a plurality is enough); each agent counts once."""
    return _leaders([Choice(choice.agent, choice.bucket) for choice in choices], candidates)


@DECISIONS.register("absolute-majority")
def absolute_majority(choices: Sequence[Choice], candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidate that more than half of all agents chose, abstaining ones included; else a blank."""
    leaders = majority(choices, candidates)
    votes = _tally(choices, candidates)
    return [leader for leader in leaders if 2 * votes[leader.bucket] > len(choices)]


@DECISIONS.register("supermajority")
def supermajority(choices: Sequence[Choice], candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidate that at least two thirds of all agents chose, abstaining ones included; else a blank."""
    leaders = majority(choices, candidates)
    votes = _tally(choices, candidates)
    return [leader for leader in leaders if 3 * votes[leader.bucket] >= 2 * len(choices)]


@DECISIONS.register("unanimity")
def unanimity(choices: Sequence[Choice], candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidate that every agent chose; a blank when anyone chose another or abstained."""
    buckets = {choice.bucket for choice in choices}
    return [candidate for candidate in candidates if buckets == {candidate.bucket}]


@DECISIONS.register("weighted")
def weighted(choices: Sequence[Choice], candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates with the greatest total weight (the agents' stated confidence)."""
    return _leaders(choices, candidates)


def known_rule(name: str) -> str:
    """Return the name of a decision rule as given, for configs.

    Raises:
        ValueError: when there is no such rule; the text lists all.
    """
    if name not in DECISIONS.names():
        raise ValueError(f"no decision rule '{name}'; known: {', '.join(DECISIONS.names())}")
    return name


def candidates_of(answers: Sequence[Any]) -> list[Candidate]:
    """Return the distinct answers after canonicalisation, in the order of their first proposal.

    Args:
        answers: each agent's typed answer by index; None for an abstention.
    """
    found: dict[str, Candidate] = {}
    for agent, answer in enumerate(answers):
        if answer is None:
            continue
        bucket = canonical(answer)
        if bucket not in found:
            found[bucket] = Candidate(number=len(found) + 1, answer=plain(answer), bucket=bucket)
        found[bucket].supporters.append(agent)
    return list(found.values())


def decide(
    rule: str,
    answers: Sequence[Any],
    ballots: Sequence[Ballot] | None = None,
    weights: Sequence[float] | None = None,
) -> tuple[Any, Decision]:
    """Apply a decision rule.

    Args:
        rule: name of a registered rule.
        answers: each agent's typed answer after the last round; None for an abstention.
        ballots: the agents' votes for candidate numbers; None when the answers themselves are the votes.
        weights: each agent's weight; all 1 when None.

    Returns:
        The winning typed answer (None for a blank) and the decision with all that led to it.

    Raises:
        InputError: for an unknown rule.
    """
    apply = DECISIONS.get(rule)
    candidates = candidates_of(answers)
    by_number = {candidate.number: candidate for candidate in candidates}
    if ballots is None:
        buckets = [canonical(answer) if answer is not None else None for answer in answers]
    else:
        chosen = {ballot.agent: by_number.get(ballot.choice or 0) for ballot in ballots}
        buckets = [getattr(chosen.get(agent), "bucket", None) for agent in range(len(answers))]
    choices = [
        Choice(agent, bucket, 1.0 if weights is None else weights[agent]) for agent, bucket in enumerate(buckets)
    ]
    votes = _tally(choices, candidates)
    for candidate in candidates:
        candidate.votes = votes[candidate.bucket]
    winners = apply(choices, candidates)
    # Candidates stand in the order of proposal and `max` keeps the first of equals: that is TIE_BREAK.
    winner = max(winners, key=lambda candidate: len(candidate.supporters)) if winners else None
    decision = Decision(
        rule=rule,
        answer=winner.answer if winner else None,
        bucket=winner.bucket if winner else None,
        candidates=candidates,
        votes=list(ballots or []),
        abstentions=sum(bucket is None for bucket in buckets),
        unanimous=len(candidates) == 1,
        tie=len(winners) > 1,
        tie_break=TIE_BREAK if len(winners) > 1 else None,
    )
    typed = {canonical(answer): answer for answer in reversed(answers) if answer is not None}
    return (typed[winner.bucket] if winner else None), decision
