"""MMLU: four-way multiple choice in 57 subjects (Hendrycks et al., arXiv 2009.03300)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

from ..errors import InputError
from ..metrics.extraction import CHOICE_RULES, extract_choice
from ..metrics.score import Score
from ..signatures.answers import fold
from ..signatures.demonstrations import Demonstration
from ..signatures.transcript import Persona
from .base import TASKS, Example, HubSource, Task, field_of, row_id
from .options import known_name, names_option
from .tables import shipped_table

LETTERS = ("A", "B", "C", "D")
#: Subject -> category, as the authors group them.
SUBJECTS: Mapping[str, str] = shipped_table("mmlu_subjects.csv")
CATEGORIES = tuple(sorted(set(SUBJECTS.values())))


@TASKS.register("mmlu")
class MMLU(Task):
    """Multiple-choice questions; the answer is a letter from A to D.

    Rows have `subject`, `question`, `choices` (four texts) and `answer` (a letter, or a 0-based index).
    """

    name: ClassVar[str] = "mmlu"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "four-way multiple choice in 57 subjects"
    hub: ClassVar[HubSource | None] = HubSource("cais/mmlu", "all", "test")
    answer_type: ClassVar[Any] = Literal["A", "B", "C", "D"]
    option_help: ClassVar[Mapping[str, str]] = {
        "subject": "only these subjects, separated by commas",
        "category": f"only these categories, separated by commas: {', '.join(CATEGORIES)}",
    }
    extract_rules: ClassVar[tuple[str, ...]] = CHOICE_RULES
    group_fields: ClassVar[tuple[str, ...]] = ("subject", "category")

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        subjects = names_option(self.options, "subject", tuple(SUBJECTS))
        categories = names_option(self.options, "category", CATEGORIES)
        self.subjects = tuple(
            subject
            for subject, category in SUBJECTS.items()
            if (subjects is None or subject in subjects) and (categories is None or category in categories)
        )
        if not self.subjects:
            raise InputError(f"no subject is in both {', '.join(subjects or ())} and {', '.join(categories or ())}")

    def rows(self) -> Iterable[tuple[Mapping[str, Any], str]]:
        """Yield the source's rows of the chosen subjects.

        Raises:
            InputError: when the source has none of them.
        """
        found = False
        for row, where in super().rows():
            if _subject(row, where) in self.subjects:
                found = True
                yield row, where
        if not found:
            raise InputError(f"{self.source}: no question on {', '.join(self.subjects)}")

    def example(self, row: Mapping[str, Any], where: str) -> Example:
        """Build an example from `subject`, `question`, `choices` and `answer`."""
        subject = _subject(row, where)
        text = str(field_of(row, "question", where)).strip()
        choices = _choices(field_of(row, "choices", where), where)
        question = render(subject, text, choices)
        return Example(
            id=row_id(row, question),
            question=question,
            gold=_letter(field_of(row, "answer", where, "gold"), where),
            meta={"subject": subject, "category": SUBJECTS[subject], "choices": choices},
        )

    def extract(self, text: str, example: Example, rule: str = "flexible") -> str | None:
        """Read the letter that a text answers with."""
        self._check_rule(rule)
        return extract_choice(text, LETTERS, rule, texts=example.meta["choices"])

    def score(self, answer: Any | None, example: Example) -> Score:
        """Return 1 for the gold letter or its choice's text, else 0; what is no choice is a blank."""
        gold = str(example.gold)
        right = f"The right answer is {gold}: {example.meta['choices'][LETTERS.index(gold)]}"
        letter = _chosen(answer, example.meta["choices"])
        if letter is None:
            return Score(0.0, blank=True, feedback=f"No choice was named. {right}")
        if letter == gold:
            return Score(1.0, feedback=f"{gold} is right.")
        return Score(0.0, feedback=f"{letter} is wrong. {right}")

    def demonstrations(self) -> list[Demonstration]:
        """Return two worked questions."""
        return [
            Demonstration(
                question=render(
                    "conceptual_physics",
                    "A stone is dropped from rest and falls freely. How do the distances that it falls in the first "
                    "and in the second second compare?",
                    [
                        "They are equal.",
                        "The second is twice the first.",
                        "The second is three times the first.",
                        "The second is four times the first.",
                    ],
                ),
                reasoning=(
                    "The distance from rest grows with the square of the time: 1 unit after one second, 4 units after "
                    "two. In the second second alone the stone falls 4 - 1 = 3 units, three times the first."
                ),
                answer="C",
                mistaken_reasoning="The distance grows with the square of the time, and 2 squared is 4.",
                mistaken_answer="D",
                correction=(
                    "Four units is the whole distance after two seconds. The second second alone is the difference, "
                    "4 - 1 = 3."
                ),
                personas=[
                    Persona(name="Physicist", expertise="mechanics", stance="starts from the law that applies"),
                    Persona(
                        name="Examiner", expertise="multiple-choice tests", stance="asks what each choice would need"
                    ),
                    Persona(name="Sceptic", expertise="logic", stance="looks for a misread question"),
                ],
            ),
            Demonstration(
                question=render(
                    "logical_fallacies",
                    '"Either we close the library or the town goes bankrupt." Which fallacy does the speaker most '
                    "likely commit?",
                    ["False dilemma", "Circular reasoning", "Appeal to pity", "Equivocation"],
                ),
                reasoning=(
                    "The sentence allows only two outcomes, although there are other ways to save money. Presenting "
                    "two options as the only ones is a false dilemma."
                ),
                answer="A",
                mistaken_reasoning="Bankruptcy would be sad for the town, so the speaker appeals to feelings.",
                mistaken_answer="C",
                correction="No pity is asked for; the flaw is that other options than the two are left out.",
                personas=[
                    Persona(name="Logician", expertise="informal fallacies", stance="names the form of the argument"),
                    Persona(name="Rhetorician", expertise="persuasion", stance="asks what moves the listener"),
                    Persona(name="Examiner", expertise="multiple-choice tests", stance="rules choices out one by one"),
                ],
            ),
        ]


def render(subject: str, text: str, choices: list[str]) -> str:
    """Return the question as agents read it."""
    lines = [f"{letter}) {choice}" for letter, choice in zip(LETTERS, choices, strict=True)]
    return "\n".join([f"Subject: {subject.replace('_', ' ')}", "", text, "", *lines])


def _chosen(answer: Any | None, choices: list[str]) -> str | None:
    if answer is None:
        return None
    letter = str(answer).strip().strip("().").upper()
    if letter in LETTERS:
        return letter
    return next((known for known, text in zip(LETTERS, choices, strict=True) if fold(text) == fold(answer)), None)


def _subject(row: Mapping[str, Any], where: str) -> str:
    return known_name(field_of(row, "subject", where), tuple(SUBJECTS), f"{where}, field subject")


def _choices(value: Any, where: str) -> list[str]:
    if isinstance(value, str):  # a CSV cell
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if not isinstance(value, list | tuple) or len(value) != len(LETTERS):
        raise InputError(f"{where}, field choices: must be a list of {len(LETTERS)} texts")
    return [str(choice) for choice in value]


def _letter(value: Any, where: str) -> str:
    text = str(value).strip().upper()
    if text in LETTERS:
        return text
    if text in ("0", "1", "2", "3"):
        return LETTERS[int(text)]
    raise InputError(f"{where}, field answer: '{value}' is neither a letter from A to D nor an index from 0 to 3")
