"""What concurrency costs: how near debates come to the time that the model alone would take.

A simulated model answers over real HTTP, from a process of its own, after a fixed latency. Measured are

- one debate against its critical path (its steps times the latency),
- many debates against the ideal throughput (calls times the latency over the concurrency),
- the CPU milliseconds of this process for a model call, ours and a bare `dspy.Predict`'s on the same prompts.

    python benchmarks/concurrency.py --check

`--check` exits with 1 when a threshold is missed: 1.15 critical paths, 0.8 of the ideal throughput.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import dspy

from townhall.evaluation.assembly import program
from townhall.evaluation.run import evaluate
from townhall.models.resolve import lm as model
from townhall.models.server import SimulatedProcess
from townhall.programs.adapter import DebateAdapter
from townhall.signatures.town_hall import Rebut
from townhall.tasks.access import task as task_by_name
from townhall.tasks.base import Task

MOST_CRITICAL_PATHS = 1.15
LEAST_THROUGHPUT = 0.8


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--personas", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--debates", type=int, default=32)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds a call (default 0.2)")
    parser.add_argument("--repeat", type=int, default=3, help="the best of so many single debates is taken")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a threshold is missed")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TOWNHALL_CACHE"] = folder
        with SimulatedProcess(f"latency={options.latency}&seed=1") as server:
            return measure(options, server.url, Path(folder))


def measure(options: argparse.Namespace, url: str, folder: Path) -> int:
    lm = model("simulated-server", api_base=url, temperature=0.7)
    source = task_by_name(
        "gsm8k", write_questions(folder / "questions.jsonl", 2 * options.debates + options.repeat + 8)
    )
    hall = program(source, "town-hall", personas=options.personas, rounds=options.rounds, vote_when_unanimous=True)
    examples = source.examples
    # Connections are opened and modules imported before anything is measured.
    evaluate(hall, source, examples=examples[:2], lm=lm, out=folder / "warm", concurrency=options.concurrency)

    steps = options.rounds + 2  # naming the personas and the vote
    best = min(
        wall(hall, source, [examples[2 + turn]], lm, folder / f"one-{turn}", options.personas)[0]
        for turn in range(options.repeat)
    )
    ratio = best / (steps * options.latency)
    milliseconds = round(1000 * options.latency)
    print(f"[simulated] one debate, {options.personas} personas x {options.rounds} rounds, {milliseconds} ms a call")
    print(f"  {best:.3f} s, {ratio:.3f} critical paths of {steps} steps (at most {MOST_CRITICAL_PATHS})")

    first = 2 + options.repeat
    chosen = examples[first : first + options.debates]
    seconds, cpu, calls = wall(hall, source, chosen, lm, folder / "many", options.concurrency)
    ideal = calls * options.latency / options.concurrency
    throughput = ideal / seconds
    print(f"[simulated] {len(chosen)} debates at concurrency {options.concurrency}: {calls} calls")
    print(f"  {seconds:.2f} s, ideal {ideal:.2f} s: {throughput:.3f} of the ideal (at least {LEAST_THROUGHPUT})")
    print(f"  {1000 * cpu / calls:.2f} ms of CPU a model call")
    bare = bare_predict(lm, examples[:200])
    print(f"  {1000 * bare:.2f} ms of CPU a call of a bare dspy.Predict with the same signature and adapter")
    missed = ratio > MOST_CRITICAL_PATHS or throughput < LEAST_THROUGHPUT
    if missed:
        print("a threshold is missed", file=sys.stderr)
    return int(missed and options.check)


def write_questions(file: Path, count: int) -> Path:
    rows = (
        f'{{"id": "{n}", "question": "What is {n} + {n + 1}?", "answer": "#### {2 * n + 1}"}}' for n in range(count)
    )
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return file


def wall(
    hall: dspy.Module, source: Task, examples: list[Any], lm: dspy.LM, out: Path, concurrency: int
) -> tuple[float, float, int]:
    """Return the seconds, the CPU seconds of this process and the calls that some debates take."""
    started, cpu = time.perf_counter(), time.process_time()
    run = evaluate(hall, source, examples=examples, lm=lm, out=out, concurrency=concurrency)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    assert run.summary.status == "complete", run.summary.reason
    assert not run.summary.failed
    assert run.usage.cached == 0
    return seconds, cpu, run.usage.calls


def bare_predict(lm: dspy.LM, examples: list[Any]) -> float:
    """Return the CPU seconds that a call of `dspy.Predict` takes, one after the other."""
    predict = dspy.Predict(Rebut)
    uncached = lm.copy(cache=False)
    discussion = "Round 1\n\nA: I add the numbers.\nAnswer: 7\n\nB: I do so too.\nAnswer: 8"
    with dspy.context(lm=uncached, adapter=DebateAdapter(), trace=None):
        predict(question="What is 3 + 4?", discussion=discussion, persona="You are A.")
        count = min(len(examples), 40)
        cpu = time.process_time()
        for example in examples[:count]:
            predict(question=example.question, discussion=discussion, persona="You are A.")
        return (time.process_time() - cpu) / count


if __name__ == "__main__":
    sys.exit(main())
