"""Search on a known surface: how near to the best shape each sampler and pruner comes, for what share of the calls.

A simulated society is right on a question when the question is easier than a known function of personas and rounds. The
best shape is 5 personas and 3 rounds, and a question costs personas * rounds calls. `tune` searches personas 1..9 x
rounds 1..4 over the same examples, for each of the seeds; what it chooses is compared with the best point of the
surface, and its calls with those of the full grid over as many examples: as they are (450 a question), and as they
would be if the grid too found rounds that shapes share in the cache (180).

With `--noise` that share of what decides about an answer is drawn anew for every shape: two shapes of the same
accuracy are then right on different questions, as real ones are, and even the full grid does not find the best shape
for sure (it is the last line of the table).

The table is made by a stand-in for the engine that computes each answer and counts the calls; at the end the default
search runs through the engine with every call made, and its figures must be the same. All figures are of this
simulation; no model is behind them.

    python benchmarks/search.py --check
    python benchmarks/search.py --noise 0.1 --trials 12 --sampler gp --sampler tpe
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import logging
import math
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist, mean
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest import mock

import dspy
import optuna
from pydantic import Field

from townhall.metrics.score import Score
from townhall.models.simulated import simulated_lm
from townhall.models.simulation import Call
from townhall.optimize import search as search_module
from townhall.optimize.pruning import PRUNERS
from townhall.optimize.samplers import SAMPLERS
from townhall.optimize.search import tune
from townhall.optimize.study import StudyResult
from townhall.programs.base import Strategy, StrategyConfig, answers_of
from townhall.programs.decisions import decide
from townhall.signatures.transcript import Usage
from townhall.tasks.base import Example, Task

PERSONAS, ROUNDS = range(1, 10), range(1, 5)
SHAPES = [(personas, rounds) for personas in PERSONAS for rounds in ROUNDS]
#: Calls a question of the full grid, without and with a cache.
GRID = sum(personas * rounds for personas, rounds in SHAPES)
GRID_CACHED = sum(personas * max(ROUNDS) for personas in PERSONAS)
DEFAULT = ("gp", "wilcoxon")
LEAST_HITS, MOST_SHARE = 0.9, 0.35


def surface(personas: int, rounds: int) -> float:
    """Return the share of questions that a society of this shape gets right: 0.80 at 5 personas and 3 rounds."""
    return 0.80 - 0.008 * (personas - 5) ** 2 - 0.03 * (rounds - 3) ** 2


BEST = max(surface(*shape) for shape in SHAPES)


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


def drawn(text: str) -> float:
    """Return a number above 0 and below 1 that the text alone decides."""
    return (int(hashlib.sha256(text.encode()).hexdigest()[:12], 16) + 0.5) / 16**12


@functools.cache
def difficulty(question: str, personas: int, rounds: int, noise: float) -> float:
    """Return how hard a question is for a shape, uniform between 0 and 1; of the question alone without noise."""
    if not noise:
        return drawn(question)
    normal = NormalDist()
    own = normal.inv_cdf(drawn(f"{question}, {personas} personas, {rounds} rounds"))
    return normal.cdf(math.sqrt(1 - noise) * normal.inv_cdf(drawn(question)) + math.sqrt(noise) * own)


def right(question: str, personas: int, rounds: int, noise: float = 0.0) -> bool:
    """Return whether a society of this shape answers a question rightly."""
    return difficulty(question, personas, rounds, noise) < surface(personas, rounds)


def model(noise: float = 0.0, on_call: Callable[[], None] = lambda: None) -> dspy.LM:
    """Return the simulated model; each call of it is counted, replies from the cache are none."""

    def respond(call: Call) -> Mapping[str, Any]:
        on_call()
        personas, _, _, number = call.inputs["shape"].replace(",", "").split()
        return {"answer": "right" if right(call.inputs["question"], int(personas), int(number), noise) else "wrong"}

    return simulated_lm(respond, name="simulated-surface", cache=True, record=False, temperature=0.0)


class StandIn:
    """Computes what `evaluate` would find and the calls it would make, one example after the other."""

    def __init__(self, noise: float) -> None:
        self.noise = noise
        self.asked: set[tuple[str, int, int]] = set()

    def __call__(self, program: Strategy, task: Task, *, examples, on_record, **ignored: Any) -> Any:
        personas, rounds = program.config.personas, program.config.rounds
        used, status = Usage(), "complete"
        for example in examples:
            wanted = {(example.id, personas, number) for number in range(1, rounds + 1)}
            new = len(wanted - self.asked)
            self.asked |= wanted
            used += Usage(calls=personas * new, cached=personas * (rounds - new))
            record = SimpleNamespace(
                fingerprint=example.fingerprint,
                score=float(right(example.question, personas, rounds, self.noise)),
                full_usage=Usage(calls=personas * rounds),
            )
            if not on_record(record):
                status = "stopped"
                break
        return SimpleNamespace(usage=used, summary=SimpleNamespace(status=status, reason=None))


@dataclass(frozen=True)
class Found:
    """What one search came to.

    Attributes:
        regret: points between the best shape and the chosen one.
        highest: points between the best shape and the one with the highest score.
        calls: made, a question.
        saved: share of the replies that came from the cache.
        study: all of it.
    """

    regret: float
    highest: float
    calls: float
    saved: float
    study: StudyResult


def search(options: argparse.Namespace, sampler: str, pruner: str, seed: int, **settings: Any) -> Found:
    """Search once; through the stand-in unless `engine=True` is among the settings."""
    counted = {"calls": 0}

    def count() -> None:
        counted["calls"] += 1

    engine = settings.pop("engine", False)
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, TOWNHALL_CACHE=f"{folder}/cache"):
        run = search_module.evaluate if engine else StandIn(options.noise)
        # What is computed needs no database either.
        storage = search_module.open_storage if engine else lambda *ignored: optuna.storages.InMemoryStorage()
        with mock.patch.multiple(search_module, evaluate=run, open_storage=storage):
            study = tune(
                options.task,
                SurfaceSociety(),
                trials=options.trials,
                sampler=sampler,
                pruner=pruner,
                limit=options.examples,
                seed=seed,
                lm=model(options.noise, count),
                folder=folder,
                # One call at a time: with more, a trial that is stopped would have some calls in flight.
                concurrency=1,
                **settings,
            )
    made = sum(trial.calls for trial in study.trials)
    if engine and made != counted["calls"]:
        raise SystemExit(f"the study says {made} calls, and the model was called {counted['calls']} times")
    highest = max(study.whole, key=lambda trial: trial.score or 0.0)
    return Found(
        _regret(study.best_trial.settings),
        _regret(highest.settings),
        made / options.examples,
        study.saved,
        study,
    )


def _regret(settings: Mapping[str, Any]) -> float:
    return 100 * (BEST - surface(settings["personas"], settings["rounds"]))


def row(sampler: str, pruner: str, found: list[Found]) -> str:
    """Return one line of the table."""
    near = sum(item.regret <= 1 + 1e-9 for item in found)
    lucky = sum(item.highest <= 1 + 1e-9 for item in found)
    calls = mean(item.calls for item in found)
    most = max(item.calls for item in found)
    return (
        f"{sampler:8} {pruner:9} {near:>5} of {len(found):<3} {mean(item.regret for item in found):>7.2f}"
        f" {lucky:>8} of {len(found):<3} {100 * calls / GRID:>9.1f} % {100 * most / GRID:>9.1f} %"
        f" {100 * calls / GRID_CACHED:>9.1f} % {100 * mean(item.saved for item in found):>7.0f} %"
    )


HEADER = f"""\
{"":18} {"chosen: within":>14} {"mean":>6} {"highest score:":>15} {"calls, of":>9} {"most of":>12} {"of the cached":>14}
{"sampler":8} {"pruner":9} {"1 point":>13} {"regret":>7} {"within 1 point":>15} {"the grid":>9} {"any seed":>13} \
{"grid":>10} {"cached":>11}"""


def true_front() -> list[tuple[int, float]]:
    """Return the calls and the score of every shape that no other one beats in both."""
    points = {(personas * rounds, surface(personas, rounds)) for personas, rounds in SHAPES}
    return sorted(
        point for point in points if not any(o[0] <= point[0] and o[1] >= point[1] and o != point for o in points)
    )


def covered(study: StudyResult, tolerance: float) -> float:
    """Return the share of the true front's points for which one was found that is no dearer and as good or nearly."""
    found = [
        (trial.costs["calls"], surface(trial.settings["personas"], trial.settings["rounds"])) for trial in study.front
    ]
    front = true_front()
    hits = [any(calls <= cost and score >= best - tolerance for calls, score in found) for cost, best in front]
    return sum(hits) / len(front)


