"""Choosing among the numbers of a sentence the one that it states as its result."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from .number_tokens import Number, numbers_in
from .patterns import any_of

_FILLER_WORDS = any_of(
    "so, therefore, thus, hence, then, and, it(?:['’]s| is| would be| will be), that(?:['’]s| is), this is,"
    "there (?:are|is|will be|would be), equals?, is, are, was, be, to, exactly, approximately, approx, about, around,"
    "roughly, nearly, almost, maybe, perhaps, possibly, probably, likely, only, just, simply, indeed, again, still,"
    "now, at least, at most, up to, over, more than, less than, a total of, the total is, total of, total,"
    "i (?:think|get|got|say|believe|guess), i (?:vote for|choose|pick), we get, my answer, answer, the, on the, in the,"
    # "day 5", "candidate 2": the number is what is asked for, where nothing else is said.
    "(?:day|week|month|year|level|grade|page|room|number|no|candidate|option|choice)(?=\\s*\\.?\\s*#?\\d)"
)
_FILLER = re.compile(rf"^[\s>*\-•(\[{{\"']*(?:(?:{_FILLER_WORDS}\b\.?|=|≈|~|:|\#+|→|->|=>|⇒|,)[\s:]*)*", re.IGNORECASE)
#: Verbs that take a number as their object or complement.
VERB = r"\b" + any_of(
    "is, are, was, were, be, been, has, have, had, will, would, can, could, should, must, need(?:s|ed)?, costs?,"
    "earn(?:s|ed)?, take(?:s|n)?, took, makes?, made, spends?, spent, gets?, got, pays?, paid, save(?:s|d)?,"
    "sold, sells?, bought, buys?, receive(?:s|d)?, gives?, gave, eats?, ate, drinks?, drank, left, leaves?,"
    "remain(?:s|ed)?, equal(?:s|led)?, total(?:s|led)?, reach(?:es|ed)?, travel(?:s|ed|led)?, runs?, ran,"
    "walk(?:s|ed)?, work(?:s|ed)?, weigh(?:s|ed)?, contain(?:s|ed)?, holds?, held, use(?:s|d)?, collect(?:s|ed)?,"
    "own(?:s|ed)?, produce(?:s|d)?, require(?:s|d)?, score(?:s|d)?, reads?, plant(?:s|ed)?, lost, loses?,"
    "gain(?:s|ed)?, owe(?:s|d)?, finds?, found, yields?, becomes?, rounds?"
) + r"\b"  # fmt: skip
_VERB = re.compile(VERB, re.IGNORECASE)
# What stands right before a result: "is", "=", "a total of".
_COPULA_WORDS = any_of(
    "is, are, was, were, be, equals?, becomes?, means, totals?, reach(?:es)?, comes (?:out )?to, amounts? to, as,"
    "rounds? (?:up |down |off )?to, answer, remains?, i\\.e\\.(?:[:;])?, namely, that is"
)
_HEDGES = any_of(
    "about, approximately, approx\\.?, around, roughly, exactly, only, just, indeed, still, therefore, thus,"
    "then, now, actually, really, simply, nearly, a total of, in total, also, at least, at most, the,"
    "going to be, equal to"
)
_COPULA = re.compile(
    rf"(?:\b{_COPULA_WORDS},?|['’]s\b|[:≈=⇒→])\s*(?:(?:{_HEDGES}|not\s+\S+,?\s+but)\s+)*[\s*(\"']*$", re.IGNORECASE
)
# Prepositions and conjunctions that make a number a condition or a measure of something else.
_GOVERNING = any_of(
    "if, when, because, since, than, from, per, every, each, out of, after, before, within, during, over, at, on,"
    "by, with, between, until, through, in, for, among, across, given, using, times, plus, minus, and then,"
    "under, above, below, another, first, last, next, past, of the, of these, of those"
)
_DETERMINERS = any_of("the, a, an, all, these, those, first, next, last, other, only, his, her, their")
_GOVERNED = re.compile(rf"\b{_GOVERNING}\s+(?:{_DETERMINERS}\s+)*[\s*(]*$", re.IGNORECASE)
_SUBORDINATING = any_of(
    "if, when, because, since, while, than, given, assuming, unless, until, whereas, instead of, rather than,"
    "as opposed to, compared (?:to|with), after, before, so that, in order to, and not, but not, not"
)
_SUBORDINATE = re.compile(rf"\b{_SUBORDINATING}\b", re.IGNORECASE)
_CONDITIONS = any_of("if, when, because, since, while, given, after, assuming")
_OPENS_WITH_CONDITION = re.compile(rf"^\W*(?:\w+,\s+)?{_CONDITIONS}\b[^,]*$", re.IGNORECASE)
_BEFORE_DENIED = any_of("equal to, be, a, the, simply, just, merely, exactly, only")
_NEGATED = re.compile(
    r"(?:\bnot|n['’]t|\bcannot|\binstead of|\brather than|\bnever|\bnor|\bneither)\s+"
    rf"(?:{_BEFORE_DENIED}\s+)*[\s*(\"']*$",
    re.IGNORECASE,
)
# Numbers that only name something: "Agent 1", "step 3", "day 2".
_NAMES = any_of(
    "agent, expert, step, question, problem, option, case, part, figure, fig\\.?, table, equation, eq\\.?, round,"
    "student, person, method, solution, participant, debater, section, chapter, example, note, no\\., number,"
    "page, line, exercise, approach, stage, phase, candidate, model, persona, claim, point, hypothesis, scenario,"
    "attempt, version, team, group, level, grade, room, bus, day, week, month, year, q"
)
_LABELLED = re.compile(rf"\b{_NAMES}\s*#?\s*$", re.IGNORECASE)
_RANGE = re.compile(
    r"\bbetween\s+\S*\d\S*(?:\s+\w+)?\s+and\s+\S*\d\S*|\bfrom\s+\S*\d\S*(?:\s+\w+)?\s+to\s+\S*\d\S*", re.IGNORECASE
)
_MEASURE = re.compile(
    r"\s?[-–](?:year|month|day|week|hour|minute|person|mile|foot|inch|dollar|story|page|point|pound|pack|ounce)",
    re.IGNORECASE,
)
_CONNECTING = any_of("and, or, but, not, so, than, plus, minus, times")
_LEADING_IN = any_of("either, maybe, possibly, perhaps, even, a, an, the, about, then")
_JOINED = re.compile(
    rf"\s*(?:(?!{_CONNECTING}\b)[^\W\d_]+[\s%.]*){{0,4}}(?:,|;|&|/)?"
    r"\s*(?:\b(?:and|or|and/or)\b)?\s*"
    rf"(?:{_LEADING_IN}\s+)*"
    r"(?:[A-Z]\w*(?: \w+)?:\s*)?\W{0,2}"
)
_SHARE = r"\s*(?:\w+\s+)?(?:out\s+)?of\s+(?:the\s+)?"


def strip_filler(text: str) -> str:
    """Return a text without the words that may lead in an answer: "so about", "it is", "I got", "=", a list dash."""
    match = _FILLER.match(text)
    return text[match.end() :] if match else text


def without_parentheses(text: str) -> str:
    """Return a text without its asides in parentheses and brackets; arithmetic in parentheses stays."""
    return re.sub(r"\((?!\s*\d[^()]*\)\s*[-+*/^=])[^()]*\)|\[[^\[\]]*\]", "", text)


def weigh(sentence: str) -> tuple[Fraction | None, bool]:
    """Choose the number a sentence gives as its result.

    What follows "is" or "=" counts most, then what a verb takes; numbers in conditions ("if she saves $4"), measures
    ("in 5 days"), names ("agent 1") and denials ("not 5") count less or not at all.

    Returns:
        The number and whether the sentence is an answer at all: several numbers side by side are one that is blank.
    """
    text = sentence if sentence.count("**") >= 2 else sentence.replace("**", "  ")
    if any(True for _ in numbers_in(without_parentheses(text))):
        text = without_parentheses(text)
    ranges = [match.span() for match in _RANGE.finditer(text)]
    scored: list[tuple[int, Number]] = []
    main: Number | None = None
    for number in numbers_in(text):
        if number.value is None and number.kind != "ratio":
            continue
        before, after = text[: number.start], text[number.end :]
        if _is_irrational(before, after):
            return None, True
        if any(start <= number.start < end for start, end in ranges) or _is_name(number, before, after):
            continue
        score = _score(number, before, after, text[main.end : number.start] if main else None)
        if main is None and score >= 2:
            main = number
        scored.append((score, number))
    if not scored:
        return None, bool(ranges)
    return _winner(text, scored), True


def _winner(text: str, scored: Sequence[tuple[int, Number]]) -> Fraction | None:
    best = max(score for score, _ in scored)
    winners = [number for score, number in scored if score == best]
    first = winners[0]
    if first.value is None or (len(scored) == 1 and _is_algebra(text, first)):
        return None
    others = [number for _, number in scored if number.start > first.start]
    exact = _exact(text, first, others)
    if others and others[0].value not in (first.value, exact) and _is_joined(text[first.end : others[0].start]):
        return None  # "4 cats and 7 dogs", "5 or 6"
    if len({number.value for number in winners}) > 1 and not re.fullmatch(
        _SHARE, text[first.end : winners[1].start], re.IGNORECASE
    ):
        return None
    return exact


def _is_irrational(before: str, after: str) -> bool:
    return bool(re.match(r"\s*(?:π|\\pi\b|√|\\sqrt)", after) or re.search(r"(?:√|\\sqrt\s*\{?)\s*$", before))


def _is_name(number: Number, before: str, after: str) -> bool:
    """Return whether a number names something, counts a list's item, or is denied."""
    if _LABELLED.search(before) and not number.money:
        return True
    if re.search(r"[#\[]\s*$", before) and not re.match(r"\S*\d", before):
        return True
    if not before.strip() and re.match(r"[.)]\s+[A-Za-z]", after):
        return True
    return bool(_NEGATED.search(before))


