"""Biographies of computer scientists, judged by reference facts (society of minds, section 3.2)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ..errors import InputError
from ..metrics.factuality import Judge, pooled, score_biography
from ..metrics.score import Score
from ..signatures.demonstrations import Demonstration
from ..signatures.transcript import Persona
from .base import TASKS, Example, Scored, Task, field_of
from .tables import SHIPPED

_BULLET = re.compile(r"^\s*(?:[-*•‣]|\d+[.)])?\s*")


@TASKS.register("biography")
class Biography(Task):
    """Write a biography; a judge model compares it with reference facts, one by one.

    Data is a JSON file of name -> facts (a text with one bullet a line, or a list), or rows with `name` and `facts`.
    The default is a set of 10 computer scientists with about 10 facts each that comes with the package.

    Scoring needs a judge, any callable (fact, biography) -> "yes" | "no" | "uncertain":

        task.judge = townhall.metrics.factuality.lm_judge(lm)

    The command line makes it from the option `judge_lm`. The value is yes / (yes + no); corpus scores are `accuracy`
    (its mean over people), `fact_accuracy` (pooled over facts, the paper's figure), `uncertain` and `unreadable`
    (shares of facts), `undecided` (share of biographies in which no fact was decided; they count as 0) and `blank`.
    """

    name: ClassVar[str] = "biography"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "biographies of computer scientists, judged against reference facts"
    answer_type: ClassVar[Any] = str
    option_help: ClassVar[Mapping[str, str]] = {"judge_lm": "name of the model that judges"}

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        #: Compares a biography with one fact; must be set before scoring.
        self.judge: Judge | None = None

    @property
    def source(self) -> str:
        """Where the facts come from."""
        return "computer scientists that come with townhall" if self.data is None else super().source

    def rows(self) -> Iterable[tuple[Mapping[str, Any], str]]:
        """Yield one row a person."""
        if self.data is None:
            return _people(_read_people(SHIPPED / "computer_scientists.json") or {}, "computer_scientists.json")
        people = _read_people(Path(self.data))
        return super().rows() if people is None else _people(people, str(self.data))

    def example(self, row: Mapping[str, Any], where: str) -> Example:
        """Build an example from `name` and `facts`."""
        name = str(field_of(row, "name", where)).strip()
        facts = _facts(field_of(row, "facts", where), where)
        return Example(id=str(row.get("id") or name), question=render(name), gold=facts, meta={"name": name})

    def extract(self, text: str, example: Example, rule: str = "flexible") -> str | None:
        """Return the whole text; the biography is all that was written."""
        self._check_rule(rule)
        return text.strip() or None

    def check_scoring(self) -> None:
        """Check that there is a judge."""
        if self.judge is None:
            raise InputError("task 'biography' needs a judge: use --judge-lm MODEL, or set task.judge in Python")

    def score(self, answer: Any | None, example: Example) -> Score:
        """Return the share of decided facts with which a biography agrees.

        Raises:
            InputError: when there is no judge.
        """
        self.check_scoring()
        assert self.judge is not None  # checked in the line above
        text = "" if answer is None else str(answer).strip()
        if not text:
            return Score(0.0, blank=True, feedback=f"No biography was written. Facts to tell: {' '.join(example.gold)}")
        return score_biography(text, example.gold, self.judge)

    def aggregate(self, scored: Sequence[Scored]) -> dict[str, float | None]:
        """Return accuracy, blank and undecided as shares of people, the others as shares of facts."""
        parts = [item.score.parts for item in scored]
        undecided = [int(part["undecided"] or 0) for part in parts if "undecided" in part]
        return {
            **super().aggregate(scored),
            **pooled(parts),
            "undecided": sum(undecided) / len(undecided) if undecided else None,
        }

    def demonstrations(self) -> list[Demonstration]:
        """Return one worked biography, of someone who is no computer scientist."""
        return [
            Demonstration(
                question=render("Florence Nightingale"),
                reasoning=(
                    "I keep to what I am sure of: her birth in Florence on 12 May 1820, her work in the Crimean War, "
                    "her diagrams of mortality, the nursing school at St Thomas' Hospital in 1860, her election to the "
                    "Statistical Society, and her death on 13 August 1910 in London."
                ),
                answer=(
                    "- Florence Nightingale was born in Florence, Italy, on 12 May 1820.\n"
                    "- During the Crimean War she led nurses at the military hospital in Scutari.\n"
                    "- She used diagrams of the causes of death to argue for better sanitation in the army.\n"
                    "- She founded a school for nurses at St Thomas' Hospital in London in 1860.\n"
                    "- She was the first woman elected to the Statistical Society of London, in 1858.\n"
                    "- She died in London on 13 August 1910."
                ),
                mistaken_reasoning="She was English, so she must have been born in London, and nursed in the Boer War.",
                mistaken_answer=(
                    "- Florence Nightingale was born in London in 1830.\n"
                    "- She nursed soldiers during the Boer War.\n"
                    "- She invented the pie chart."
                ),
                correction=(
                    "She was born in Florence in 1820, and her war was the Crimean War. The pie chart is older, by "
                    "William Playfair. What none of us can confirm should be left out."
                ),
                personas=[
                    Persona(name="Historian", expertise="lives of scientists", stance="wants a source for each date"),
                    Persona(name="Archivist", expertise="places and institutions", stance="doubts what sounds neat"),
                    Persona(name="Editor", expertise="concise writing", stance="cuts what is not certain"),
                ],
            )
        ]


def render(name: str) -> str:
    """Return the question about one person."""
    return (
        f"Write a biography of {name} as a list of bullet points, one fact each. "
        "Give birth, education, positions, main work and awards with their dates and places as far as you are sure of "
        "them, and leave out what you are not sure of."
    )


def _read_people(path: Path) -> dict[str, Any] | None:
    """Return a JSON file's object of name -> facts; None for any other file, which the reader of rows deals with."""
    if path.suffix.casefold() != ".json":
        return None
    try:
        people = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return None
    return people if isinstance(people, dict) and not {"name", "facts"} <= people.keys() else None


def _people(people: Mapping[str, Any], file: str) -> Iterator[tuple[dict[str, Any], str]]:
    for name, facts in people.items():
        yield {"name": name, "facts": facts}, f"{file}, person '{name}'"


def _facts(value: Any, where: str) -> list[str]:
    if isinstance(value, str):
        value = value.splitlines()
    if not isinstance(value, list) or not all(isinstance(fact, str) for fact in value):
        raise InputError(f"{where}, field facts: must be a text with one fact a line, or a list of texts")
    facts = [cleaned for fact in value if (cleaned := _BULLET.sub("", fact, count=1).strip())]
    if not facts:
        raise InputError(f"{where}, field facts: there is no fact in it")
    return facts
