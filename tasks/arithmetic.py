"""Arithmetic: the value of a + b * c + d - e * f, generated (society of minds, section 3.1)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ..errors import InputError
from ..signatures.demonstrations import Demonstration
from ..signatures.transcript import Persona
from .base import TASKS, Example, field_of, row_id
from .number import NumberTask, gold_number
from .options import integer_option


@TASKS.register("arithmetic")
class Arithmetic(NumberTask):
    """Six random whole numbers in a + b * c + d - e * f.

    The paper's text speaks of two-digit numbers, its appendix of numbers from 0 to 30: `low` and `high` set the range
    (default 10 to 99; `low=0, high=30` gives the appendix's). No two examples of one generated set are the same.

    A data file's rows have `question` and `answer`.
    """

    name: ClassVar[str] = "arithmetic"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "a + b * c + d - e * f with random two-digit numbers"
    answer_type: ClassVar[Any] = int
    option_help: ClassVar[Mapping[str, str]] = {
        "count": "how many questions are generated (300)",
        "seed": "of the generator (0)",
        "low": "least number (10)",
        "high": "greatest number (99)",
    }

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        self.count = integer_option(self.options, "count", 300, minimum=1)
        self.seed = integer_option(self.options, "seed", 0)
        self.low = integer_option(self.options, "low", 10)
        self.high = integer_option(self.options, "high", 99)
        if self.low > self.high:
            raise InputError(f"option low is {self.low}, above high, which is {self.high}")
        # Rejection of repeats is quick as long as at most half of all questions are wanted.
        if 2 * self.count > (self.high - self.low + 1) ** 6:
            raise InputError(
                f"option count is {self.count}, too many for numbers from {self.low} to {self.high}; "
                f"it can be at most {(self.high - self.low + 1) ** 6 // 2} with them"
            )

    def generate(self) -> Iterator[dict[str, Any]]:
        """Yield `count` rows; a larger count with the same seed begins with the same rows."""
        generator = random.Random(self.seed)
        seen = {demonstration.question for demonstration in self.demonstrations()}
        number = 0
        while number < self.count:
            numbers = [generator.randint(self.low, self.high) for _ in range(6)]
            question = render(*numbers)
            if question in seen:
                continue
            seen.add(question)
            a, b, c, d, e, f = numbers
            yield {
                "id": f"arithmetic-{self.seed}-{number}",
                "question": question,
                "answer": a + b * c + d - e * f,
                "numbers": numbers,
            }
            number += 1

    def example(self, row: Mapping[str, Any], where: str) -> Example:
        """Build an example from `question` and `answer`."""
        question = str(field_of(row, "question", where))
        gold = gold_number(field_of(row, "answer", where), where, "answer")
        meta = {"numbers": row["numbers"]} if row.get("numbers") else {}
        return Example(id=row_id(row, question), question=question, gold=gold, meta=meta)

    def why(self, example: Example) -> str:
        """Say how the value comes about."""
        if "numbers" not in example.meta:
            return "Multiplications come before additions and subtractions."
        a, b, c, d, e, f = example.meta["numbers"]
        return (
            f"The products come first: {b} * {c} = {b * c} and {e} * {f} = {e * f}; "
            f"then {a} + {b * c} + {d} - {e * f} = {a + b * c + d - e * f}."
        )

    def demonstrations(self) -> list[Demonstration]:
        """Return one worked problem."""
        return [
            Demonstration(
                question=render(7, 13, 12, 40, 6, 25),
                reasoning=(
                    "The products come first: 13 * 12 = 156 and 6 * 25 = 150. "
                    "Then from left to right: 7 + 156 = 163, 163 + 40 = 203, 203 - 150 = 53."
                ),
                answer=53,
                mistaken_reasoning="7 + 13 = 20 and 20 * 12 = 240. 240 + 40 = 280. 6 * 25 = 150. 280 - 150 = 130.",
                mistaken_answer=130,
                correction=(
                    "7 must not be added to 13 before the multiplication: 13 * 12 = 156 comes first, so the sum starts "
                    "with 7 + 156 = 163, not with 240."
                ),
                personas=[
                    Persona(
                        name="Calculator", expertise="mental arithmetic", stance="writes down every partial result"
                    ),
                    Persona(name="Order Keeper", expertise="order of operations", stance="checks what is done first"),
                    Persona(name="Auditor", expertise="error checking", stance="recomputes each product another way"),
                ],
            )
        ]


def render(a: int, b: int, c: int, d: int, e: int, f: int) -> str:
    """Return the question for six numbers."""
    return f"Work out the value of {a} + {b} * {c} + {d} - {e} * {f}. Multiply before you add or subtract."