def _score(number: Number, before: str, after: str, since_main: str | None) -> int:
    clause = re.split(r"[;:]\s|,\s+(?:so|and so|but|which)\b", before)[-1]
    opens = not strip_filler(before) and not _is_subject(after)
    alone = opens and not re.search(r"[^\W\d_]", re.sub(_HEDGES, "", before))
    copula = bool(_COPULA.search(before))
    score = 4 * (before.count("**") % 2)
    if alone:  # what is stated begins with it
        score += 7
    elif copula or opens:
        score += 4
    elif _GOVERNED.search(before):
        score -= 2
    if _VERB.search(clause):
        score += 2
    if since_main is not None:
        if _SUBORDINATE.search(since_main):
            score -= 4
        elif re.search(r"\bto [a-z]+", since_main) and not copula:
            score -= 3
    elif _OPENS_WITH_CONDITION.search(clause):
        score -= 4
    if _MEASURE.match(after):
        score -= 3
    if number.ordinal or number.kind == "ratio":
        score -= 2
    if re.search(r"\bout of (?:the |a total of )?$|\d+\s+of (?:the )?$", before):
        score -= 5
    if _is_year(number, before):
        score -= 4
    return score


def _is_year(number: Number, before: str) -> bool:
    if number.value is None or number.money or not 1900 <= number.value <= 2100:
        return False
    return bool(re.search(r"\b(?:in|of|since|year|by)\s+$|[a-z]+\s+\d{1,2},?\s+$", before))


