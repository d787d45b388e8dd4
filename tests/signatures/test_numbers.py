"""Texts that are, as a whole, one number."""

from __future__ import annotations

from fractions import Fraction

import pytest

from townhall.signatures.answers import canonical
from townhall.signatures.numbers import parse_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$29.00", 29),
        ("2,125", 2125),
        ("-5", -5),
        ("\u22125", -5),
        ("+5", 5),
        ("42.", 42),
        (".5", Fraction(1, 2)),
        ("1/2", Fraction(1, 2)),
        (r"\frac{2}{3}", Fraction(2, 3)),
        (r"\frac12", Fraction(1, 2)),
        (r"-\dfrac{1}{2}", Fraction(-1, 2)),
        (r"\frac{-1}{2}", Fraction(-1, 2)),
        (r"2\frac{1}{4}", Fraction(9, 4)),
        ("2 1/4", Fraction(9, 4)),
        ("7 and 1/3", Fraction(22, 3)),
        ("½", Fraction(1, 2)),
        ("-2½", Fraction(-5, 2)),
        ("7.333...", Fraction(22, 3)),
        ("3.14...", Fraction("3.14")),
        (r"0.\overline{3}", Fraction(1, 3)),
        ("20%", 20),
        (r"20\%", 20),
        ("$200,000$", 200_000),
        (r"\$200{,}000", 200_000),
        ("1,00,000", 100_000),
        ("1.234,56", Fraction("1234.56")),
        ("1.234.567", 1_234_567),
        ("200\u202f000", 200_000),
        ("200_000", 200_000),
        ("1e5", 100_000),
        (r"1.2 \times 10^{5}", 120_000),
        ("3 million", 3_000_000),
        ("€29", 29),
        ("29 €", 29),
        ("-$120", -120),
        ("$-120", -120),
        ("\uff15", 5),
        ("0." + "0" * 1400, 0),
    ],
)
def test_numbers(text: str, value: object) -> None:
    assert parse_number(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "-", ".", "$", "x", "3,5", "1,2,3", "1,234,56", "2.5.1", "10-15", "1/0", "12 cm", "42!", "1.5/2", "200 000"],
)
def test_other_texts(text: str) -> None:
    assert parse_number(text) is None


@pytest.mark.timeout(5)
@pytest.mark.parametrize("text", ["9" * 100_000, "1e999999999", "1e-999999999", "0." + "1" * 100_000])
def test_numbers_nobody_means_are_not_computed(text: str) -> None:
    assert parse_number(text) is None


def test_equal_values_are_one_voting_bucket() -> None:
    assert len({canonical(text) for text in ("0.5", "1/2", r"\frac12", "½", "0.50", "$0.50", "5e-1")}) == 1
    assert canonical("20%") == canonical("20") != canonical("0.2")
