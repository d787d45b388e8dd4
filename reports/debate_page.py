"""A debate as a page shows it, and the page of a single one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from ..signatures.answers import brief
from ..signatures.transcript import Transcript, Turn
from .pages import write_page
from .plots import COLOURS


@dataclass(frozen=True)
class DebateView:
    """What a page needs of a debate.

    Attributes:
        transcript: all that was said.
        answer_scores: score in [0, 1] of each answer stated on the way, by voting bucket; empty where it is not known.
    """

    transcript: Transcript
    answer_scores: Mapping[str, float] = field(default_factory=dict)

    @property
    def parts(self) -> list[tuple[str, list[Turn]]]:
        """The turns under the titles of their parts; personas that were named stand above them all."""
        named = bool(self.transcript.personas)
        turns = [turn for turn in self.transcript.turns if turn.role != "identify" or not named or turn.problem]
        return [(title, list(group)) for title, group in groupby(turns, key=lambda turn: turn.part)]

    @property
    def several_models(self) -> bool:
        """Whether the speakers' models need to be told apart."""
        return len({turn.model for turn in self.transcript.turns}) > 1

    @property
    def rounds(self) -> int:
        """How many rounds the debate had."""
        return max((len(answers) for answers in self.transcript.trajectory()), default=0)

    @property
    def course(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Each agent's answer by round, and whether it is right, wrong or blank ("" where nobody knows)."""
        texts = {turn.bucket: brief(turn.answer) for turn in self.transcript.turns if turn.bucket is not None}
        names = {turn.agent: turn.name for turn in self.transcript.turns if turn.agent is not None}
        return [
            (
                names.get(agent) or f"agent {agent + 1}",
                [(texts[key] if key is not None else "(none)", self._state(key)) for key in answers],
            )
            for agent, answers in enumerate(self.transcript.trajectory())
        ]

    def _state(self, bucket: str | None) -> str:
        if bucket is None:
            return "blank"
        score = self.answer_scores.get(bucket)
        return "" if score is None else "right" if score >= 1 else "wrong"


def write_debate_page(transcript: Transcript, out: Path, *, notes: list[str], simulated: bool = False) -> Path:
    """Write the page of one debate; one file without scripts or anything from elsewhere.

    Args:
        transcript: all that was said.
        out: the file.
        notes: what stands below the heading, such as the models and what it cost.
        simulated: some model is simulated.

    Raises:
        InputError: when `out` cannot be written.
    """
    values: dict[str, Any] = {"view": DebateView(transcript), "notes": notes, "simulated": simulated}
    return write_page("transcript.html", out, colours=COLOURS, **values)