def pareto(options: argparse.Namespace) -> None:
    """Print how much of the true Pareto front each sampler finds."""
    error = math.sqrt(0.8 * 0.2 / options.examples)
    trials = options.trials + 8
    print(f"\nPareto front of score and calls, {trials} trials; true front: ", end="")
    print(", ".join(f"{calls}: {score:.3f}" for calls, score in true_front()))
    print(f"{'sampler':8} {'found within a standard error (' + format(100 * error, '.1f') + ' points)':>47}")
    for sampler in options.sampler:
        if sampler in ("cmaes", "grid"):
            continue
        more = argparse.Namespace(**{**vars(options), "trials": trials})
        found = [
            search(more, sampler, DEFAULT[1], seed, objectives=("score", "calls")) for seed in range(options.seeds)
        ]
        print(f"{sampler:8} {100 * mean(covered(item.study, error) for item in found):>46.0f} %", flush=True)


def full_grid(options: argparse.Namespace) -> list[Found]:
    """Return what trying every shape finds."""
    whole = argparse.Namespace(**{**vars(options), "trials": len(SHAPES)})
    return [search(whole, "grid", "none", seed) for seed in range(options.seeds)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--noise", type=float, default=0.0, help="from 0 (default) up to 1")
    parser.add_argument("--sampler", choices=SAMPLERS, action="append", help="only this one; may be repeated")
    parser.add_argument("--pruner", choices=PRUNERS, action="append", help="only this one; may be repeated")
    parser.add_argument("--no-engine", action="store_true", help="leave out the search through the engine")
    parser.add_argument("--check", action="store_true", help="exit with 1 when the default search misses the mark")
    options = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    options.sampler = options.sampler or list(SAMPLERS)
    options.pruner = options.pruner or list(PRUNERS)
    options.task = SurfaceTask()
    print(
        f"SIMULATED surface, {options.examples} examples, {options.trials} trials, {options.seeds} seeds, "
        f"noise {options.noise:g}\n{HEADER}"
    )
    missed = []
    for sampler in options.sampler:
        for pruner in options.pruner:
            found = [search(options, sampler, pruner, seed) for seed in range(options.seeds)]
            print(row(sampler, pruner, found), flush=True)
            if (sampler, pruner) == DEFAULT:
                missed = check(options, found)
    print(row("full", "grid", full_grid(options)), flush=True)
    pareto(options)
    if missed:
        print("\nmissed: " + "; ".join(missed))
    return 1 if options.check and missed else 0


def check(options: argparse.Namespace, found: list[Found]) -> list[str]:
    """Return what the default search misses."""
    missed = []
    if sum(item.regret <= 1 + 1e-9 for item in found) < LEAST_HITS * len(found):
        missed.append("fewer than 9 of 10 seeds within 1 point")
    # Of what the grid costs with the cache of replies that the search has, too.
    if max(item.calls for item in found) > MOST_SHARE * GRID_CACHED:
        missed.append("more than 35 % of the cached grid's calls")
    if not options.no_engine:
        real = search(options, *DEFAULT, 0, engine=True)
        same = (real.regret, real.calls, real.saved) == (found[0].regret, found[0].calls, found[0].saved)
        print(f"{'':8} the same through the engine, every call made, for the first seed: {'yes' if same else 'NO'}")
        if not same:
            missed.append("the engine's figures differ")
    return missed


if __name__ == "__main__":
    sys.exit(main())
