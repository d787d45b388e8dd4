"""The value of arithmetic, computed exactly and within bounds."""

from __future__ import annotations

from fractions import Fraction

import pytest

from townhall.metrics.arithmetic import evaluate


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("2 - 3 - 4", -5),
        ("7 / 2", Fraction(7, 2)),
        ("1,200 + 3", 1203),
        ("80 × 0.8 ÷ 4", 16),
        (r"\frac{1}{2} + \frac{3}{4}", Fraction(5, 4)),
        (r"3 \times 5", 15),
        ("2(3 + 4)", 14),
        ("3 x 4", 12),
        ("40 * 5%", 2),
        ("2^10", 1024),
        ("-2^2", -4),
        ("2^-1", Fraction(1, 2)),
        ("--5", 5),
        ("$5 + $6", 11),
    ],
)
def test_values(text: str, value: object) -> None:
    assert evaluate(text) == value


@pytest.mark.parametrize("text", ["", "()", "x + 1", "12 cm", "12 3", "5!", "((((1", "1 / 0", "1 +", "1/2 (0.5)"])
def test_other_texts_have_no_value(text: str) -> None:
    assert evaluate(text) is None


@pytest.mark.timeout(5)
@pytest.mark.parametrize("text", ["9^9^9", "2**100000", "(" * 5000 + "1", "9^64^64", "1+" * 5000 + "1", "0^-1"])
def test_unbounded_work_is_refused(text: str) -> None:
    assert evaluate(text) is None
