"""What a run came to: scores with intervals, by group, usage, and what its debates show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import InputError
from ..metrics.corpus_dynamics import corpus_dynamics
from ..metrics.dynamics import debate_dynamics
from ..signatures.transcript import Usage
from ..tasks.base import TASKS, Task
from .accounting import only_cached
from .intervals import score_intervals
from .records import Record, RunInfo, Status, Summary
from .run_folder import PaidCall
from .scoring import score_records


def summarise(
    info: RunInfo,
    records: Sequence[Record],
    calls: Iterable[PaidCall],
    *,
    status: Status,
    reason: str | None = None,
    by: str | None = None,
    task: Task | None = None,
) -> Summary:
    """Return a run's summary.

    Args:
        info: what the run is.
        records: one an example.
        calls: all that was paid, for unfinished examples too.
        status: how it ended.
        reason: why it is not complete.
        by: a field to group by; the task's `default_by` when None.
        task: computes the corpus scores; made from its name when None (a task that is not registered then has its
            mean score only).
    """
    task = task or _task(info)
    by = by or task.default_by
    by_role = _usage_by_role(records, calls)
    report = score_records(task, records, by)
    return Summary(
        task=info.task,
        n=len(records),
        total=info.n,
        status=status,
        reason=reason,
        primary=task.primary,
        scores=report.scores,
        intervals=score_intervals(task, [record.scored() for record in records], report.scores),
        by=by,
        groups=report.groups,
        usage=sum(by_role.values(), Usage()),
        usage_by_role=by_role,
        failed=sum(record.error is not None for record in records),
        blank=sum(record.blank for record in records),
        seconds=sum(session.seconds for session in info.sessions),
        dynamics=dynamics_of(records, by),
        simulated=info.simulated,
    )


def dynamics_of(records: Sequence[Record], by: str | None = None) -> dict[str, Any]:
    """Return what the records' debates show, see `metrics.dynamics`; empty where nobody had anything to change.

    Args:
        records: those without a transcript are left out.
        by: a field to group by.
    """
    debates = []
    for record in records:
        if record.transcript is None:
            continue
        scores = record.answer_scores
        # Where a model judges answers, those on the way were not scored: it is not known who was right.
        known = bool(scores) or record.blank
        is_right = (lambda bucket, scores=scores: scores.get(bucket, 0.0) >= 1.0) if known else None
        group = str(record.meta[by]) if by and record.meta.get(by) is not None else None
        debate = debate_dynamics(record.transcript, is_right, group=group)
        if len(debate.answers) > 1 or len(debate.rounds) > 1:
            debates.append(debate)
    return corpus_dynamics(debates).as_dict() if debates else {}


def _usage_by_role(records: Sequence[Record], calls: Iterable[PaidCall]) -> dict[str, Usage]:
    """Return what was paid, for unfinished examples too, and what the finished ones were served from the cache."""
    by_role: dict[str, Usage] = {}
    for call in calls:
        by_role[call.role] = by_role.get(call.role, Usage()) + call.usage
    for record in records:
        for role, usage in record.usage_by_role.items():
            by_role[role] = by_role.get(role, Usage()) + only_cached(usage)
    return by_role


def _task(info: RunInfo) -> Task:
    try:
        return TASKS.get(info.task)(None, **info.task_options)
    except InputError:
        return _Elsewhere()


class _Elsewhere(Task):
    """Stands in for a task that is not registered here: it only averages."""

    name = "elsewhere"
    summary = "a task of someone else's"

    def example(self, row: Any, where: str) -> Any:
        raise NotImplementedError

    def extract(self, text: str, example: Any, rule: str = "flexible") -> Any:
        raise NotImplementedError

    def score(self, answer: Any, example: Any) -> Any:
        raise NotImplementedError
