"""Search on a known surface: how close to the best shape each sampler and pruner comes, and for what share of the calls.

A simulated society is right on a question when the question is easier than a known function of personas and rounds: the
best shape is 5 personas and 3 rounds, and a question costs personas * rounds calls. For each sampler and pruner and
each of the seeds, `tune` searches personas 1..9 x rounds 1..4 over the same examples; what it chooses is compared with
the best point of the surface, and its calls with those of the full grid over the same examples. All figures are of
this simulation; no model is behind them.

    python benchmarks/search.py [--seeds 10] [--examples 60] [--trials 14] [--sampler tpe] [--pruner wilcoxon]
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import dspy
from pydantic import Field

from townhall.metrics.score import Score
from townhall.models.simulated import simulated_lm
from townhall.models.simulation import Call
from townhall.optimize.pruning import PRUNERS
from townhall.optimize.search import SAMPLERS, tune
from townhall.programs.base import Strategy, StrategyConfig, answers_of
from townhall.programs.decisions import decide
from townhall.tasks.base import Example, Task

PERSONAS, ROUNDS = range(1, 10), range(1, 5)


def surface(personas: int, rounds: int) -> float:
    """Return the share of questions that a society of this shape gets right: 0.80 at 5 personas and 3 rounds."""
    return 0.80 - 0.008 * (personas - 5) ** 2 - 0.03 * (rounds - 3) ** 2


class SurfaceRole(dspy.Signature):
    """Answer the question."""

    question: str = dspy.InputField()
    shape: str = dspy.InputField()
    agent: int = dspy.InputField()
    answer: str = dspy.OutputField()


class SurfaceConfig(StrategyConfig):
    """Settings of the simulated society."""

    personas: int = Field(default=3, ge=1, le=9)
    rounds: int = Field(default=2, ge=1, le=4)


class SurfaceSociety(Strategy):
    """Asks each of its personas once a round; the majority of the last round's answers wins."""

    name: ClassVar[str] = "surface-society"
    summary: ClassVar[str] = "a simulated society with a known surface"
    Config: ClassVar[type[StrategyConfig]] = SurfaceConfig

    def _prepare(self) -> None:
        self.speak = self.role(SurfaceRole)

    @property
    def agents(self) -> int:
        return self.config.personas

    def max_calls(self) -> int:
        return self.config.personas * self.config.rounds

    def script(self, question: str):
        turns, replies = [], []
        for number in range(1, self.config.rounds + 1):
            # The prompt names the round, not how many there will be: shorter debates share it with longer ones.
            shape = f"{self.config.personas} personas, round {number}"
            replies = yield [
                self.ask("speak", {"question": question, "shape": shape, "agent": agent}, round=number, agent=agent)
                for agent in range(self.config.personas)
            ]
            turns += [reply.turn for reply in replies]
        answer, decision = decide("majority", answers_of(replies))
        return self.conclude(question, turns, answer, decision)


def difficulty(question: str) -> float:
    """Return a question's difficulty, uniform in [0, 1)."""
    return int(hashlib.sha256(question.encode()).hexdigest()[:12], 16) / 16**12


def respond(call: Call) -> Mapping[str, Any]:
    """Answer as the surface says."""
    personas, _, _, number = call.inputs["shape"].replace(",", "").split()
    right = difficulty(call.inputs["question"]) < surface(int(personas), int(number))
    return {"answer": "right" if right else "wrong"}


class SurfaceTask(Task):
    """Numbered questions whose answer is "right"."""

    name: ClassVar[str] = "surface"
    summary: ClassVar[str] = "questions of known difficulty"

    def generate(self):
        return ({"id": str(number)} for number in range(4000))

    def example(self, row, where):
        return Example(id=row["id"], question=f"question {row['id']}", gold="right")

    def extract(self, text, example, rule="flexible"):
        return text

    def score(self, answer, example):
        return Score(float(answer == example.gold), blank=answer is None)


def search(
    sampler: str, pruner: str, seed: int, examples: int, trials: int, folder: Path
) -> tuple[float, float, float]:
    """Return the regret in points, the share of the grid's calls that were made, and the share served by the cache."""
    task = SurfaceTask()
    calls = {"made": 0}

    def counted(call: Call) -> Mapping[str, Any]:
        calls["made"] += 1
        return respond(call)

    lm = simulated_lm(counted, name=f"simulated-{sampler}-{pruner}-{seed}", cache=True, record=False, temperature=0.0)
    found = tune(
        task,
        SurfaceSociety(),
        trials=trials,
        sampler=sampler,
        pruner=pruner,
        limit=examples,
        seed=seed,
        lm=lm,
        folder=folder,
        name=f"{sampler}-{pruner}-{seed}",
        concurrency=4,
    )
    best = found.best_trial.settings
    top = max(surface(personas, rounds) for personas in PERSONAS for rounds in ROUNDS)
    regret = 100 * (top - surface(best["personas"], best["rounds"]))
    grid = examples * sum(personas * rounds for personas in PERSONAS for rounds in ROUNDS)
    return regret, calls["made"] / grid, found.saved


def main() -> int:
    """Print the table; exit 1 with --check when the default sampler and pruner miss the mark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--examples", type=int, default=60)
    parser.add_argument("--trials", type=int, default=14)
    parser.add_argument("--sampler", choices=SAMPLERS, help="only this one")
    parser.add_argument("--pruner", choices=PRUNERS, help="only this one")
    parser.add_argument("--check", action="store_true", help="exit 1 unless 9 of 10 seeds are within a point for 35 %%")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    samplers = [options.sampler] if options.sampler else [name for name in SAMPLERS if name not in ("gp",)]
    pruners = [options.pruner] if options.pruner else list(PRUNERS)
    print(f"simulated surface, {options.examples} examples, {options.trials} trials, {options.seeds} seeds")
    print(f"{'sampler':8} {'pruner':9} {'within 1 point':>14} {'mean regret':>12} {'calls/grid':>11} {'cached':>7}")
    good = True
    for sampler in samplers:
        for pruner in pruners:
            rows = []
            for seed in range(options.seeds):
                with tempfile.TemporaryDirectory() as folder:
                    rows.append(search(sampler, pruner, seed, options.examples, options.trials, Path(folder)))
            hits = sum(regret <= 1.0 for regret, _, _ in rows)
            mean = sum(regret for regret, _, _ in rows) / len(rows)
            share = sum(calls for _, calls, _ in rows) / len(rows)
            worst = max(calls for _, calls, _ in rows)
            cached = sum(saved for _, _, saved in rows) / len(rows)
            print(
                f"{sampler:8} {pruner:9} {hits:>8} of {len(rows)} {mean:>10.2f} % {100 * share:>9.1f} % "
                f"{100 * cached:>5.0f} %   (most {100 * worst:.1f} %)",
                flush=True,
            )
            if (sampler, pruner) == ("tpe", "wilcoxon"):
                good = hits >= 0.9 * len(rows) and share <= 0.35
    return 0 if good or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
