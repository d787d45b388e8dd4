"""What happened in a run's debates: by round, from round to round, by agent and by model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from ..reports.run_page import ROUNDS, remarks
from .screen import count, fraction, table
from .text import clean

#: With more groups than this a table by group would be wider than a terminal.
MOST_GROUPS = 10


def dynamics_view(dynamics: Mapping[str, Any]) -> Iterator[Any]:
    """Yield a run's dynamics, as `CorpusDynamics.as_dict` gives them; what was never counted is left out."""
    rounds = len(dynamics.get("agreement") or [])
    if not rounds:
        return
    yield Text()
    made = table(f"{count(dynamics.get('debates'))} debates, by round", *(f">{number + 1}" for number in range(rounds)))
    for name, title in ROUNDS.items():
        if name in dynamics:
            made.add_row(title, *(fraction(value) for value in dynamics[name]))
    yield made
    if rounds > 1 and (flips := dynamics.get("flips")):
        yield Text()
        made = table("answers that went", *(f">{number} to {number + 1}" for number in range(1, rounds)))
        for kind, counts in flips.items():
            made.add_row(clean(kind), *(count(value) for value in counts))
        yield made
    for title, key in (("agent", "agents"), ("model", "models")):
        speakers = dynamics.get(key) or {}
        if len(speakers) > 1:
            yield Text()
            yield _speakers(title, speakers)
            yield from _choices(title, speakers)
    if dynamics.get("pairs"):
        yield Text()
        yield from _pairs(dynamics)
    if lines := remarks(dynamics):
        yield Text()
    yield from (Text(clean(line)) for line in lines)


def _speakers(title: str, speakers: Mapping[str, Mapping[str, Any]]) -> Any:
    made = table(title, ">right at first", ">at last", ">changes", ">to another's", ">to the commonest")
    for name, speaker in speakers.items():
        made.add_row(
            _speaker(title, name),
            fraction(speaker.get("first")),
            fraction(speaker.get("last")),
            *(count(speaker.get(part)) for part in ("changes", "followed", "followed_plurality")),
        )
    return made


def _choices(title: str, speakers: Mapping[str, Mapping[str, Any]]) -> Iterator[Any]:
    """Yield how often each agent or model chose which move, where there was a choice."""
    choices = sorted({choice for speaker in speakers.values() for choice in speaker.get("choices") or {}})
    if not choices:
        return
    yield Text()
    made = table(title, *(f">chose to {clean(choice)}" for choice in choices))
    for name, speaker in speakers.items():
        chosen = speaker.get("choices") or {}
        made.add_row(_speaker(title, name), *(count(chosen.get(choice, 0)) for choice in choices))
    yield made


def _speaker(title: str, name: str) -> str:
    return str(int(name) + 1) if title == "agent" and name.isdigit() else clean(name)


def _pairs(dynamics: Mapping[str, Any]) -> Iterator[Any]:
    """Yield how debates of two went, see `metrics.dynamics.pair_category`, in all and by group."""
    groups = dynamics.get("groups") or {}
    shown = groups if len(groups) <= MOST_GROUPS else {}
    made = table("how pairs went", ">all", *(f">{number}" for number in range(1, len(shown) + 1)))
    for name, number in dynamics["pairs"].items():
        parts = [(group.get("pairs") or {}).get(name, 0) for group in shown.values()]
        made.add_row(clean(name.replace("_", " ")), count(number), *map(count, parts))
    yield made
    for number, (name, group) in enumerate(shown.items(), start=1):
        yield Text(clean(f"{number} {name} ({count(group.get('debates'))})"), style="dim")
    if len(groups) > len(shown):
        yield Text(f"by group ({len(groups)} of them): see --json", style="dim")
