"""Reading a text that is, as a whole, one number, and the grammar of numbers that all readers share."""

from __future__ import annotations

import re
from fractions import Fraction

#: Characters that are written for a minus: U+2212, U+FE63, U+FF0D and the en dash.
MINUS_SIGNS = {"\u2212": "-", "\u2013": "-", "\ufe63": "-", "\uff0d": "-"}
_MINUS = str.maketrans(MINUS_SIGNS)
#: Thin, figure and no-break spaces, which only ever stand inside a number as thousands separators.
_GROUP_SPACES = "\u00a0\u2009\u202f\u2007"
_VULGAR = {
    "¼": "1/4", "½": "1/2", "¾": "3/4", "⅓": "1/3", "⅔": "2/3", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5", "⅘": "4/5",
    "⅙": "1/6", "⅚": "5/6", "⅐": "1/7", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8", "⅑": "1/9", "⅒": "1/10",
}  # fmt: skip
#: Words that multiply the number before them. A dozen is left a unit: questions ask in dozens.
SCALES = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
#: Longer numbers than this are not read: nobody means them, and arithmetic on them would not end.
_MOST_DIGITS = 4000
_LARGEST_EXPONENT = 400

#: Digits with thousands separators (comma, Indian, dot, apostrophe, underscore, thin space), or without.
GROUPED = (
    r"(?:\d{1,3}(?:,\d{3})+(?!\d)"
    r"|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)"
    r"|\d{1,3}(?:\.\d{3}){2,}(?![.\d])"
    r"|\d{1,3}(?:\.\d{3})+(?=,\d)"
    r"|\d{1,3}(?:['’]\d{3})+(?!\d)"
    r"|\d+(?:_\d{3})+(?!\d)"
    rf"|\d{{1,3}}(?:[{_GROUP_SPACES}]\d{{3}})+(?!\d)"
    r"|\d+)"
)
_POWER = r"(?:\s*(?:×|\*|x|\\times|\\cdot)\s*10\s*(?:\^|\*\*)\s*\{?\s*([-+]?\d+)\s*\}?)"
_DECIMAL = re.compile(
    rf"^([-+]?)(?:({GROUPED})?(\.\d*|,\d+(?=$))?)(\.\.\.|…|\\overline\{{\d+\}})?(?:[eE]([-+]?\d+))?{_POWER}?$"
)
_MIXED = re.compile(rf"^([-+]?)(?:({GROUPED})\s+(?:and\s+)?)?({GROUPED})\s*[/\u2044]\s*({GROUPED})$")
_LATEX_FRACTION = re.compile(
    r"^([-+]?)(\d*)\s*\\[dtc]?frac\s*(?:\{\s*([-+]?[\d,]+)\s*\}|(\d))\s*(?:\{\s*([\d,]+)\s*\}|(\d))$"
)
_CURRENCY = r"(?:\\?\$|US\$|USD|EUR|GBP|Rs\.?|₹|€|£|¥)"
_LEADING_CURRENCY = re.compile(rf"^([-+]?)\s*{_CURRENCY}\s*([-+]?)")
_TRAILING_CURRENCY = re.compile(r"\s*(?:\\?\$|€|£|¥|₹|USD|EUR|GBP)$")


def parse_number(text: str) -> Fraction | None:
    """Return the value of a text that is one number, exactly; None when it is anything else.

    Reads thousands separators ("2,125", "1 250" with thin spaces, "1.234,56"), a currency sign before or after,
    U+2212 as a minus, fractions ("2/3", "½"), mixed numbers ("2 1/4"), LaTeX (`\\frac{2}{3}`, `\\frac12`), powers of
    ten ("1.2e5", "1.2 × 10^5"), repeating decimals written with dots ("21.333..."), scale words ("3 million") and
    surrounding `$`. A percent sign is dropped: "20%" is 20. A comma that does not group three digits ("3,5") makes
    no number, for it may separate two.
    """
    cleaned = _clean(text)
    if not cleaned or len(cleaned) > 2 * _MOST_DIGITS:
        return None
    scale = 1
    head, _, last = cleaned.rpartition(" ")
    if head and last.lower() in SCALES:
        cleaned, scale = head.strip(), SCALES[last.lower()]
    value = _value(cleaned)
    return None if value is None else value * scale


