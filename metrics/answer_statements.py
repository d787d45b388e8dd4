"""Where a model's text states its answer: the passages that readers of numbers, letters, labels and moves look at.

A *statement* is a passage that is marked as the answer: the value of a JSON field, a box, a `####` line, an answer
tag, "Answer: ...", "the answer is ...". The last statement counts, since models correct themselves. Without any
statement, a *conclusion* ("So she has 18 eggs.") at the end of the text may be read.

Text inside `<think>` is not read, nor is what follows when a model goes on to invent the next question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .json_fields import json_fields
from .patterns import any_of
from .prose import closing_brace, sentence_end, sentence_start

Kind = Literal["json", "box", "hashes", "tag", "label", "phrase"]

#: JSON fields that hold an answer, in any spelling of case, blanks and underscores.
ANSWER_FIELDS = ("answer", "final answer", "correct answer", "updated answer", "my answer")
#: JSON fields that hold one where there is no answer field.
LESSER_FIELDS = ("result", "final result", "solution", "output", "prediction", "response", "value", "total")

_SPECIAL_TOKENS = re.compile(
    r"</?s>|<\|(?:im_end|eot_id|end|endoftext|end_of_text|eom_id|assistant|im_start)\|>(?:assistant)?"
    r"|<(?:end_of_turn|eos|pad)>"
)
_THINK_OPEN = re.compile(r"<(?:think|thinking|thought|scratchpad)>", re.IGNORECASE)
_THINK_CLOSE = re.compile(r"</(?:think|thinking|thought|scratchpad)>", re.IGNORECASE)
#: Of a text that repeats itself without end, so many of the last markers are looked at.
_MOST_CUES = 100
_MOST_BOXES = 50
# A bare "Problem:" may be the writer's own remark; a heading or a number makes it the next task.
_NEXT_QUESTION = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]*(?:\w+ )?(?:question|problem|instruction|exercise|task)s?(?:[ \t]*\d+)?[ \t]*:?[ \t]*$"
    r"|#{1,6}[ \t]*(?:\w+ )?(?:question|problem|instruction|exercise|task)s?(?:[ \t]*\d+)?[ \t]*:"
    r"|(?:\*\*)?[ \t]*(?:new |next |follow-?up )?question(?:[ \t]*\d+)?[ \t]*:|(?:problem|exercise)[ \t]*\d+[ \t]*:"
    r"|(?:\*\*)?(?:Q|Human|User)[ \t]*\d*[ \t]*:|<\|(?:user|im_start)\|?>?)",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True)
class Statement:
    """A passage that is marked as an answer.

    Attributes:
        kind: how it is marked.
        text: what is stated, with its markup.
        start: where the marker begins in the prepared text.
        end: where the passage ends.
        own: the speaker's present answer; False for an earlier one ("my initial answer was 5").
        value: the decoded JSON value, where the statement is a JSON field.
    """

    kind: Kind
    text: str
    start: int
    end: int
    own: bool = True
    value: Any = None


def prepare(text: str, *, bare_label: bool = False) -> str:
    """Return the part of a model's text that may state its answer.

    Drops special tokens and finished `<think>` blocks (a block that never ends leaves nothing), and cuts a text that
    goes on with a question of its own after an answer was stated.

    Args:
        text: as the model wrote it.
        bare_label: see `statements`.
    """
    text = _SPECIAL_TOKENS.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))
    closings = list(_THINK_CLOSE.finditer(text))
    if closings:
        after = text[closings[-1].end() :]
        text = after if after.strip() else text[: closings[-1].start()]
    elif opening := _THINK_OPEN.search(text):
        text = text[: opening.start()]
    stated = [
        item.start
        for item in statements(text, bare_label=bare_label)
        if any(character.isalnum() for character in item.text)
    ]
    for match in _NEXT_QUESTION.finditer(text):
        if stated and min(stated) < match.start():
            return text[: match.start()].rstrip()
    return text.strip()


# -- statements ------------------------------------------------------------------------------------------------------

_BOX = re.compile(r"\\(?:boxed|fbox)\b\s*")
_HASHES = re.compile(r"(?<!#)####(?!#)[ \t]*(?=[^\s#])([^\n]*)")
_TAG = re.compile(
    r"<(?P<tag>(?:final[_-]?)?answer|ans)>(?P<inside>.*?)(?:</(?P=tag)>|\Z)"
    r"|\[\[\s*##\s*(?:final_)?answer\s*##\s*\]\](?P<field>.*?)(?=\[\[\s*##|\Z)",
    re.IGNORECASE | re.DOTALL,
)
# What may stand between "answer" and the verb: "the answer, rounded to two places, is", "the answer to this is".
_AFTER_ANSWER = any_of(
    "to, for, of, based, in, from, after, when, given, as, here, then, thus, therefore, now, also, still, indeed,"
    "really, actually, we, I, that, choice, option, key, value, letter, number, rounded, which, seems, appears"
)
_GAP = rf"(?:[ \t]+{_AFTER_ANSWER}\b|[ \t]*[,(])[^.\n:=?!]{{0,80}}?"
_VERB_WORDS = any_of(
    "would (?:then )?(?:still )?be, should (?:then )?be, must be, will be, might be, could be, may be,"
    "seems to be, appears to be, (?:still )?remains, becomes, comes (?:out )?to, works out to, equals,"
    "turns out to be, (?:is|are|was|would|can|could)(?:n['’]t|not| not)(?: be)?, is, are, was"
)
_VERB = rf"{_VERB_WORDS}\b\s*:?"
_MARKUP = r"[*_`\"'”’)\]]*"
# The label in other languages is read as well: "Respuesta: 42", "답: 42".
_FOREIGN = r"respuesta|réponse|antwort|risposta|resposta|odpowiedź|ответ|答案|答え|解答|정답|답변|답"
_NOUN = rf"(?:answer|ans|conclusion|{_FOREIGN})"
_WORD = re.compile(rf"(?<![^\W_]){_NOUN}(?![A-Za-z0-9])", re.IGNORECASE)
_ASIDE = rf"(?:\([^()\n]{{0,80}}\)[ \t]*{_MARKUP})?"
_CUE = re.compile(
    rf"{_NOUN}{_MARKUP}(?:[ \t]*{_MARKUP}{_ASIDE}(?P<label>[:=]|：|(?<=ans)\.|\s-\s|→|->){_MARKUP}"
    rf"|(?:{_GAP})?[ \t]*{_MARKUP}[ \t]+(?P<verb>{_VERB}){_MARKUP})",
    re.IGNORECASE,
)
_OTHER_LABEL = re.compile(
    r"\b(?:final|my|updated|overall)[ \t]+(?:solution|choice|option|decision|verdict|selection|result|vote)\b"
    rf"{_MARKUP}[ \t]*[:=]{_MARKUP}",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]*|\*\*)(?:\d+\.[ \t]*)?(?:the[ \t]+)?(?:final[ \t]+|correct[ \t]+)?answer"
    r"[ \t]*(?:\*\*)?[ \t]*\n+",
    re.IGNORECASE | re.MULTILINE,
)
_PAST = re.compile(
    r"\b(?:previous|previously|initial|initially|original|earlier|first|old|prior|wrong|incorrect|mistaken|provided"
    r"|last[ \t]+round'?s)\b[^.\n]*$",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\b(?:agent|expert|student|person|participant|solution|persona|debater|colleague|opponent|player|assistant|model)"
    r"s?[ \t]*(?:\d+|[A-Z])?(?:['’]s?)?[ \t]+(?:\w+[ \t]+){0,3}$"
    r"|\b(?:their|his|her|others?['’]?s?|its|your|whose|another|some|one)[ \t]+(?:\w+[ \t]+){0,2}$",
    re.IGNORECASE,
)
_OTHERS_SAY = re.compile(
    r"\b(?:agents?[ \t]*\w*|experts?|students?|they|he|she|others|someone|some|opponents?|solutions?[ \t]*\d*)[ \t]+"
    r"(?:\w+[ \t]+)?(?:says?|said|thinks?|thought|claims?|claimed|argues?|argued|believes?|believed|states?|stated"
    r"|suggests?|suggested|concludes?|concluded|gives?|gave|got)\b[^.\n]*$",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"\b(?:if|whether|suppose|supposing|assume|assuming|unless|why|how|until)\b[^,.\n]*$", re.IGNORECASE
)
_DOUBTED = re.compile(r"(?:\bnot|n['’]t|\bcannot|\bdoubt)\s+(?:\w+\s+){0,4}?(?:the\s+)?$", re.IGNORECASE)
_POINTS_BACK = re.compile(r"\b(?:this|that|each)\s+$", re.IGNORECASE)
_AGREES = re.compile(r"\b(?:agree|agrees|agreed|concur|convinced|confirm|accept|adopt)\b", re.IGNORECASE)
_RETRACTED = re.compile(
    r"^[\s\"'*)]*(?:(?:but|however|wait|no|actually|hmm)[,.!\s]+)?(?:that|this|it|which)(?:['’]s|\s+is|\s+was)\s+"
    r"(?:\w+\s+)?(?:wrong|incorrect|a mistake|mistaken|an error|not (?:right|correct))\b",
    re.IGNORECASE,
)


def statements(text: str, *, fields: Sequence[str] = ANSWER_FIELDS, bare_label: bool = False) -> list[Statement]:
    """Return the passages of a prepared text that are marked as the answer, in the order of their markers.

    Args:
        text: what `prepare` returned.
        fields: names of JSON fields that hold the answer.
        bare_label: whether a line "A: 12" is an answer (it is an option, where answers are letters).
    """
    found = [*_boxes(text), *_hashes(text), *_tags(text), *_headings(text), *_cues(text)]
    for match in _OTHER_LABEL.finditer(text):
        passage, end = _passage(text, match.end(), whole_line=True)
        found.append(Statement("label", passage, match.start(), end))
    if bare_label:
        for match in re.finditer(r"^[ \t]*A:[ \t]*(?=\S)", text, re.MULTILINE):
            passage, end = _passage(text, match.end(), whole_line=True)
            found.append(Statement("label", passage, match.start(), end))
    # What a JSON object's other fields say is superseded by its answer field.
    fields_found = list(json_fields(text, fields))
    regions = [item.region for item in fields_found if item.shown.strip()]
    found = [item for item in found if not any(start <= item.start < end for start, end in regions)]
    found += [Statement("json", item.shown, item.start, item.end, value=item.value) for item in fields_found]
    return sorted(found, key=lambda item: (item.start, -item.end))


def best_first(found: Sequence[Statement]) -> list[Statement]:
    """Return statements as they are to be tried: the last one first, earlier answers of one's own at the end."""
    ordered = list(reversed(found))
    return [item for item in ordered if item.own] + [item for item in ordered if not item.own]


