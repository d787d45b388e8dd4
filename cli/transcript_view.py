"""How a debate looks on a terminal: participants, turns by round, votes, the decision.

All of it was written by models, so all of it is cleaned, and none is read as markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ..signatures.transcript import PARTS
from .screen import count, money, rows, seconds, table
from .text import clean

if TYPE_CHECKING:
    from ..signatures.transcript import Candidate, Decision, Persona, Transcript, Turn, Usage

#: Colours of the agents, in turn.
COLOURS = ("cyan", "magenta", "yellow", "blue", "green", "red", "bright_cyan", "bright_magenta")
_INDENT = 2


def section(title: str) -> RenderableType:
    """Return the line above a part of the transcript."""
    return Group(Text(), Rule(Text(clean(title), style="bold"), align="left", style="dim"))


def turn_view(turn: Turn, *, show_model: bool = False) -> RenderableType:
    """Return one turn: who spoke, what was said, the answer it states."""
    style = "bold" if turn.agent is None else f"bold {COLOURS[turn.agent % len(COLOURS)]}"
    head = Text(clean(turn.name or turn.role), style=style)
    if turn.role not in PARTS:
        head.append(f"  {turn.role}", style="dim")
    if show_model and turn.model:
        head.append(f"  {clean(turn.model)}", style="dim")
    if turn.abstained:
        head.append("  abstains", style="bold red")
        return Group(head, _inset(Text(clean(turn.problem or "no readable reply"), style="dim")))
    parts: list[RenderableType] = [head]
    if turn.problem:
        parts.append(_inset(Text(f"({clean(turn.problem)})", style="dim")))
    parts += [_inset(part) for part in said_view(turn.said)]
    if turn.answer is not None:
        parts.append(_inset(answer_view(turn.answer)))
    return Group(*parts)


def said_view(said: dict[str, Any]) -> Iterator[RenderableType]:
    """Yield what a turn said, field by field; a single text needs no label."""
    if set(said) == {"reason", "choice"}:
        yield Text.assemble(("for candidate ", "dim"), (clean(said["choice"]), "bold"), f": {clean(said['reason'])}")
        return
    texts = [name for name, value in said.items() if isinstance(value, str)]
    for name, value in said.items():
        if isinstance(value, str) and len(texts) == 1:
            yield Text(clean(value))
        elif isinstance(value, list):
            yield from _items_view(value)
        else:
            yield Text.assemble((f"{name.replace('_', ' ')}: ", "dim"), clean(value))


def _items_view(items: Sequence[Any]) -> Iterator[RenderableType]:
    for item in items:
        if not isinstance(item, dict):
            yield _bullet(Text(clean(item)))
            continue
        fields = list(item.items())
        nested = [value for _, value in fields if isinstance(value, list)]
        plain = [(name, value) for name, value in fields if not isinstance(value, list) and value not in (None, "")]
        if plain:
            (_, first), *rest = plain
            text = Text(clean(first), style="bold")
            for _, value in rest:
                text.append(": " if value is rest[0][1] else "; ", style="not bold").append(clean(value), "not bold")
            yield _bullet(text)
        for value in nested:
            yield from (_inset(part) for part in _items_view(value))


def _bullet(text: Text) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=1)
    grid.add_column(overflow="fold")
    grid.add_row("•", text)
    return grid


def answer_view(answer: Any) -> RenderableType:
    """Return an answer; a logic grid becomes a table."""
    from ..signatures.answers import display

    if isinstance(answer, dict) and isinstance(answer.get("header"), list) and isinstance(answer.get("rows"), list):
        return rows(table(*(clean(name) for name in answer["header"])), answer["rows"])
    return Text.assemble(("answer: ", "dim"), (clean(display(answer)), "bold"))


def _inset(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, _INDENT))


def personas_view(personas: Sequence[Persona]) -> RenderableType:
    """Return the participants, one a line."""
    lines = []
    for number, persona in enumerate(personas):
        line = Text(clean(persona.name), style=f"bold {COLOURS[number % len(COLOURS)]}")
        details = "; ".join(part for part in (persona.expertise, persona.stance) if part)
        if details:
            line.append(f"  {clean(details)}", style="not bold default")
        lines.append(_inset(line))
    return Group(*lines)


def decision_view(decision: Decision) -> RenderableType:
    """Return the outcome: the answer, the candidates with their votes, ties and abstentions."""
    parts: list[RenderableType] = []
    if decision.answer is None:
        parts.append(_inset(Text("no answer (a blank)", style="bold red")))
    else:
        parts.append(_inset(answer_view(decision.answer)))
    if len(decision.candidates) > 1:
        made = table(">no.", "candidate", ">held by", ">votes")
        rows(made, (_candidate_row(candidate) for candidate in decision.candidates))
        parts.append(_inset(made))
    remarks = [f"decided by {decision.rule}"]
    if decision.unanimous:
        remarks.append("unanimous")
    if decision.tie:
        remarks.append(f"a tie, broken by: {decision.tie_break}")
    if decision.judged:
        remarks.append("a judge was called")
    if decision.abstentions:
        remarks.append(f"{decision.abstentions} abstained")
    parts.append(_inset(Text(clean("; ".join(remarks)), style="dim")))
    if decision.reason:
        parts.append(_inset(Text(clean(decision.reason))))
    return Group(*parts)


def _candidate_row(candidate: Candidate) -> tuple[object, ...]:
    from ..signatures.answers import display

    answer = candidate.answer
    if isinstance(answer, dict) and "rows" in answer:
        answer = "; ".join(" ".join(map(str, row)) for row in answer["rows"])
    return candidate.number, display(answer), len(candidate.supporters), f"{candidate.votes:g}"


def usage_line(usage: Usage, wall: float | None = None) -> str:
    """Return what calls cost, in one line."""
    parts = [f"{count(usage.calls)} calls"]
    if usage.cached:
        parts[0] += f" ({count(usage.cached)} more from the cache)"
    parts.append(f"{count(usage.prompt_tokens)} tokens sent, {count(usage.completion_tokens)} received")
    if wall is not None:
        parts.append(seconds(wall))
    parts.append(f"cost {money(usage.cost)}")
    return " · ".join(parts)


def transcript_view(transcript: Transcript) -> Iterator[RenderableType]:
    """Yield a whole transcript, part by part."""
    yield section("Question")
    yield _inset(Text(clean(transcript.question)))
    several = len({turn.model for turn in transcript.turns}) > 1
    if transcript.personas:
        yield section("Participants")
        yield personas_view(transcript.personas)
    title = "Participants"
    for turn in transcript.turns:
        if turn.role == "identify" and transcript.personas:
            if turn.problem:
                yield _inset(Text(f"({clean(turn.problem)})", style="dim"))
            continue
        if turn.part != title:
            title = turn.part
            yield section(title)
        yield turn_view(turn, show_model=several)
    if transcript.decision is not None:
        yield section("Decision")
        yield decision_view(transcript.decision)
