"""A tiny task, a scripted model that adds, and a cache of replies of each test's own."""

from __future__ import annotations

import re
from typing import Any

import pytest

from townhall.metrics.score import Score
from townhall.tasks.base import Example, Task

QUESTION = re.compile(r"What is (\d+) \+ (\d+)\?")


class Sums(Task):
    """Adding two numbers; a row has `a` and `b`, and may have its own `gold`."""

    name = "sums"
    summary = "adding two numbers"
    answer_type = int
    option_help = {"shift": "added to every right answer"}
    group_fields = ("size",)

    def example(self, row: Any, where: str) -> Example:
        a, b = int(row["a"]), int(row["b"])
        gold = row.get("gold", a + b)
        return Example(
            id=str(row.get("id", f"{a}+{b}")),
            question=f"What is {a} + {b}?",
            gold=gold,
            meta={"size": "small" if a < 10 else "large"},
        )

    def extract(self, text: str, example: Example, rule: str = "flexible") -> int | None:
        numbers = re.findall(r"-?\d+", text)
        return int(numbers[-1]) if numbers else None

    def score(self, answer: Any, example: Example) -> Score:
        if answer is None:
            return Score(0.0, blank=True, feedback="no number")
        right = answer == example.gold
        return Score(float(right), parts={"off": abs(answer - example.gold)}, feedback="right" if right else "wrong")


@pytest.fixture(autouse=True)
def reply_folder(tmp_path, monkeypatch):
    """The cache folder of this test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TOWNHALL_CACHE", str(folder))
    return folder


@pytest.fixture
def sums(tmp_path):
    """Return `make(count)`: a task with the examples 0+1, 1+2, 2+3, ..."""

    def make(count: int = 6) -> Task:
        file = tmp_path / f"sums-{count}.jsonl"
        file.write_text("".join(f'{{"a": {n}, "b": {n + 1}}}\n' for n in range(count)))
        return Sums(file)

    return make


@pytest.fixture
def sums_task():
    """The class of the tiny task."""
    return Sums


def operands(messages: Any) -> tuple[int, int]:
    """Return the numbers that the last question in a prompt asks to add."""
    a, b = QUESTION.findall(messages[-1][1])[-1]
    return int(a), int(b)


@pytest.fixture
def asked():
    """The function that reads the operands from a prompt."""
    return operands


@pytest.fixture
def adder(scripted_lm):
    """Return `make(script=None, **settings) -> (lm, engine)`: a model that adds, or does what `script(a, b)` says.

    What the script returns is the answer; a dict or a text is sent as the whole reply.
    """

    def make(script=None, **settings):
        def reply(messages, seed):
            a, b = operands(messages)
            answer = a + b if script is None else script(a, b)
            return answer if isinstance(answer, dict | str) else {"reasoning": f"{a} and {b}", "answer": answer}

        return scripted_lm(reply, **settings)

    return make
