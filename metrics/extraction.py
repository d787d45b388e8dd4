"""Reading answers from a model's text: numbers, choice letters, labels, moves, squares and JSON fields.

All readers look at the same places. The *last* passage that is marked as the answer counts (a JSON `answer` field,
`\\boxed{}`, `#### 5`, an answer tag, "Answer: ...", "the answer is ..."); what a text says of others' answers, of its
own earlier ones or in conditions does not. Where nothing is marked, a concluding sentence may be read. A text that
states no answer is a blank (None): never 0, never right by accident. What ambiguous texts mean is said in the modules
of each reader; the rules beside `flexible` are there to compare with other tools.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from ..errors import InputError
from ..registry import nearest
from ..signatures.numbers import parse_number
from .answer_statements import ANSWER_FIELDS, LESSER_FIELDS, Statement, best_first, boxes, prepare, statements
from .choice_reading import Choices, last_letter, read_choice, read_passage
from .json_reading import json_objects, same_field, zeroeval_answer, zeroeval_number
from .label_reading import read_label
from .markup import plain_text
from .move_reading import move_candidates, read_square, tidy_move
from .number_reading import read_conclusion, read_number
from .number_tokens import numbers_in

#: Rules of `extract_number`, the default first.
NUMBER_RULES = ("flexible", "zeroeval", "boxed", "last-number")
#: Rules of `extract_choice`, the default first.
CHOICE_RULES = ("flexible", "zeroeval", "boxed", "last-letter")

_CHOICE_FIELDS = (*ANSWER_FIELDS, "choice", "option", "letter", "selected option", "vote", "selection")
_LABEL_FIELDS = (*ANSWER_FIELDS, "label", "verdict", "decision", "judgement", "judgment", "vote", "choice", "response")
_MOVE_FIELDS = (*ANSWER_FIELDS, "move", "best move", "next move", "san", "uci")
_SQUARE_FIELDS = (*ANSWER_FIELDS, "square", "target square", "destination", "target")


def extract_number(text: str, rule: str = "flexible", *, model: str | None = None) -> Fraction | None:
    """Read the number a text answers with, exactly; None where it states none.

    "$29.00" is 29, "20%" is 20, "12 cm" is 12, "2 1/4" is 9/4, "1 of 3" is 1, "x = 5" is 5; several answers, ranges
    and expressions with variables are blanks. See `number_reading` for the whole policy.

    Args:
        text: a model's output, or a gold answer such as "#### 2,125".
        rule: "flexible" reads as a careful reader would; "zeroeval" is that benchmark's rule, faults included;
            "boxed" reads the last readable `\\boxed{}` only; "last-number" takes the last number there is.
        model: the model's name, for "zeroeval" (see `zeroeval_answer`).

    Raises:
        InputError: for an unknown rule.
    """
    if rule == "flexible":
        return _flexible_number(text)
    if rule == "zeroeval":
        return zeroeval_number(zeroeval_answer(text, model=model).text)
    if rule == "boxed":
        readings = (read_number(box).value for box in reversed(boxes(prepare(text))))
        return next((value for value in readings if value is not None), None)
    if rule == "last-number":
        values = [number.value for number in numbers_in(plain_text(text)) if number.value is not None]
        return values[-1] if values else None
    raise _unknown_rule(rule, NUMBER_RULES)


def _flexible_number(text: str) -> Fraction | None:
    text = prepare(text, bare_label=True)
    found = statements(text, bare_label=True)
    if not any(item.kind == "json" for item in found):
        found = sorted([*found, *_lesser_fields(text)], key=lambda item: item.start)
    for item in best_first(found):
        reading = read_number(item.text, item.value)
        if reading.value is not None:
            return reading.value
        if reading.stated or (item.kind == "json" and re.search(r"[^\W\d_]{3}", item.text)):
            return None
    return read_conclusion(text)


def _lesser_fields(text: str) -> list[Statement]:
    """Return the statements of a JSON object without an answer field: its result, or its only number."""
    found = [item for item in statements(text, fields=LESSER_FIELDS) if item.kind == "json"]
    if found or not re.match(r"^\s*(?:```\s*\w*\s*)?\{", text):
        return found
    for value in reversed(json_objects(text)):
        shown = [str(item) for item in value.values() if isinstance(item, int | float | str)]
        numbers = [item for item in shown if parse_number(item) is not None]
        if len(numbers) == 1:
            return [Statement("json", numbers[0], 0, len(text))]
    return []


def extract_choice(
    text: str,
    choices: Sequence[str] | int,
    rule: str = "flexible",
    texts: Sequence[str] | None = None,
) -> str | None:
    """Read the letter of the choice a text answers with; None where it states none, or several.

    Args:
        text: a model's output.
        choices: the letters there are (capitals), or how many: 4 stands for A to D.
        rule: "flexible"; "zeroeval" reads the JSON answer field by that benchmark's rule; "boxed" the last box;
            "last-letter" the last letter in parentheses.
        texts: the choices' texts in the same order, so that an answer that gives a text is read too.

    Raises:
        InputError: for an unknown rule, no choices, or texts that are not one for each choice.
    """
    letters = (
        list(string.ascii_uppercase[:choices]) if isinstance(choices, int) else [str(letter) for letter in choices]
    )
    if not letters or (isinstance(choices, int) and not 1 <= choices <= 26):
        raise InputError(f"{choices} choices; there must be 1 to 26")
    if any(len(letter) != 1 for letter in letters):
        raise InputError(f"choices are single letters, not {letters}; give the choices' texts as `texts`")
    if texts is not None and len(texts) != len(letters):
        raise InputError(f"{len(texts)} texts for {len(letters)} choices; there must be one for each")
    question = Choices(tuple(letters), tuple(texts) if texts is not None else None)
    if rule == "flexible":
        text = prepare(text)
        return read_choice(text, question, statements(text, fields=_CHOICE_FIELDS))
    if rule == "zeroeval":
        answer = zeroeval_answer(text).text
        return read_passage(answer, Choices(tuple(letters)))[0] if answer else None
    if rule == "boxed":
        read = (read_passage(box, question)[0] for box in reversed(boxes(prepare(text))))
        return next((letter for letter in read if letter is not None), None)
    if rule == "last-letter":
        return last_letter(text, question)
    raise _unknown_rule(rule, CHOICE_RULES)


def extract_label(text: str, labels: Sequence[str], aliases: Mapping[str, Sequence[str]] | None = None) -> str | None:
    """Read which label a text answers with; None where it states none, several, or only denies one.

    "No, but yesterday it was" is no; "Neither yes nor no" is neither; "I do not know" and "not unacceptable" are
    blanks.

    Args:
        text: a model's output.
        labels: the labels, as they are returned.
        aliases: other words for each label ("acceptable" for yes, "not acceptable" for no).
    """
    text = prepare(text)
    return read_label(text, labels, aliases, statements(text, fields=_LABEL_FIELDS))


def extract_move(text: str, legal: Sequence[str] | None = None) -> str | None:
    """Read the chess move a text answers with, in SAN or UCI as the text has it (tidied: "0-0" is O-O, "Nf3+!" Nf3).

    Args:
        text: a model's output.
        legal: the legal moves, in either notation or both. Then the first candidate that is one of them is returned,
            as it stands there; None when none is. Without it, the likeliest candidate is returned, legal or not.
    """
    candidates = extract_moves(text)
    if legal is None:
        return candidates[0] if candidates else None
    known = {tidy_move(move): move for move in legal}
    return next((known[move] for move in candidates if move in known), None)


def extract_moves(text: str) -> list[str]:
    """Return the moves that a text may give as its answer, the likeliest first, for those who can check them."""
    text = prepare(text)
    return list(dict.fromkeys(move_candidates(text, statements(text, fields=_MOVE_FIELDS))))


def extract_square(text: str) -> str | None:
    """Read the chess square a text answers with ("e4"); of a move, the square it goes to. None where it states none."""
    text = prepare(text)
    return read_square(text, statements(text, fields=_SQUARE_FIELDS))


def extract_json(text: str, field: str | None = None) -> Any:
    """Return the last JSON object in a text, or a field of the last one that has it; None where there is none.

    Args:
        text: a model's output; objects that are not well-formed are repaired as far as possible.
        field: the field's name; case, blanks, hyphens and underscores do not matter.
    """
    for value in reversed(json_objects(prepare(text))):
        if field is None:
            return value
        for key, item in value.items():
            if same_field(key, field):
                return item
    return None


def _unknown_rule(rule: str, known: tuple[str, ...]) -> InputError:
    return InputError(f"unknown extraction rule '{rule}'.{nearest(rule, list(known))} Known: {', '.join(known)}")


__all__ = [
    "CHOICE_RULES",
    "NUMBER_RULES",
    "extract_choice",
    "extract_json",
    "extract_label",
    "extract_move",
    "extract_moves",
    "extract_number",
    "extract_square",
    "zeroeval_answer",
]
