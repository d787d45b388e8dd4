"""A run as a page: its scores, groups, rounds and costs, and the transcript of every example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import get_args

from ..evaluation.records import Outcome, Record
from ..evaluation.run_folder import Run
from ..signatures.answers import brief
from ..signatures.transcript import Transcript, Turn
from .pages import write_page
from .plots import COLOURS

#: Figures by round, and what they say.
ROUNDS = {
    "accuracy": "agents that are right",
    "majority": "majority is right",
    "agreement": "agents with the commonest answer",
    "consensus": "debates that are unanimous",
    "entropy": "entropy of answers (bits)",
    "blanks": "agents without an answer",
}


@dataclass(frozen=True)
class RecordView:
    """An example as the page shows it.

    Attributes:
        record: what came out.
        transcript: all that was said; None where it was not kept.
    """

    record: Record
    transcript: Transcript | None

    @property
    def parts(self) -> list[tuple[str, list[Turn]]]:
        """The turns under the titles of their parts; personas that were named stand above them all."""
        assert self.transcript is not None
        named = bool(self.transcript.personas)
        turns = [turn for turn in self.transcript.turns if turn.role != "identify" or not named or turn.problem]
        return [(title, list(group)) for title, group in groupby(turns, key=lambda turn: turn.part)]

    @property
    def several_models(self) -> bool:
        """Whether the speakers' models need to be told apart."""
        return self.transcript is not None and len({turn.model for turn in self.transcript.turns}) > 1

    @property
    def rounds(self) -> int:
        """How many rounds the debate had."""
        return max((len(answers) for answers in self._trajectory), default=0)

    @property
    def course(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Each agent's answer by round, and whether it is right, wrong or blank ("" where nobody knows)."""
        assert self.transcript is not None
        texts = {turn.bucket: brief(turn.answer) for turn in self.transcript.turns if turn.bucket is not None}
        names = {turn.agent: turn.name for turn in self.transcript.turns if turn.agent is not None}
        return [
            (
                names.get(agent) or f"agent {agent + 1}",
                [(texts.get(key or "", "(none)"), self._state(key)) for key in answers],
            )
            for agent, answers in enumerate(self._trajectory)
        ]

    @property
    def _trajectory(self) -> list[list[str | None]]:
        return self.transcript.trajectory() if self.transcript is not None else []

    def _state(self, bucket: str | None) -> str:
        if bucket is None:
            return "blank"
        score = self.record.answer_scores.get(bucket)
        return "" if score is None else "right" if score >= 1 else "wrong"


def write_run_page(run: Run, out: Path, records: Sequence[Record] | None = None) -> Path:
    """Write the page of a run; one file without scripts or anything from elsewhere.

    Args:
        run: the run.
        out: the file.
        records: those whose transcripts it shows; all of them when None.

    Raises:
        InputError: when `out` cannot be written.
    """
    shown = run.records if records is None else records
    summary = run.summary
    dynamics = summary.dynamics
    groups = summary.groups.values()
    names = list(dict.fromkeys(name for group in groups for name in group.scores))
    return write_page(
        "run.html",
        out,
        info=run.info,
        summary=summary,
        group_scores=sorted(names, key=lambda name: name != summary.primary),
        dynamics=[(title, dynamics[name]) for name, title in ROUNDS.items() if dynamics.get(name)],
        rounds=len(dynamics.get("agreement") or []),
        costs=[*summary.usage_by_role.items(), ("in all", summary.usage)],
        views=[RecordView(record, record.transcript) for record in shown],
        counts=Counter(record.outcome for record in shown),
        outcomes=get_args(Outcome),
        colours=COLOURS,
    )
