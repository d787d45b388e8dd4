"""The sentences of a model's text, which of them conclude, and whether the text breaks off."""

from __future__ import annotations

import re

from .patterns import any_of

#: How far a sentence may reach.
_REACH = 2000
_STOP = re.compile(r"[.!?]+(?=[\"'”’)*_`\]]*(?:\s|$|\\))|\\n(?![a-z])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:approx|rs|vs|e\.g|i\.e|etc|mr|mrs|ms|dr|st|cf|resp|a\.m|p\.m)|\b(?-i:[I-Z]))$",
    re.IGNORECASE,
)  # A to H are taken for choices, not for initials
_NUMBERED = re.compile(r"\b(?:no|nos|fig|eq)$", re.IGNORECASE)


def sentence_end(text: str, start: int) -> int:
    """Return where the sentence from `start` on ends, before its stop; the end of the text where there is none."""
    window = text[start : start + _REACH]
    for match in _STOP.finditer(window):
        before = window[: match.start()]
        if match.group() == ".":
            if _ABBREVIATION.search(before) and not re.fullmatch(r"[\s*_(\"'`$]*[A-Za-z]", before):
                continue
            if _NUMBERED.search(before) and re.match(r"\.\s*\d", window[match.start() :]):
                continue
        return start + match.start()
    return min(len(text), start + _REACH)


def sentence_start(text: str, position: int) -> int:
    """Return where the sentence around a position begins, at most 160 characters before it."""
    first = max(0, position - 160)
    start = first
    for match in re.finditer(r"[.!?]+[\"'”’)*_`\]]*\s+|\n", text[first:position]):
        start = first + match.end()
    return start


def sentences(text: str) -> list[str]:
    """Return the sentences of a text; a line break ends one too."""
    out = []
    for line in text.split("\n"):
        position = 0
        while position < len(line):
            end = sentence_end(line, position)
            while end < len(line) and line[end] in ".!?\"'”’)*_`]":
                end += 1
            if line[position:end].strip():
                out.append(line[position:end].strip())
            position = max(end, position + 1)
    return out


_OPENING_WORDS = any_of(
    "so, therefore, thus, hence, consequently, accordingly, finally, overall, altogether, together, combined,"
    "in conclusion, in summary, to summari[sz]e, in total, in all, as a result, this means, that means,"
    "which means, it follows, we conclude, i conclude"
)
_CONCLUDING_WORDS = any_of(
    "therefore, thus, hence, in total, altogether, in all, overall, a total of, grand total, combined total"
)
_CONCLUDES = re.compile(
    rf"^[\s*_>#\-]*(?:(?:and|but|now|ok|okay)[,\s]+)?{_OPENING_WORDS}\b|^[\s*_>#\-]*(?:∴|=>|⇒|\\therefore)"
    rf"|\b{_CONCLUDING_WORDS}\b|\bthe total\b[^.]*(?:\b(?:is|are|was|of)\b|=)|\btotal\s*[:=]",
    re.IGNORECASE,
)


def concludes(sentence: str) -> bool:
    """Return whether a sentence draws a conclusion: "So ...", "Therefore ...", "... in total."."""
    return bool(_CONCLUDES.search(sentence))


def is_cut_off(text: str) -> bool:
    """Return whether a text breaks off: inside a JSON object that it began with, a box, or a calculator mark."""
    if text.rfind("<<") > text.rfind(">>"):
        return True
    boxed = max(text.rfind("\\boxed{"), text.rfind("\\fbox{"))
    if boxed >= 0 and closing_brace(text, text.find("{", boxed)) is None:
        return True
    bare = re.sub(r"^\s*(?:```|~~~)\s*\w*\s*", "", text).lstrip()
    return bare.startswith("{") and not re.search(r"\}[\s`~\"';,.)]*$", text[-200:])


def closing_brace(text: str, opening: int) -> int | None:
    """Return where the brace that opens at `opening` closes; None when it never does."""
    depth = 0
    position = opening
    while position < len(text):
        character = text[position]
        if character == "\\":
            position += 2
            continue
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                return position
        position += 1
    return None


def closing_prose(text: str) -> str:
    """Return the prose of a text, without fences, and without the quotes and braces of a JSON object around it."""
    text = re.sub(r"(?m)^\s*(?:```|~~~)[ \t]*\w*[ \t]*$", "", text)
    if text.lstrip().startswith("{"):
        text = text.rstrip().rstrip("}").rstrip().rstrip(",").rstrip('"')
        text = text.replace("\\n", "\n").replace('\\"', '"')
        text = re.sub(r"^\s*\{\s*\"[^\"\n]{1,40}\"\s*:\s*\"", "", text)
    return text.strip()
