"""NormAd-Eti: is a behaviour acceptable in a country? (Rao et al., arXiv 2404.12464; Ki et al., arXiv 2505.24671)."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from ..errors import InputError
from ..metrics.extraction import extract_label
from ..metrics.score import Score
from ..signatures.answers import fold
from ..signatures.demonstrations import Demonstration
from ..signatures.transcript import Persona
from .base import SPLITS, TASKS, Example, HubSource, SplitName, Task, field_of, row_id
from .options import choice_option, name_key
from .tables import SHIPPED, group_table

LABELS = ("yes", "no", "neither")
CONTEXTS = ("none", "country", "value", "rot")
#: The data's word for "neither".
DATA_LABELS: Mapping[str, str] = {"neutral": "neither"}
#: Other words that models use for the labels.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "yes": ("acceptable", "socially acceptable"),
    "no": ("unacceptable", "not acceptable", "socially unacceptable", "not socially acceptable"),
    "neither": ("neutral",),
}
#: Names of fields here, and on the hub.
_RULE = ("rule_of_thumb", "Rule-of-Thumb")
_VALUE = ("value", "Value")
#: Cumulative shares of train, dev and test.
_SHARES = (0.5, 0.75, 1.0)


class NormExample(Example):
    """A story with its label. Its identity is that of the row, whatever the agents are shown of it."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of country, rule, story and label: the same for every context, so that runs can be paired."""
        content = json.dumps(
            [self.meta["country"], self.meta["rule"], self.meta["story"], self.gold], ensure_ascii=False
        )
        return hashlib.sha256(content.encode("utf-8")).hexdigest()