def _is_subject(after: str) -> bool:
    """Return whether a verb and another number follow: "3 months of rent cost $900"."""
    clause = re.split(r"[.;:,]\s|\b(?:because|since|if|when|which|while|so|after|before)\b", after, maxsplit=1)[0]
    return bool(re.search(rf"{VERB}[^.;:\d]*\d", clause, re.IGNORECASE))


def _is_algebra(text: str, number: Number) -> bool:
    return bool(
        re.match(r"\s?[a-zA-Z]?\s*[-+*/^]\s*(?:\d*[a-zA-Z]\b|\()|[xyn]\s*[-+*/^]", text[number.end :])
        or re.search(r"(?<![A-Za-z])[a-zA-Z]\s*[-+*/^]\s*\$?$", text[: number.start])
    )


def _is_joined(between: str) -> bool:
    """Return whether two numbers with this text between them are two answers side by side."""
    if re.fullmatch(r"\s*(?:-|–|to|through)\s*", between):
        return True
    return bool(_JOINED.fullmatch(between) and re.search(r"[,;&/]|\b(?:and|or)\b", between))


def _exact(text: str, number: Number, others: Sequence[Number]) -> Fraction | None:
    """Return the value, or that of a fraction in the same sentence which the number rounds ("3.33 or 10/3")."""
    decimals = re.search(r"\.(\d+)", text[number.start : number.end])
    if decimals and number.value is not None:
        for other in others:
            if "/" not in text[other.start : other.end] or other.value is None:
                continue
            if abs(other.value - number.value) < Fraction(1, 10 ** len(decimals.group(1))):
                return other.value
    return number.value
