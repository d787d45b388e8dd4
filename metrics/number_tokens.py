"""Finding the numbers in a text, with their signs, currencies, scale words and percent signs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from ..signatures.numbers import GROUPED, SCALES, parse_number

#: Characters that are a fraction by themselves.
VULGAR = "¼½¾⅓⅔⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒"

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_CLOCK = r"(?<![\w:.])(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d)?(?![\d:])(?:\s*[ap]\.?m\b\.?)?"
_DATE = (
    r"(?<![\w/])\d{1,2}/\d{1,2}/(?:\d{4}|\d{2})(?![\d/])|(?<![\w-])\d{4}-\d{2}-\d{2}(?![\d-])"
    rf"|\b{_MONTH}\s+{_DAY},?\s+\d{{4}}\b|\b{_DAY}\s+(?:of\s+)?{_MONTH},?\s+\d{{4}}\b"
)
_RATIO = r"(?<![\w:.])\d+:\d+(?::\d+)*(?![\w:])"
_CURRENCY = r"(?:(?:\\?\$|€|£|¥|₹|US\$|(?<![A-Za-z])(?:USD|EUR|GBP|Rs\.?|INR)\s?)\s?)"
_POWER_OF_TEN = r"(?:\s*(?:×|\\times|\\cdot|\*|x)\s*10\s*(?:\^|\*\*)\s*\{?\s*[-+−]?\d+\s*\}?)"
_BODY = "|".join(
    (
        r"(?<![\w.^\\])\d*\s?\\[dtc]?frac\s*(?:\{\s*[-+]?\d+\s*\}|\d)\s*(?:\{\s*\d+\s*\}|\d)",
        rf"(?<![\w.^])\d*\s?[{VULGAR}]",
        r"(?<![\w.^/])\d+\s+(?:and\s+)?\d+/\d+(?![\w/.]|\.\d)",
        rf"(?<![\w.^/]){GROUPED}/{GROUPED}(?![\d/]|\.\d)",
        r"(?<![\w.^])\d{1,3}(?:\.\d{3})+,\d+(?![\d,])",
        rf"(?<![\w^])(?<![\w)]\.)(?:{GROUPED}(?:\.\d+)?|\.\d+)(?:\.\.\.|…|\\overline\{{\d+\}})?"
        rf"(?:[eE][-+−]?\d+(?!\w))?{_POWER_OF_TEN}?",
    )
)
_SCALE = r"(?:\s+(?:hundred|thousand|million|billion|trillion)\b|(?<=\d)(?:k|m|bn?)\b)"
_NUMBER = re.compile(
    rf"(?P<clock>{_CLOCK})|(?P<date>{_DATE})|(?P<ratio>{_RATIO})"
    rf"|(?:(?P<sign>[-+−–﹣－]|\b(?:minus|negative)\s+)\s?)?(?P<currency>{_CURRENCY})?(?P<inner>[-−])?"
    rf"(?P<body>{_BODY})(?P<scale>{_SCALE})?(?P<percent>\s?\\?%)?",
    re.IGNORECASE,
)
_LETTER_SCALES = {"k": 10**3, "m": 10**6, "b": 10**9, "bn": 10**9}


@dataclass(frozen=True)
class Number:
    """A number in a text.

    Attributes:
        start: where it begins, sign and currency included.
        end: where it ends, scale word and percent sign included.
        value: its value; None for a date, a ratio or a number too long to read.
        kind: "number", "clock", "date" or "ratio".
        ordinal: "3rd".
        money: it has a currency sign.
    """

    start: int
    end: int
    value: Fraction | None
    kind: str = "number"
    ordinal: bool = False
    money: bool = False


def numbers_in(text: str) -> Iterator[Number]:
    """Yield the numbers of a text in order; digits inside words ("A1", "H2O") and exponents ("m^2") are none."""
    for match in _NUMBER.finditer(text):
        if match.group("clock"):
            yield Number(match.start(), match.end(), _hours(match.group("clock")), "clock")
        elif match.group("date"):
            yield Number(match.start(), match.end(), None, "date")
        elif match.group("ratio"):
            yield Number(match.start(), match.end(), None, "ratio")
        elif number := _number(text, match):
            yield number


def has_number(text: str) -> bool:
    """Return whether a text has a digit or a fraction sign."""
    return any(character.isdigit() or character in VULGAR for character in text)


def _hours(clock: str) -> Fraction:
    parts = [int(part) for part in re.findall(r"\d+", clock)]
    return sum((Fraction(part, 60**power) for power, part in enumerate(parts)), Fraction(0))


def _number(text: str, match: re.Match[str]) -> Number | None:
    start, end = match.span()
    body = match.start("body")
    if re.search(r"[\^_]\s*\{?\s*[-−]?$", text[max(0, body - 4) : body]):
        return None
    sign = (match.group("sign") or "").strip().lower()
    negative = sign not in ("", "+")
    if sign and not _is_sign(text[max(0, start - 20) : start], sign, text[match.end("sign") : body]):
        negative = False
        start = min(position for name in ("currency", "inner", "body") if (position := match.start(name)) >= 0)
    if match.group("inner"):
        negative = not negative
    scale = (match.group("scale") or "").strip().lower()
    factor = SCALES.get(scale, _LETTER_SCALES.get(scale, 1))
    if scale in ("m", "b", "bn") and not match.group("currency"):  # "5 m" is metres
        factor, end = 1, match.start("scale")
    value = parse_number(match.group("body"))
    if value is not None:
        value = (-value if negative else value) * factor
    ordinal = bool(re.match(r"(?:st|nd|rd|th)\b", text[end : end + 3], re.IGNORECASE))
    return Number(start, end, value, ordinal=ordinal, money=bool(match.group("currency")))


def _is_sign(before: str, sign: str, gap: str) -> bool:
    """Return whether a dash before digits makes them negative: not "10-5", "pages 3 - 5", "- a list" or "COVID-19"."""
    if sign == "negative":
        return True
    last = before.rstrip()[-1:] or " "
    after_operand = last.isdigit() or last in ")]}%"
    if sign == "minus":
        return not after_operand
    if before[-1:].isalnum() or after_operand:
        return False
    if gap.startswith(" "):
        # "- 5" is an item of a list, but a negative number after "=" or ":".
        return last in ("=", "≈", ":", "(")
    return True
