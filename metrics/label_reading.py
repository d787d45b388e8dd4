"""Reading a label ("yes", "no", "neither", ...) from a model's text.

A label counts where it stands as an answer: first in the text or in what is stated, or last in it. The same word inside
a sentence is mostly something else ("there is no rule", "I do not know", "neither of them"). A denied label ("not
unacceptable") is neither that label nor its opposite: it is a blank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from .answer_statements import Statement, best_first
from .markup import plain_text
from .patterns import any_of
from .prose import closing_prose, concludes, is_cut_off, sentences

#: Other words for the commonest labels.
USUAL_ALIASES: Mapping[str, tuple[str, ...]] = {"yes": ("yeah", "yep", "yup"), "no": ("nope", "nah")}

#: A word that stands for a label: its pattern, the label, and the word.
_Word = tuple[re.Pattern[str], str, str]

_NO_WHAT = any_of("doubt, problem, one, idea, longer, matter, need, way, more, less, other, such, reason, issue, harm")
_IDIOMS = re.compile(
    rf"\bno\s+{_NO_WHAT}\b|\bin no\b|\bno\.\s*\d"
    r"|\b(?:yes\s*/\s*no(?:\s*/\s*\w+)?|yes(?:,| or) no,?(?: or \w+)?|no or yes)(?=\W*(?:question|answer|\?|$))",
    re.IGNORECASE,
)
_NEITHER_NOR = re.compile(r"\bneither\b[^.;]{0,60}\bnor\b\s+\S+", re.IGNORECASE)
_DENYING = any_of(
    "\\bnot, n['’]t, \\bnever, \\bcannot, \\bhardly, \\brather than, \\binstead of, \\bneither, \\bnor,"
    "\\bwithout, \\bfar from"
)
_BEFORE_LABEL = any_of(
    "be, a, an, the, really, necessarily, entirely, fully, simply, clearly, strictly, say, as, just, considered,"
    "seen, quite, always, exactly, purely, either, answer, label, with"
)
_DENIED = re.compile(rf"{_DENYING}\s+(?:{_BEFORE_LABEL}\s+)*[\"'“”*(\[]*$", re.IGNORECASE)
_UNSAID = re.compile(
    r"(?:\bcannot|n['’]t|\bnot)\s+(?:be\s+)?(?:say|said|claim|claimed|conclude|concluded|think|believe)\b[^.;,]*$",
    re.IGNORECASE,
)
# Words that may follow a label which opens a sentence; "No rule forbids it" goes on with a noun.
_FOLLOWING = any_of(
    "because, since, as, but, it, this, that, he, she, they, i, we, you, the, in, for, if, although, though,"
    "given, according, based, due, not, is, its, and, when, while, would, people, sir, definitely, absolutely,"
    "certainly, indeed, of course, by, under, from, at, on, with, to"
)
_GOES_ON = re.compile(rf"^[\"'”*)\]]*(?:$|[.,;:!?\-–—(\n]|\s+[-–—(]|\s+{_FOLLOWING}\b)", re.IGNORECASE)
_LEADING_WORDS = any_of(
    "is, be, was, say, said, answer, answered, vote, votes, choose, chose, pick, label, verdict, decision,"
    "conclude, therefore, so, thus, hence, would, but, with, as, a, clear, definite, remains, for, becomes, to,"
    "resounding, hard, probably, likely, mostly, simply"
)
_LEADS_IN = re.compile(rf"(?:\b{_LEADING_WORDS}|['’]s|[:=,\-–—→>])[\s*\"'“(\[]*$", re.IGNORECASE)
_OPENERS = re.compile(
    r"^(?:(?:so|well|therefore|thus|hence|overall|i (?:would )?(?:say|think|vote|answer)|it(?:['’]s| is)|answer|label)"
    r"[\s,:]+)+",
    re.IGNORECASE,
)


def read_label(
    text: str, labels: Sequence[str], aliases: Mapping[str, Sequence[str]] | None, found: Sequence[Statement]
) -> str | None:
    """Read the label of a prepared text.

    Args:
        text: what `prepare` returned.
        labels: the labels there are.
        aliases: other words for each label; longer ones are looked for first, so "not acceptable" may be one.
        found: the text's statements.
    """
    words = _words(labels, aliases)
    for statement in best_first(found):
        value = statement.value
        passage = ("yes" if value else "no") if isinstance(value, bool) else statement.text
        label, stated = _read(passage, words)
        if label is not None or stated:
            return label
    return None if is_cut_off(text) else _from_prose(text, words)


def _words(labels: Sequence[str], aliases: Mapping[str, Sequence[str]] | None) -> list[_Word]:
    """Return the words that stand for labels, the longest first."""
    known: dict[str, str] = {}
    for label in labels:
        for word in (label, *USUAL_ALIASES.get(label.lower(), ()), *(aliases or {}).get(label, ())):
            known.setdefault(word.casefold(), label)
    return [
        (re.compile(rf"(?<![\w'’-])({re.escape(word)})(?![\w'’]|-\w)", re.IGNORECASE), label, word)
        for word, label in sorted(known.items(), key=lambda item: -len(item[0]))
    ]


def _from_prose(text: str, words: Sequence[_Word]) -> str | None:
    """Read a text that marks no answer: its opening, its last sentence, a conclusion, the only bold label."""
    prose = closing_prose(text)
    parts = sentences(prose)
    if not parts:
        return None
    for opening in (prose.split("\n")[0], prose):
        if (label := _opening(_plain(opening), words)) is not None:
            last = _opening(_plain(parts[-1]), words) if len(parts[-1].split()) <= 2 else None
            return label if last in (None, label) else None
    for part in (parts[-1], *(part for part in reversed(parts) if concludes(part))):
        label, _ = _read(part, words)
        if label is not None:
            return label
    bold = {
        label
        for match in re.finditer(r"\*\*([^*\n]{1,40})\*\*", text)
        if (label := _opening(_plain(match.group(1)), words)) is not None
    }
    return bold.pop() if len(bold) == 1 else None


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", plain_text(text).replace("**", " ")).strip(" `*_\"'“”#>-•")


def _read(passage: str, words: Sequence[_Word]) -> tuple[str | None, bool]:
    """Read a passage that states an answer: the label, and whether one or several were stated."""
    plain = _plain(passage)
    if (label := _opening(plain, words)) is not None:
        return label, True
    labels = set(_standing(plain, words))
    return (labels.pop(), True) if len(labels) == 1 else (None, len(labels) > 1)


def _neither(words: Sequence[_Word]) -> str | None:
    return next((label for _, label, _ in words if label.casefold() == "neither"), None)


def _opening(plain: str, words: Sequence[_Word]) -> str | None:
    """Return the label that a passage begins with: "No, but yesterday it was"."""
    bare = _OPENERS.sub("", plain).lstrip("\"'“*([ ")
    if _IDIOMS.match(bare):
        return None
    if _NEITHER_NOR.match(bare):
        return _neither(words)
    for pattern, label, _ in words:
        match = pattern.match(bare)
        if match and _GOES_ON.match(bare[match.end() :]):
            beside = re.match(r"[\"'”*)\]]*\s*(?:/|and|or)\s+(\w+)", bare[match.end() :])
            if beside and any(other.fullmatch(beside.group(1)) and name != label for other, name, _ in words):
                return None  # "yes and no"
            return label
    return None


def _standing(plain: str, words: Sequence[_Word]) -> Iterator[str]:
    """Yield the labels that stand as answers in a passage, the longest word at each place, none that is denied."""
    masked = plain
    for match in _NEITHER_NOR.finditer(plain):
        if (neither := _neither(words)) is not None:
            yield neither
        masked = _mask(masked, match)
    for match in _IDIOMS.finditer(plain):
        masked = _mask(masked, match)
    for pattern, label, word in words:
        for match in list(pattern.finditer(masked)):
            before, after = plain[: match.start()], plain[match.end() :]
            masked = _mask(masked, match)
            if _DENIED.search(before) or _UNSAID.search(before):
                continue
            is_common = len(word) <= 4 or word == "neither"
            quoted = re.search(r"[\"'“*(\[]$", before) and re.match(r"[\"'”*)\].,]", after)
            if not is_common or quoted or (_LEADS_IN.search(before) and _GOES_ON.match(after)):
                yield label


def _mask(text: str, match: re.Match[str]) -> str:
    return text[: match.start()] + " " * (match.end() - match.start()) + text[match.end() :]
