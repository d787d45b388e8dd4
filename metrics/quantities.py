"""Numbers in words ("twenty-three") and quantities in several units ("2 minutes 5 seconds")."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from ..signatures.numbers import SCALES
from .number_tokens import Number

#: Units of one kind with their sizes; singular, plural and short forms.
_SIZES: dict[str, dict[str, int | Fraction]] = {
    "time": {
        "seconds second secs sec s": 1,
        "minutes minute mins min m": 60,
        "hours hour hrs hr h": 3600,
        "days day d": 86400,
        "weeks week wks wk": 604800,
    },
    "calendar": {"months month": 1, "years year yrs yr": 12},
    "length": {"inches inch in": 1, "feet foot ft": 12, "yards yard yds yd": 36, "miles mile": 63360},
    "short metres": {"centimeters centimeter centimetres centimetre cm": 1, "meters meter metres metre m": 100},
    "long metres": {"meters meter metres metre m": 1, "kilometers kilometer kilometres kilometre km": 1000},
    "weight": {"ounces ounce oz": 1, "pounds pound lbs lb": 16},
    "mass": {"grams gram g": 1, "kilograms kilogram kg": 1000},
    "volume": {"cups cup": 1, "pints pint": 2, "quarts quart": 4, "gallons gallon": 16},
    "money": {"cents cent": Fraction(1, 100), "dollars dollar": Fraction(1)},
}
_FAMILIES: dict[str, dict[str, Fraction]] = {
    family: {name: Fraction(size) for names, size in sizes.items() for name in names.split()}
    for family, sizes in _SIZES.items()
}


def read_quantity(text: str, found: Sequence[Number]) -> Fraction | None:
    """Return a quantity in two or three units of one kind, the largest first; None for other texts.

    It is counted in the smallest unit that is named, money in dollars.

    Args:
        text: a text that begins with the first number.
        found: all its numbers.
    """
    if not 2 <= len(found) <= 3 or any(number.value is None or number.kind != "number" for number in found):
        return None
    names = []
    for number, following in zip(found, [*found[1:], None], strict=True):
        between = text[number.end : following.start if following else len(text)]
        match = re.match(r"\s*([A-Za-z]+)\.?\s*(?:,|and|&|,\s*and)?\s*(.*)$", between, re.DOTALL)
        if match is None or match.group(2).strip(" .!"):
            if number.money and re.fullmatch(r"\s*(?:,|and|&)\s*", between):
                names.append("dollars")
                continue
            return None
        names.append("dollars" if number.money and not following else match.group(1).lower())
    if found[0].money and names[-1] in ("cents", "cent"):
        names[0] = "dollars"
    for family, units in _FAMILIES.items():
        sizes = [units[name] for name in names if name in units]
        if len(sizes) == len(names) and sizes == sorted(set(sizes), reverse=True):
            total = sum(((number.value or 0) * size for number, size in zip(found, sizes, strict=True)), Fraction(0))
            return total if family == "money" else total / sizes[-1]
    return None


_ONES = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5}
#: After these a number word counts nothing: "one of them", "one possible way".
_NOT_COUNTING = frozenset({"of", "way", "possible", "who", "that", "can", "could", "cannot", "must", "needs", "should"})


def read_number_words(text: str) -> Fraction | None:
    """Return the value of a text that begins with a number in words ("twenty-three eggs"); None for other texts.

    The text may go on with a unit of up to four words; "one of them" and "one way" are no numbers.
    """
    words = re.findall(r"[a-z]+", text.lower())
    negative = bool(words) and words[0] in ("minus", "negative")
    words = words[negative:]
    total = current = used = 0
    for position, word in enumerate(words):
        following = words[position + 1] if position + 1 < len(words) else ""
        if word in _ONES or word in _TENS:
            current += _ONES.get(word, 0) + _TENS.get(word, 0)
        elif word == "hundred" and used:
            current = (current or 1) * 100
        elif word in SCALES and used:
            total, current = total + (current or 1) * SCALES[word], 0
        elif not (word == "and" and used and (following in _ONES or following in _TENS)):
            break
        used = position + 1
    rest = words[used:]
    if not used:
        return Fraction(1, 2) if rest[:1] == ["half"] and len(rest) <= 3 else None
    value = Fraction(total + current)
    if len(rest) > 4 or (rest and rest[0] in _NOT_COUNTING):
        return None
    if rest and (part := _PARTS.get(rest[0].removesuffix("s"))):
        value, rest = value / part, rest[1:]
    if {"or", "and", "to"} & set(rest) and any(word in _ONES or word in _TENS for word in rest):
        return None
    return -value if negative else value
