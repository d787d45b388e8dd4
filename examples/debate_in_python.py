"""A town hall debate in Python, and the same question to a society of agents.

It runs on the simulated model, so that it needs no key and no weights: its words and figures say nothing about a real
model. For real ones say `python examples/debate_in_python.py openai/gpt-4o-mini anthropic/claude-haiku-4-5`.
"""

from __future__ import annotations

import sys

import townhall
from townhall.models.simulated import simulated_lm
from townhall.models.simulation import SimulatedBehaviour

QUESTION = "What is 12 + 15 * 21 + 0 - 3 * 27?"


def main() -> None:
    if names := sys.argv[1:]:
        lms = [townhall.lm(name) for name in names]
    else:
        knows = SimulatedBehaviour(accuracy=0.7, conform=0.5, answers={QUESTION: 246})
        lms = [simulated_lm(behaviour=knows, name=f"simulated/{name}") for name in ("one", "two")]

    # Several models: the agents take them in turn.
    hall = townhall.TownHall(answer=int, personas=3, rounds=2, vote_when_unanimous=True, lms=lms)
    seen = hall(question=QUESTION)
    for turn in seen.transcript.turns:
        stated = f" -> {turn.answer}" if turn.answer is not None else ""
        print(f"round {turn.round}  {turn.name} ({turn.role}, {turn.model}){stated}")
    for ballot in seen.decision.votes:
        print(f"{ballot.name} votes for candidate {ballot.choice}: {ballot.reason}")
    print(f"the town hall says {seen.answer}, in {seen.transcript.usage().calls} calls")

    society = townhall.Society(answer=int, agents=3, rounds=2, lms=lms)
    seen = society(question=QUESTION)
    print(f"the society says {seen.answer}; answers by agent and round: {seen.transcript.trajectory()}")


if __name__ == "__main__":
    main()
