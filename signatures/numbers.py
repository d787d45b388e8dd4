"""Reading a text that is, as a whole, one number."""

from __future__ import annotations

import re
from fractions import Fraction

_MINUS = str.maketrans({"\u2212": "-", "\u2013": "-", "\ufe63": "-", "\uff0d": "-"})
_PLAIN = re.compile(r"^[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?(?:[eE][-+]?\d+)?$")
_MIXED = re.compile(r"^([-+]?)(?:(\d+)\s+)?(\d+)\s*/\s*(\d+)$")
_LATEX_FRACTION = re.compile(r"^([-+]?)(\d*)\s*\\[dt]?frac\s*(?:\{\s*([-+]?\d+)\s*\}|(\d))\s*(?:\{\s*(\d+)\s*\}|(\d))$")


def parse_number(text: str) -> Fraction | None:
    """Return the value of a text that is one number, exactly; None when it is anything else.

    Reads thousands commas, a leading currency sign, U+2212 as a minus, fractions ("2/3"), mixed numbers ("2 1/4"),
    LaTeX (`\\frac{2}{3}`, `\\frac12`) and surrounding `$`. A percent sign is dropped: "20%" is 20.
    """
    cleaned = text.translate(_MINUS).strip().strip("$").strip()
    cleaned = re.sub(r"^([-+]?)\s*(?:\\?\$|€|£|¥)\s*", r"\1", cleaned).replace("\\!", "").replace("{,}", ",")
    cleaned = re.sub(r"\s*\\?%$", "", cleaned).rstrip(".").strip()
    if not cleaned:
        return None
    if match := _LATEX_FRACTION.match(cleaned):
        sign, whole, top, top_digit, bottom, bottom_digit = match.groups()
        return _fraction(sign, whole, top or top_digit, bottom or bottom_digit)
    if match := _MIXED.match(cleaned):
        return _fraction(*match.groups())
    if _PLAIN.match(cleaned) and any(character.isdigit() for character in cleaned):
        try:
            return Fraction(cleaned.replace(",", ""))
        except (ValueError, OverflowError):
            return None
    return None


def _fraction(sign: str, whole: str | None, top: str, bottom: str) -> Fraction | None:
    if int(bottom) == 0:
        return None
    value = Fraction(int(whole or 0)) + Fraction(int(top), int(bottom))
    return -value if sign == "-" else value
