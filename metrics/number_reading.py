"""Reading one number from a short text that states an answer.

What counts where a text is ambiguous:

- "20%" is 20; "0.2" and "20%" are different answers.
- Units are dropped: "12 cm" is 12. A quantity in several units of one kind is counted in the smallest one that is
  named ("2 minutes 5 seconds" is 125), money in the main one ("5 dollars and 20 cents" is 5.2).
- A clock time is its hours: "3:00 pm" is 3, "15:00" is 15, "2:30" is 5/2. A date is no number.
- "1 of 3" is 1, "2/3" is two thirds, "3:2" is no number.
- An equation is its last side ("8 * 0.5 = 4" is 4); arithmetic without a result is its value ("30 - (4 + 6)"
  is 20); an expression with a variable ("3 + 2x") is no number.
- Several answers ("4 cats and 7 dogs", "10-15", "x = 2 or x = 3") are not one number: a blank.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..signatures.numbers import parse_number
from .arithmetic import evaluate
from .markup import plain_text
from .number_tokens import has_number, numbers_in
from .number_weighing import VERB, strip_filler, weigh, without_parentheses
from .patterns import any_of
from .prose import closing_prose, concludes, is_cut_off, sentences
from .quantities import read_number_words, read_quantity


@dataclass(frozen=True)
class Reading:
    """What a passage says.

    Attributes:
        value: the number; None where there is none.
        stated: the passage is an answer all the same: a refusal, several numbers, an expression with a variable.
    """

    value: Fraction | None
    stated: bool


_NOTHING = Reading(None, False)
_BLANK = Reading(None, True)

_UNABLE = any_of(
    "can(?:no|['’]?)t, can not, could not, couldn['’]t, unable to, impossible to, not possible to, hard to"
)
_TO_FIND = any_of(
    "determin, find, found, calculat, answer, solv, say, said, provid, tell, told, comput, know, conclud, deduc,"
    "infer, state, give, specif, establish"
)
_REFUSED = re.compile(
    rf"\b{_UNABLE}\s+(?:be\s+)?(?:\w+ly\s+)?{_TO_FIND}"
    r"|\b(?:not|in)[ -]?(?:enough|sufficient)\b[^.]*\b(?:information|data|details?|context)\b"
    r"|\binsufficient\b|\bunknown\b|\bun(?:determined|defined|answerable|solvable|clear|certain)\b|\bindeterminate\b"
    r"|\bno (?:unique |valid |real |possible |integer )*solutions?\b|\berror in\b"
    r"|\b(?:do|does|did)(?: not|n['’]t) know\b|\bdepends on\b|\bno (?:definite |final |clear )?answer\b"
    r"|\bnot (?:specified|given|provided|applicable|sure|known|determinable|defined)\b|^\W*(?:n/?a|nan|null)\W*$",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"^\W*(?:\.\.\.|…|<[^<>]*>|\[[^\[\]\d]*\]|see (?:above|below)|x+|number|integer"
    r"|(?:your|the|my|final|numerical|numeric)\s+(?:final\s+)?(?:answer|number|value|result)(?:\s+here)?)\W*$",
    re.IGNORECASE,
)
# "x", "3x", "2x^2" before an operator or at the end, and the irrational signs.
_VARIABLE = re.compile(
    r"(?<![\w\\])(?:\d+(?:\.\d+)?\s?)?[a-zA-Z](?:\^\{?\d+\}?)?(?![\w'’])(?=\s*[-+*/^=<>)\n]|\s*$)"
    r"|\d[xynXYN](?!\w)|π|\\pi\b|√|\\sqrt|\bpi\b|\bsqrt\b"
)
_ALGEBRA = re.compile(
    r"\d\s*[-+*/×]\s*\$?(?:\d+(?:\.\d+)?)?\s?[a-zA-Z](?![a-zA-Z])"
    r"|(?<![a-zA-Z'’])\$?(?:\d+(?:\.\d+)?)?[a-zA-Z]\s*[-+*/×]\s*\$?\d"
)
_TO_SOLVE = re.compile(
    r"(?<![a-zA-Z])\d*[xyzn]\s*[-+*/]\s*[\dxyzn(]|[\dxyzn)]\s*[-+*/]\s*\d*[xyzn](?![a-zA-Z])|\d[xyzn]\s*$"
)
# One sentence that gives a number: "Tom has 5 apples.", "It is 5.", "I got 5", "Total cost: $5", "5 = n".
_BETWEEN = any_of(
    "to [a-z]+, about, approximately, around, only, just, exactly, a total of, at least, him, her, them, up to,"
    "also, then, still, [A-Z]\\w+"
)
_TAKES = re.compile(
    rf"{VERB}\s+(?:{_BETWEEN}\s+){{0,3}}[-−$€£]?\s?\d"
    r"|[=≈]\s*[-−$€£]?\s?\d|^\W*(?:i|we)\s+(?:get|got|think|say|vote)\b|\bi(?:['’]d|\s+would)\s+(?:say|guess)\b"
    r"|^\W*(?:it|that|this)(?:['’]s| is)\b"
    r"|^[^:\n\d]{1,40}:\s*[-−$€£]?\s?\d|^\W*\d+\s*=\s*[a-z]\W*$",
    re.IGNORECASE,
)


# "Ann earns **$18** a day.": the number that a sentence sets in bold, but not a bold heading.
_BOLD_RESULT = re.compile(r"^\W*\w[^*\n]*\*\*[^*\n]*\d[^*\n]*\*\*[^*\n]*$")


def read_number(text: str, value: Any = None) -> Reading:
    """Read the number that an answer's text states.

    Args:
        text: a short text: a JSON value, a box's content, what follows "the answer is".
        value: the decoded JSON value, where the text is one.
    """
    if isinstance(value, bool):
        return _BLANK
    if isinstance(value, dict | list):
        return _read_structure(value)
    text = plain_text(text)
    bare = text.replace("**", " ").strip()
    if not bare or _PLACEHOLDER.match(bare):
        return _NOTHING
    if (whole := _whole(bare)) is not None:
        return Reading(whole, True)
    if not has_number(bare):
        if (worded := read_number_words(strip_filler(bare))) is not None:
            return Reading(worded, True)
        return _BLANK if _REFUSED.search(bare) else _NOTHING
    return _read_sentences(text)


def _whole(text: str) -> Fraction | None:
    """Read a text that is a number, perhaps with a unit, or a quantity, and nothing else."""
    if not text.endswith("..."):
        text = text.strip().rstrip("!?.;:,").strip()
    if inside := re.fullmatch(r"[(\[{<]\s*([^()\[\]{}<>]*)\s*[)\]}>]", text):
        text = inside.group(1).strip()
    if (value := parse_number(text)) is not None:
        return value
    if match := re.fullmatch(r"(?:\$\s?)?(\d{1,3}(?: \d{3})+)(\s*[^\W\d]+\.?|\s*[€%])?", text):
        return Fraction(re.sub(r"\D", "", match.group(1)))
    rest = strip_filler(text)
    found = list(numbers_in(rest))
    if not found or found[0].start > 0 or "=" in rest or "≈" in rest:
        return None
    if (quantity := read_quantity(rest, found)) is not None:
        return quantity
    tail = rest[found[0].end :]
    if len(found) == 2 and re.fullmatch(r"\s*(?:out\s+)?of\s+(?:the\s+)?", rest[found[0].end : found[1].start]):
        return found[0].value  # "1 of 3"
    return found[0].value if _is_unit(tail) else None


def _is_unit(tail: str) -> bool:
    """Return whether what follows a number may be its unit: words without digits, operators and conditions."""
    if len(tail.split()) > 6 or re.search(r"\d", re.sub(r"\^\s*\{?\d\}?|(?<=[A-Za-z])[23](?!\w)", "", tail)):
        return False
    if re.match(
        r"\s*[-+*^×÷<>]\s*[\w(]|\s*/\s*(?:[\d(]|[a-zA-Z](?![a-zA-Z]))|\s*(?:π|√|\\pi|\\sqrt|pi\b)|\s*±|[xyn]\b\s*[-+*/^]|[xyn]$",
        tail,
    ):
        return False
    if re.search(r"[-+*×÷=<>]\s*\w|[-+*×]\s*[\w(]", re.sub(r"(?<=\w)[-–](?=\w)", "", tail)):
        return False
    return not re.search(r"\b(?:or|and|but|if|when|not|plus|minus|times)\b|[;:]", tail)


# -- JSON values -----------------------------------------------------------------------------------------------------


def _read_structure(value: dict[str, Any] | list[Any]) -> Reading:
    """Read a JSON object or list: its only number, a quantity, or its total."""
    items = list(value.items()) if isinstance(value, dict) else [("", item) for item in value]
    if not items:
        return _NOTHING
    readings = [(str(key), read_number(_text_of(item), item)) for key, item in items]
    numbers = [(key, reading.value) for key, reading in readings if reading.value is not None]
    if len({number for _, number in numbers}) == 1:
        return Reading(numbers[0][1], True)
    if isinstance(value, dict) and numbers:
        joined = " ".join(f"{_text_of(item)} {key}" for key, item in items)
        if (quantity := read_quantity(joined, list(numbers_in(joined)))) is not None:
            return Reading(quantity, True)
        total = re.compile(r"total|combined|\bsum|altogether|overall|final|answer|result", re.IGNORECASE)
        totals = {number for key, number in numbers if total.search(key)}
        if len(totals) == 1:
            return Reading(totals.pop(), True)
    return _BLANK


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


# -- sentences -------------------------------------------------------------------------------------------------------


def _read_sentences(text: str) -> Reading:
    """Read an answer in sentences: those that conclude first, the last one first, then the others in order."""
    parts = [part for part in sentences(text) if re.search(r"\w", part)]
    refused = any(_REFUSED.search(part) for part in parts)
    kept = [part for part in map(_without_refusals, parts) if has_number(part)]
    if not kept:
        return _BLANK if refused else _NOTHING
    stated = False
    for part in [*(part for part in reversed(kept) if concludes(part)), *kept]:
        reading = read_sentence(part)
        if reading.value is not None:
            return reading
        stated = stated or reading.stated
    return Reading(None, stated or refused)


def _without_refusals(sentence: str) -> str:
    if not _REFUSED.search(sentence):
        return sentence
    clauses = re.split(r"(?:[,;]\s*|\s+)(?:but|however|though|although|yet)\b[,\s]*|;\s+", sentence)
    return ", ".join(clause for clause in clauses if not _REFUSED.search(clause))


def read_sentence(sentence: str) -> Reading:
    """Read the number that one sentence states as its result."""
    bare = sentence.replace("**", " ").strip()
    if (whole := _whole(bare)) is not None:
        return Reading(whole, True)
    if (equation := _equation(bare)) is not None:
        return equation
    if (value := _arithmetic(bare)) is not None:
        return Reading(value, True)
    return _BLANK if _ALGEBRA.search(bare) else _weighed(sentence)


def _weighed(text: str) -> Reading:
    value, stated = weigh(text)
    return Reading(value, stated)


def _equation(text: str) -> Reading | None:
    """Read the last side of an equation; None for a text without one."""
    if not re.search(r"[=≈⇒]|\bequals\b", text):
        return None
    if len(re.findall(r"(?<![\w.])[A-Za-z]\s*=", text)) > 1 and re.search(r"\bor\b|\band\b|,", text):
        sides = re.findall(r"=\s*([^=,;]+?)(?=\s*(?:,|;|\bor\b|\band\b|$))", text)
        values = {weigh(side)[0] for side in sides}
        return Reading(values.pop(), True) if len(values) == 1 else _BLANK  # "x = 2 or x = 3"
    sides = re.split(r"[=≈⇒]+|\bequals\b", text)
    if _TO_SOLVE.search(re.split(r"[,;]", sides[-2])[-1]):
        return _BLANK  # "2x + 3 = 51" is yet to be solved
    last = re.sub(r"^([-−])\s+(?=[\d$])", "-", sides[-1].strip().rstrip("."))
    if not has_number(last):
        if not _VARIABLE.search(last):
            return None
        if re.fullmatch(r"[A-Za-z]", last) and len(sides) == 2 and (left := _whole(sides[0].strip())) is not None:
            return Reading(left, True)  # "5 = x"
        return _BLANK
    if (whole := _whole(last)) is not None:
        return Reading(whole, True)
    clause = re.split(r"[,;]\s+(?!\d)|\s+(?:so|which|because|since|where|and|for|after|as)\s+", last)[0].strip()
    if (whole := _whole(clause)) is not None:
        goes_on = re.search(r"\b(?:so|which|is)\b[^=]*\d", last[len(clause) :])
        return _weighed(last) if goes_on else Reading(whole, True)
    if (value := _arithmetic(clause)) is not None:
        return Reading(value, True)
    if re.search(r"[-+*/^×÷]", clause) and _VARIABLE.search(clause):
        return _BLANK
    first = next(numbers_in(last), None)
    if first and first.start == 0 and re.match(r"\s+[a-z]{2,}", last[first.end :]):  # "= 15 litres of the 24 litres"
        return Reading(first.value, True)
    return None


def _arithmetic(text: str) -> Fraction | None:
    if re.search(r"[A-Za-z]{3,}", text) or _is_range(text):
        return None
    if any(number.kind != "number" for number in numbers_in(text)):
        return None
    return evaluate(text.rstrip(". "))


def _is_range(text: str) -> bool:
    """Return whether a text is "10-15" or "10 - 15": more likely from 10 to 15 than minus five."""
    match = re.fullmatch(r"\s*\$?([\d.,]+)\s*[-–−]\s*\$?([\d.,]+)\s*%?\s*", text)
    if not match:
        return False
    low, high = (parse_number(part) for part in match.groups())
    return low is None or high is None or low < high or not re.search(r"\s[-–−]\s", text)


# -- texts that mark no answer ---------------------------------------------------------------------------------------


def read_conclusion(text: str) -> Fraction | None:
    """Read the number that a prepared text comes to, where it marks no answer.

    That is a text which is an answer and nothing else ("42 apples", "I vote for 1 of 3"), one sentence whose verb takes
    the number ("Tom has 5 apples."), or else the last sentence with a number, if it concludes ("So she has 18 eggs.",
    "It is 72 in total."), sets it in bold, or ends in the result of an equation. What follows it may hold no more
    numbers.
    """
    if is_cut_off(text):
        return None
    prose = closing_prose(text)
    parts = sentences(prose)
    if len(parts) == 1:
        bare = plain_text(prose).replace("**", " ").strip()
        for value in (
            _whole(bare),
            read_number_words(strip_filler(bare)),
            _arithmetic(bare.rstrip("!?")),
            _whole(without_parentheses(bare)),
        ):
            if value is not None:
                return value
        if _TAKES.search(bare) and has_number(said := _without_refusals(plain_text(prose))):
            return read_sentence(said).value
    for position, part in enumerate(reversed(parts[-4:])):
        part = plain_text(part)
        if not has_number(part):
            continue
        if (concludes(part) or _BOLD_RESULT.search(part)) and re.search(r"[.!?)*…]$", part):
            return read_sentence(part).value
        if position == 0 and re.fullmatch(r"\*\*[^*]+\*\*\.?", part):
            return _whole(part.replace("**", ""))
        if position == 0 and re.search(r"[=≈]\s*[^=≈]*\d[^=≈]*$", part):
            equation = _equation(part)
            return equation.value if equation else None
        return None
    return None