def _boxes(text: str) -> Iterator[Statement]:
    for match in list(_BOX.finditer(text))[-_MOST_BOXES:]:
        if text[match.end() : match.end() + 1] == "{":
            end = closing_brace(text, match.end())
            if end is None:  # cut off inside the box
                continue
            yield Statement("box", text[match.end() + 1 : end], match.start(), end + 1)
        elif digits := re.match(r"[-+]?\d[\d,.]*", text[match.end() :]):
            yield Statement("box", digits.group(), match.start(), match.end() + digits.end())


def boxes(text: str) -> list[str]:
    """Return what stands in each `\\boxed{...}`, nested braces kept, in order."""
    return [statement.text for statement in _boxes(text)]


def _hashes(text: str) -> Iterator[Statement]:
    for match in _HASHES.finditer(text):
        if not re.match(r"(?:step|part|case|\d+\.\s+[A-Za-z])", match.group(1), re.IGNORECASE):
            yield Statement("hashes", match.group(1), match.start(), match.end())


def _tags(text: str) -> Iterator[Statement]:
    for match in _TAG.finditer(text):
        inside = match.group("inside") if match.group("tag") else match.group("field")
        yield Statement("tag", inside.strip(), match.start(), match.end())


def _headings(text: str) -> Iterator[Statement]:
    for match in _HEADING.finditer(text):
        passage, end = _passage(text, match.end(), whole_line=False)
        yield Statement("label", passage, match.start(), end)