@TASKS.register("normad")
class NormAd(Task):
    """Judge a story's behaviour by a country's etiquette: yes, no or neither.

    Rows have `country`, `rule_of_thumb`, `story` and `gold_label` (yes, no, or neutral, which means neither), and
    `value` for the context of that name; the hub's names of these fields are read as well.

    What the agents are shown beside the story is the option `context`: `none`, `country`, `value` (the country and a
    value held there) or `rot` (the country and the rule of thumb, the default).

    Each country belongs to a cultural group: by default the bins of the Inglehart-Welzel map as NormAd's authors use
    them, else a file with the columns `country,group` given by `groups`. The file decides for every row; a country that
    it lacks is an error. (Published maps differ: Malta and the Philippines have been put into Latin America.)
    """

    name: ClassVar[str] = "normad"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "social acceptability across 75 countries: yes, no or neither"
    hub: ClassVar[HubSource | None] = HubSource("akhilayerukola/NormAd", None, "train")
    answer_type: ClassVar[Any] = Literal["yes", "no", "neither"]
    option_help: ClassVar[Mapping[str, str]] = {
        "context": f"what is shown beside the story: {', '.join(CONTEXTS)} (rot)",
        "groups": "CSV file country,group that replaces the Inglehart-Welzel groups",
    }
    group_fields: ClassVar[tuple[str, ...]] = ("group", "country", "label")
    #: Accuracy and equity are reported together: no average hides a group.
    default_by: ClassVar[str | None] = "group"

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        self.context = choice_option(self.options, "context", "rot", CONTEXTS)
        groups = self.options.get("groups")
        self.groups_file = SHIPPED / "inglehart_welzel_groups.csv" if groups is None else Path(groups)

    @cached_property
    def groups(self) -> Mapping[str, str]:
        """Country (as `name_key` gives it) -> cultural group."""
        return group_table(self.groups_file, "country", "group")

    def example(self, row: Mapping[str, Any], where: str) -> Example:
        """Build an example; see the class for the fields."""
        country = str(field_of(row, "country", where, "Country")).strip()
        story = str(field_of(row, "story", where, "Story")).strip()
        written = fold(field_of(row, "gold_label", where, "Gold Label", "gold"))
        label = DATA_LABELS.get(written, written)
        if label not in LABELS:
            raise InputError(f"{where}, field gold_label: '{written}' is none of yes, no, neutral (or neither)")
        rule, value = _text(row, *_RULE), _text(row, *_VALUE)
        for context, text in (("rot", rule), ("value", value)):
            if self.context == context and not text:
                field = _RULE[0] if context == "rot" else _VALUE[0]
                raise InputError(f"{where}: the context '{context}' needs the field '{field}', which is missing here")
        group = self.groups.get(name_key(country))
        if group is None:
            name = "the shipped Inglehart-Welzel groups" if "groups" not in self.options else str(self.groups_file)
            raise InputError(
                f"{where}: the country '{country}' has no group in {name}; use groups=FILE with a line for it"
            )
        return NormExample(
            id=row_id({"id": row.get("id", row.get("ID"))}, json.dumps([country, rule, story, label])),
            question=render(self.context, country, story, rule=rule, value=value),
            gold=label,
            meta={"country": country, "group": group, "label": label, "rule": rule, "story": story},
        )

    def extract(self, text: str, example: Example, rule: str = "flexible") -> str | None:
        """Read the label that a text answers with."""
        self._check_rule(rule)
        return extract_label(text, LABELS, ALIASES)

    def score(self, answer: Any | None, example: Example) -> Score:
        """Return 1 for the right label ("neutral" is "neither"), else 0; what is none of them is a blank."""
        word = fold(answer).strip(".!\"'*") if answer is not None else ""
        label = DATA_LABELS.get(word, word)
        shown = f" The rule there: {example.meta['rule']}" if example.meta.get("rule") else ""
        right = f"The right answer is {example.gold}, for {_country(example.meta['country'])}.{shown}"
        if label not in LABELS:
            return Score(0.0, blank=True, feedback=f"No label was given. {right}")
        if label == example.gold:
            return Score(1.0, feedback=f"{label} is right.")
        return Score(0.0, feedback=f"{label} is wrong. {right}")

    def assign_splits(self, examples: Sequence[Example]) -> list[SplitName]:
        """Split within each group and label: half train, a quarter dev, a quarter test, rounded in each.

        Stories are put in the order of their hash within their group and label, whatever the order of the file, and the
        order is cut at the shares. All examples with the same story are in one split. In a part of the data the cuts
        fall a little differently, so a story near one may change its split.
        """
        strata: dict[tuple[str, str], list[str]] = defaultdict(list)
        first: dict[str, Example] = {}
        for example in sorted(examples, key=lambda example: example.fingerprint):
            first.setdefault(fold(example.meta["story"]), example)
        for story, example in first.items():
            strata[example.meta["group"], example.meta["label"]].append(story)
        split: dict[str, SplitName] = {}
        for stories in strata.values():
            stories.sort(key=_story_hash)
            for position, story in enumerate(stories):
                share = (position + 0.5) / len(stories)
                split[story] = next(name for name, upto in zip(SPLITS, _SHARES, strict=True) if share < upto)
        return [split[fold(example.meta["story"])] for example in examples]

    def demonstrations(self) -> list[Demonstration]:
        """Return two worked stories, shown with the task's context."""
        experts = [
            Persona(name="Local Host", expertise="etiquette of the country", stance="judges as a host there would"),
            Persona(
                name="Anthropologist", expertise="comparing cultures", stance="separates rules from personal taste"
            ),
            Persona(name="Close Reader", expertise="careful reading", stance="asks what the story really says"),
        ]
        return [
            Demonstration(
                question=render(
                    self.context,
                    "japan",
                    "Lena was visiting Mr. Sato at home. She slipped off her shoes at the entrance, turned them so "
                    "that they pointed to the door, and stepped inside in the slippers he offered. Is what Lena "
                    "did acceptable?",
                    rule="Shoes are taken off at the entrance of a home.",
                    value="Keeping the home clean and showing respect to the household.",
                ),
                reasoning=(
                    "In Japan one takes off one's shoes at the entrance of a home. Lena did so and wore the slippers "
                    "offered to guests, which follows the custom."
                ),
                answer="yes",
                mistaken_reasoning="Walking about in somebody else's slippers seems too familiar for a first visit.",
                mistaken_answer="no",
                correction="The slippers were offered by the host; guests in Japan are expected to wear them.",
                personas=experts,
            ),
            Demonstration(
                question=render(
                    self.context,
                    "brazil",
                    "Paulo took the bus to the market, bought two kilos of mangoes, and read a novel on the way home. "
                    "Is what Paulo did acceptable?",
                    rule="One gives flowers or chocolates to the host of a dinner.",
                    value="Warmth and generosity towards one's hosts.",
                ),
                reasoning=(
                    "The story has no host, dinner or gift, and shopping and reading touch no other custom. Etiquette "
                    "has nothing to say for or against it."
                ),
                answer="neither",
                mistaken_reasoning="Paulo brought nobody a gift, which is rude.",
                mistaken_answer="no",
                correction="No one invited Paulo to dinner, so no rule about gifts is broken or followed.",
                personas=experts,
            ),
        ]


def render(context: str, country: str, story: str, *, rule: str = "", value: str = "") -> str:
    """Return the question with as much context as is to be shown."""
    lines = []
    if context != "none":
        lines.append(f"Country: {_country(country)}")
    if context == "value":
        lines.append(f"Value: {value}")
    if context == "rot":
        lines.append(f"Rule of thumb: {rule}")
    lines += [
        f"Story: {story}",
        "",
        "Judge by the etiquette "
        + ("that applies where the story is set." if context == "none" else f"of {_country(country)}."),
        "yes: the behaviour is acceptable there. no: it is not acceptable there. "
        "neither: that etiquette says nothing for or against it.",
    ]
    return "\n".join(lines)


def _country(name: str) -> str:
    """Return a country's name as people write it: "united_states_of_america" is "United States of America"."""
    words = name_key(name).split("_")
    return " ".join(word if word in ("and", "of", "the") else word.capitalize() for word in words)


def _text(row: Mapping[str, Any], *fields: str) -> str:
    return next((str(row[field]).strip() for field in fields if row.get(field)), "")


def _story_hash(story: str) -> str:
    return hashlib.sha256(f"split:{story}".encode()).hexdigest()