def _clean(text: str) -> str:
    cleaned = text.translate(_MINUS).strip()
    for sign, spelled in _VULGAR.items():
        if sign in cleaned:
            cleaned = cleaned.replace(sign, f" {spelled}").strip()
            cleaned = re.sub(r"^([-+])\s+", r"\1", cleaned)
    cleaned = re.sub(r"^\\[(\[]\s*|\s*\\[)\]]$", "", cleaned)
    cleaned = f"-{cleaned[1:].strip('$')}" if cleaned.startswith("-") else cleaned.strip("$").strip()
    cleaned = cleaned.replace("\\!", "").replace("{,}", ",").replace("\\,", "\u2009").replace("\\%", "%")
    cleaned = re.sub(r"\s*%$", "", cleaned).strip()
    cleaned = _LEADING_CURRENCY.sub(lambda match: match.group(1) or match.group(2), cleaned)
    cleaned = _TRAILING_CURRENCY.sub("", cleaned)
    if cleaned.endswith(".") and not cleaned.endswith(".."):
        cleaned = cleaned[:-1]
    return cleaned.strip()


def _value(cleaned: str) -> Fraction | None:
    if match := _LATEX_FRACTION.match(cleaned):
        sign, whole, top, top_digit, bottom, bottom_digit = match.groups()
        if (top or "").startswith("-"):
            sign, top = ("" if sign == "-" else "-"), top[1:]
        return _fraction(sign, whole, top or top_digit, bottom or bottom_digit)
    if match := _MIXED.match(cleaned):
        return _fraction(*match.groups())
    if match := _DECIMAL.match(cleaned):
        return _decimal(*match.groups())
    return None


def _decimal(
    sign: str, whole: str | None, fraction: str | None, repeats: str | None, exponent: str | None, power: str | None
) -> Fraction | None:
    if fraction and fraction.startswith(",") and not (whole and "." in whole):
        return None  # "3,5" may be two numbers
    digits = (fraction or "")[1:]
    integer = _integer(whole)
    if integer is None or (whole is None and not digits) or len(digits) > _MOST_DIGITS:
        return None
    value = Fraction(integer)
    if digits:
        value += Fraction(int(digits), 10 ** len(digits))
    if repeats:
        period = repeats[len("\\overline{") : -1] if repeats.startswith("\\") else _period(digits)
        if period and len(period) <= _LARGEST_EXPONENT:
            value += Fraction(int(period), (10 ** len(period) - 1) * 10 ** len(digits))
        elif not digits:
            return None
    for text in (exponent, power):
        if text is not None:
            if len(text) > 5 or abs(int(text)) > _LARGEST_EXPONENT:
                return None
            value *= Fraction(10) ** int(text)
    return -value if sign == "-" else value


def _period(digits: str) -> str:
    """Return the block of digits that stands at least twice at the end of "0.333..." or "0.2727..."."""
    for length in range(1, len(digits) // 2 + 1):
        block = digits[-length:]
        if digits[-2 * length : -length] == block:
            return block
    return ""


def _integer(text: str | None) -> int | None:
    digits = re.sub(r"\D", "", text or "0")
    return int(digits) if 0 < len(digits) <= _MOST_DIGITS else None


def _fraction(sign: str, whole: str | None, top: str, bottom: str) -> Fraction | None:
    integer, numerator, denominator = _integer(whole or "0"), _integer(top), _integer(bottom)
    if integer is None or numerator is None or not denominator:
        return None
    value = integer + Fraction(numerator, denominator)
    return -value if sign == "-" else value