def _cues(text: str) -> Iterator[Statement]:
    """Yield "answer: ..." and "the answer is ...", unless conditional, doubted, retracted or another speaker's."""
    for word in list(_WORD.finditer(text))[-_MOST_CUES:]:
        match = _CUE.match(text, word.start())
        if match is None:
            continue
        before = text[sentence_start(text, word.start()) : word.start()]
        is_conclusion = word.group().lower() == "conclusion"
        verb = match.group("verb") or ""
        if match.group("label"):
            if is_conclusion:
                continue  # a heading: what follows is prose, not an answer
            passage, end = _passage(text, match.end(), whole_line=True)
        else:
            if is_conclusion and not re.search(r"\b(?:my|our|the|final)\s+(?:final\s+)?$", before):
                continue
            passage, end = _passage(text, match.end(), whole_line=False)
            if re.search(r"n['’]t\b|not\b", verb) or re.match(r"\W*not\b(?!.*\bbut\b)", passage):
                stop = sentence_end(text, min(end + 2, len(text)))  # "is not 40. It is 42."
                passage, end = f"{verb} {passage}. {text[end + 1 : stop].strip()}", stop
        if _SUPPOSED.search(before) or _DOUBTED.search(before) or _RETRACTED.match(text[end : end + 80]):
            continue
        if (_OTHERS.search(before) or _OTHERS_SAY.search(before)) and not _AGREES.search(before):
            continue
        own = not (_PAST.search(before) or _POINTS_BACK.search(before) or verb.lower().startswith("was"))
        yield Statement("label" if match.group("label") else "phrase", passage, word.start(), end, own=own)


def _passage(text: str, start: int, *, whole_line: bool) -> tuple[str, int]:
    """Return what is stated from `start` on, and its end.

    That reaches to the end of the line or the sentence; where the line is bare, it is the next line with content.
    """
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    line = text[start:line_end]
    if re.search(r"[^\W_]", re.sub(r"\\text|\\boxed", "", line)):
        line_end = line_end if whole_line else min(line_end, sentence_end(text, start))
        return text[start:line_end], line_end
    position = line_end
    while position < len(text):  # "The answer is:" and the value below, perhaps fenced or as a displayed formula
        next_end = text.find("\n", position + 1)
        next_end = len(text) if next_end < 0 else next_end
        line = text[position:next_end].strip()
        if re.match(r"^(?:```|~~~)", line):
            if re.match(r"^(?:```|~~~)\s*json", line, re.IGNORECASE):
                return "", position
        elif line.startswith("{"):
            return "", position
        elif re.search(r"[^\W_]", line):
            stop = sentence_end(text, position + 1) if not whole_line else next_end
            stop = max(min(stop, next_end), position + 1)
            return text[position:stop].strip(), stop
        position = next_end
    return "", line_end
