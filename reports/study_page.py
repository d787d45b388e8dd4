"""A study as a page: scores by shape with intervals, the Pareto front, importances and the course of the search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..metrics.statistics import interval
from ..optimize.space import COUNTS
from ..optimize.study import StudyResult, TrialResult
from . import plots
from .pages import write_page


def write_study_page(study: StudyResult, importances: dict[str, float], out: Path) -> Path:
    """Write the page of a study; one file without scripts or anything from elsewhere.

    Raises:
        InputError: when no trial has finished, or `out` cannot be written.
        MissingDependencyError: when matplotlib is not installed.
    """
    if not study.finished:
        raise InputError(f"study '{study.name}' has no finished trial yet")
    drawings = [
        (title, note, svg)
        for title, note, svg in (_by_shape(study), _front(study), _importances(importances), _course(study))
        if svg
    ]
    best = study.best_trial
    return write_page(
        "study.html",
        out,
        study=study,
        best=best,
        highest=max(study.whole, key=lambda trial: (trial.score or 0.0, -trial.number)),
        front={trial.number for trial in study.front},
        drawings=drawings,
        trials=study.trials,
        priced=any(trial.costs.get("cost") for trial in study.trials),
        interval=_interval_text,
    )


def _bounds(trial: TrialResult) -> tuple[float, float, float]:
    found = interval(list(trial.scores.values()))
    return trial.score or 0.0, found.low, found.high


def _interval_text(trial: TrialResult) -> str:
    if not trial.scores:
        return ""
    _, low, high = _bounds(trial)
    return f"{100 * low:.0f} to {100 * high:.0f}"


def _by_shape(study: StudyResult) -> tuple[str, str, str]:
    """Draw the score against how many speak, a line for each number of rounds."""
    names = [name for name in COUNTS if any(name in trial.settings for trial in study.whole)]
    if not names:
        return "", "", ""
    across = next((name for name in names if name != "rounds"), "rounds")
    by_rounds: dict[Any, list[TrialResult]] = defaultdict(list)
    for trial in study.finished:
        by_rounds[trial.settings.get("rounds") if across != "rounds" else None].append(trial)
    drawing, axes = plots.figure()
    for index, (rounds, group) in enumerate(sorted(by_rounds.items(), key=lambda item: str(item[0]))):
        colour = plots.COLOURS[index % len(plots.COLOURS)]
        # Lines are set apart a little, so that intervals at the same place stay readable.
        aside = 0.07 * (index - (len(by_rounds) - 1) / 2)
        label = f"{rounds} round{'s' if rounds != 1 else ''}" if rounds is not None else across
        _line(axes, across, [trial for trial in group if trial.state == "complete"], aside, label, colour)
        stopped = [trial for trial in group if trial.state == "pruned"]
        places, scores = [trial.settings[across] + aside for trial in stopped], [trial.score for trial in stopped]
        axes.scatter(places, scores, marker="x", s=18, linewidth=0.8, color=colour, alpha=0.5)
    axes.set_xlabel(across)
    axes.set_ylabel("score")
    plots.percent_axis(axes.yaxis)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False)
    note = (
        "Whole trials with their 95 % intervals; the small numbers are calls per question. "
        "Crosses are trials that were stopped early, at the score they had."
    )
    return f"Score by {across}" + (" and rounds" if across != "rounds" else ""), note, plots.to_svg(drawing)


def _line(axes: Any, across: str, trials: Sequence[TrialResult], aside: float, label: str, colour: str) -> None:
    """Draw the best whole trial at each count, joined by a line."""
    best: dict[Any, TrialResult] = {}
    for trial in trials:
        known = best.get(trial.settings[across])
        if known is None or (trial.score or 0) > (known.score or 0):
            best[trial.settings[across]] = trial
    counts = sorted(best)
    if not counts:
        axes.plot([], [], label=label, color=colour, marker="o")
        return
    places = [count + aside for count in counts]
    plots.intervals(axes, places, [_bounds(best[count]) for count in counts], label=label, color=colour)
    for place, count in zip(places, counts, strict=True):
        calls = best[count].costs.get("calls")
        if calls is not None:
            spot = (place, best[count].score or 0)
            axes.annotate(f"{calls:.0f}", spot, (5, 6), textcoords="offset points", fontsize=7.5, color=colour)


def _front(study: StudyResult) -> tuple[str, str, str]:
    cost = next((name for name in study.description.objectives if name != "score"), "calls")
    points = [trial for trial in study.finished if trial.costs.get(cost) is not None and trial.state == "complete"]
    if not points:
        return "", "", ""
    drawing, axes = plots.figure()
    axes.scatter([t.costs[cost] for t in points], [t.score for t in points], color="#999999", s=22, label="trials")
    front = [trial for trial in study.front if trial.costs.get(cost) is not None]
    x, y = _numbers([t.costs[cost] for t in front]), _numbers([t.score for t in front])
    axes.plot(x, y, color=plots.COLOURS[1], marker="o", label="Pareto front")
    for trial in front:
        spot = (trial.costs[cost], trial.score)
        axes.annotate(f"#{trial.number}", spot, (5, -10), textcoords="offset points", fontsize=8)
    axes.set_xlabel(f"{cost} per question, as if nothing had been cached")
    axes.set_ylabel("score")
    plots.percent_axis(axes.yaxis)
    axes.margins(y=0.12)
    axes.legend(frameon=False, loc="lower right")
    note = "No other whole trial is as cheap and as good as one on the front, and better in one of the two."
    return "Score against cost", note, plots.to_svg(drawing)


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [float(value) for value in values if value is not None]


def _importances(found: dict[str, float]) -> tuple[str, str, str]:
    if not found:
        return "", "", ""
    drawing, axes = plots.figure(height=0.6 + 0.4 * len(found))
    names = list(found)[::-1]
    axes.barh(names, [found[name] for name in names], color=plots.COLOURS[0])
    axes.set_xlabel("share (PED-ANOVA)")
    note = "How much each choice tells the best quarter of the trials from the rest; few trials make this rough."
    return "What mattered", note, plots.to_svg(drawing)


def _course(study: StudyResult) -> tuple[str, str, str]:
    drawing, axes = plots.figure()
    for state, marker, colour in (("complete", "o", plots.COLOURS[0]), ("pruned", "x", "#999999")):
        group = [trial for trial in study.finished if trial.state == state]
        axes.scatter([t.number for t in group], [t.score for t in group], marker=marker, color=colour, label=state)
    best, numbers, course = 0.0, [], []
    for trial in study.finished:
        if trial.state == "complete":
            best = max(best, trial.score or 0.0)
        if best:
            numbers.append(trial.number)
            course.append(best)
    axes.step(numbers, course, where="post", color=plots.COLOURS[1], label="highest so far")
    axes.set_xlabel("trial")
    axes.set_ylabel("score")
    plots.percent_axis(axes.yaxis)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False)
    note = "A pruned trial stands at its score when it was stopped."
    return "The course of the search", note, plots.to_svg(drawing)
