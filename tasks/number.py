"""Tasks whose answer is one number."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

from ..errors import InputError
from ..metrics.extraction import NUMBER_RULES, extract_number, zeroeval_answer
from ..metrics.score import Score
from ..signatures.answers import display
from ..signatures.numbers import parse_number
from .base import Example, Task


class NumberTask(Task):
    """Base of tasks whose answer is one number, right when it has the value of the gold number exactly."""

    extract_rules: ClassVar[tuple[str, ...]] = NUMBER_RULES

    def extract(self, text: str, example: Example, rule: str = "flexible") -> Fraction | None:
        """Read the number that a text answers with; the rule `zeroeval` also looks at `meta["model"]`."""
        self._check_rule(rule)
        return extract_number(text, rule, model=example.meta.get("model"))

    def extracted(self, text: str, example: Example, rule: str, answer: Any | None) -> Any:
        """Return the number; under `zeroeval` the text that the rule cuts out, as ZeroEval's own files hold it."""
        if rule == "zeroeval":
            return zeroeval_answer(text, model=example.meta.get("model")).text
        return super().extracted(text, example, rule, answer)

    def score(self, answer: Any | None, example: Example) -> Score:
        """Return 1 for the gold value, however it is written (18, 18.0, "$18.00"), else 0.

        A float also counts as right when it is the float nearest to the gold value (records hold 2/3 as a float).
        A text that is not a number is a blank.
        """
        number = number_of(answer)
        gold = display(example.gold)
        if number is None:
            return Score(
                0.0, blank=True, feedback=f"No number was given. The right answer is {gold}. {self.why(example)}"
            )
        if same_number(answer, example.gold):
            return Score(1.0, feedback=f"{gold} is right.")
        return Score(0.0, feedback=f"{display(answer)} is wrong. The right answer is {gold}. {self.why(example)}")

    @abstractmethod
    def why(self, example: Example) -> str:
        """Say how the right answer comes about, for feedback."""


def number_of(answer: Any) -> Fraction | None:
    """Return the exact value of a typed answer, or of a text that is one number; None when it is not a number."""
    if isinstance(answer, bool) or answer is None:
        return None
    if isinstance(answer, int | Fraction):
        return Fraction(answer)
    if isinstance(answer, float):
        try:
            return Fraction(str(answer))
        except ValueError:  # nan, inf
            return None
    return parse_number(answer) if isinstance(answer, str) else None


def same_number(answer: Any, gold: Any) -> bool:
    """Return whether two numbers have the same value; a float also equals what it is the nearest float of."""
    left, right = number_of(answer), number_of(gold)
    if left is None or right is None:
        return False
    return left == right or ((isinstance(answer, float) or isinstance(gold, float)) and float(left) == float(right))


def gold_number(value: Any, where: str, field: str) -> int | float:
    """Return a gold number as JSON data.

    Raises:
        InputError: when the field is not a number.
    """
    number = number_of(value)
    if number is None:
        raise InputError(f"{where}, field {field}: '{value}' is not a number")
    return int(number) if number.denominator == 1 else float(number)
