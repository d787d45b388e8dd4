"""A strategy of your own: one agent answers, another checks; compared with a single agent.

It runs on the simulated model, so that it needs no key and no weights; its figures say nothing about a real model. For
a real one say `python examples/custom_strategy.py openai/gpt-4o-mini`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import dspy

import townhall
from townhall.models.simulated import simulated_lm
from townhall.models.simulation import SimulatedBehaviour
from townhall.programs.base import STRATEGIES, Strategy, answers_of
from townhall.programs.decisions import decide
from townhall.signatures.answers import display
from townhall.signatures.town_hall import SolveStepByStep


class CheckAnswer(dspy.Signature):
    """Check a proposed answer to the question. Work it out yourself first, then keep the answer or correct it."""

    question: str = dspy.InputField(desc="the question")
    proposal: str = dspy.InputField(desc="the answer that somebody proposed")
    reasoning: str = dspy.OutputField(desc="your own solution, step by step")
    answer: str = dspy.OutputField(desc="the answer, kept or corrected")


@STRATEGIES.register("second-opinion")
class SecondOpinion(Strategy):
    """One agent answers, another checks; an answer that cannot be read leaves the first one."""

    name = "second-opinion"
    summary = "one agent answers, another checks"

    def _prepare(self):
        self.solve = self.role(SolveStepByStep)
        self.check = self.role(CheckAnswer)

    def max_calls(self):
        return 2

    def script(self, question):
        [first] = yield [self.ask("solve", {"question": question}, round=1, agent=0)]
        [second] = yield [
            self.ask("check", {"question": question, "proposal": display(first.answer)}, round=2, agent=1)
        ]
        answer, decision = decide("majority", answers_of([second], [first.answer]))
        return self.conclude(question, [first.turn, second.turn], answer, decision)


def main() -> None:
    task = townhall.task("arithmetic", count=80)
    if len(sys.argv) > 1:
        lm = townhall.lm(sys.argv[1])
    else:
        gold = {example.question: example.gold for example in task.examples}
        lm = simulated_lm(behaviour=SimulatedBehaviour(accuracy=0.6, answers=gold))
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            townhall.evaluate(townhall.program(task, name), task, limit=10, lm=lm, out=Path(folder) / name)
            for name in ("single", "second-opinion")
        ]
        for run in runs:
            print(f"{run.name}: accuracy {run.score:.2f} in {run.usage.uncached().calls} calls")
        [pair] = townhall.compare(*runs).pairs
        difference = pair.result.difference
        print(f"difference {difference.estimate:+.2f}, 95 % interval {difference.low:+.2f} to {difference.high:+.2f}")


if __name__ == "__main__":
    main()
