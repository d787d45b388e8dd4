"""A run as a page: its scores, groups, rounds and costs, and the transcript of every example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from ..evaluation.records import Outcome, Record
from ..evaluation.run_folder import Run
from .debate_page import DebateView
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
        flips=dynamics.get("flips"),
        pairs=dynamics.get("pairs"),
        remarks=remarks(dynamics),
        costs=[*summary.usage_by_role.items(), ("in all", summary.usage)],
        views=[(record, _debate(record)) for record in shown],
        counts=Counter(record.outcome for record in shown),
        outcomes=get_args(Outcome),
        colours=COLOURS,
    )


def _debate(record: Record) -> DebateView | None:
    return DebateView(record.transcript, record.answer_scores) if record.transcript is not None else None


def remarks(dynamics: Mapping[str, Any]) -> list[str]:
    """Return what a run's debates show beyond their tables, a sentence each."""
    found = []
    if "began_all_wrong" in dynamics:
        all_wrong, rescued = dynamics["began_all_wrong"], dynamics["all_wrong_to_right"]
        found.append(f"{all_wrong} began with everyone wrong, {rescued} of them ended right")
        found.append(
            f"{dynamics['began_with_right_minority']} began with a right minority, "
            f"{dynamics['right_minority_lost']} of them ended wrong"
        )
    if "judged" in dynamics:
        found.append(
            f"the judge was called {dynamics['judged']} times, could be right {dynamics['judge_could']} times, and was "
            f"{dynamics['judged_right']} times"
        )
    return found
