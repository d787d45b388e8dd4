"""Prompt tokens of a society of agents: how they grow with agents and rounds, and what summaries save.

    python benchmarks/tokens.py [--question-words 60] [--reply-words 120] [--summary-words 60] [--json]

Three ways to read the others are measured on a simulated model whose replies have a fixed length:

- `all rounds`: every answer of every round so far, concatenated, as the society-of-minds paper does;
- `last round`: the answers of the round before, concatenated (the default);
- `summarised`: one summary a round instead of the answers.

Growth exponents are slopes of a straight line through the logarithms. In theory, for the words that are exchanged (what
agents and summariser read of answers and summaries): concatenation grows with agents squared, summaries with agents;
reading the last round grows with the rounds of revision, reading all rounds with their square (for r revisions it is
r*(r+1)/2, whose slope over 1..3 is 1.63). Whole prompts grow more slowly, as each also holds the instructions and the
question. Tokens are estimated at four characters each.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dspy

from townhall.models.simulated import simulated_lm
from townhall.models.simulation import Call
from townhall.programs.society import Society

VARIANTS: dict[str, dict[str, Any]] = {
    "all rounds": {"history": "all"},
    "last round": {"history": "last"},
    "summarised": {"summarise": True},
}
#: The input fields through which agents and summariser read answers.
EXCHANGED = ("other_answers", "own_answer", "answers")
CHARACTERS_PER_TOKEN = 4


def words(count: int, word: str) -> str:
    """Return a text of so many words."""
    return " ".join([word] * count)


def responder(reply_words: int, summary_words: int) -> Callable[[Call], Mapping[str, Any]]:
    """Return the replies of a model that always says as much."""

    def reply(call: Call) -> Mapping[str, Any]:
        said = {"reasoning": words(reply_words, "because"), "answer": "42", "summary": words(summary_words, "briefly")}
        return {name: said[name] for name in call.outputs}

    return reply


def measure(
    agents: Sequence[int], rounds: Sequence[int], question_words: int, reply_words: int, summary_words: int
) -> list[dict[str, Any]]:
    """Return one row for each variant, number of agents and number of rounds."""
    rows = []
    for variant, settings in VARIANTS.items():
        for count in agents:
            for number in rounds:
                lm = simulated_lm(responder(reply_words, summary_words))
                program = Society(agents=count, rounds=number, **settings)
                with dspy.context(lm=lm, disable_history=True, trace=None):
                    usage = program(question=words(question_words, "what")).transcript.usage()
                if usage.calls != program.max_calls():
                    raise SystemExit(f"{usage.calls} calls were made where {program.max_calls()} were expected")
                exchanged = sum(len(call.inputs.get(name, "")) for call in lm.engine.requests for name in EXCHANGED)
                rows.append(
                    {
                        "variant": variant,
                        "agents": count,
                        "rounds": number,
                        "calls": usage.calls,
                        "prompt_tokens": usage.prompt_tokens,
                        "exchanged_tokens": exchanged // CHARACTERS_PER_TOKEN,
                    }
                )
    return rows


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of a least-squares line through the points' logarithms."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def exponents(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each variant's growth with agents (most rounds) and with rounds of revision (most agents)."""
    most_rounds = max(row["rounds"] for row in rows)
    most_agents = max(row["agents"] for row in rows)
    found = []
    for variant in VARIANTS:
        mine = [row for row in rows if row["variant"] == variant and row["rounds"] > 1]
        fit: dict[str, Any] = {"variant": variant}
        for kind in ("prompt_tokens", "exchanged_tokens"):
            by_agents = [(row["agents"], row[kind]) for row in mine if row["rounds"] == most_rounds]
            by_rounds = [(row["rounds"] - 1, row[kind]) for row in mine if row["agents"] == most_agents]
            fit[f"{kind}_by_agents"] = round(slope(by_agents), 2)
            fit[f"{kind}_by_revisions"] = round(slope(by_rounds), 2)
        found.append(fit)
    return found


def print_tables(rows: Sequence[Mapping[str, Any]], fits: Sequence[Mapping[str, Any]]) -> None:
    """Print the measurements and the growth laws."""
    rounds = sorted({row["rounds"] for row in rows})
    print("prompt tokens of one question (estimated)\n")
    print(f"{'':12}{'agents':>7}" + "".join(f"{f'{number} rounds':>11}" for number in rounds))
    cells = {(row["variant"], row["agents"], row["rounds"]): row["prompt_tokens"] for row in rows}
    for variant in VARIANTS:
        for count in sorted({row["agents"] for row in rows}):
            figures = "".join(f"{cells[variant, count, number]:>11,}" for number in rounds)
            print(f"{variant:12}{count:>7}{figures}")
        print()
    print("fitted growth exponents      whole prompts            exchanged words")
    print(f"{'':24}{'agents':>9}{'revisions':>11}{'agents':>14}{'revisions':>11}")
    for fit in fits:
        print(
            f"{fit['variant']:24}{fit['prompt_tokens_by_agents']:>9}{fit['prompt_tokens_by_revisions']:>11}"
            f"{fit['exchanged_tokens_by_agents']:>14}{fit['exchanged_tokens_by_revisions']:>11}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--question-words", type=int, default=60)
    parser.add_argument("--reply-words", type=int, default=120)
    parser.add_argument("--summary-words", type=int, default=60)
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args(arguments)
    rows = measure(range(2, 9), range(1, 5), options.question_words, options.reply_words, options.summary_words)
    fits = exponents(rows)
    if options.json:
        print(json.dumps({"simulated": True, "rows": rows, "exponents": fits}, indent=2))
    else:
        print_tables(rows, fits)
    return 0


if __name__ == "__main__":
    sys.exit(main())
