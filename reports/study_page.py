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

TEMPLATE = Path(__file__).with_name("study.html")


def write_study_page(study: StudyResult, importances: dict[str, float], out: Path) -> Path:
    """Write the page of a study; one file without scripts or anything from elsewhere.

    Raises:
        InputError: when no trial has finished, or `out` cannot be written.
        MissingDependencyError: when matplotlib is not installed.
    """
    from jinja2 import Environment

    if not study.finished:
        raise InputError(f"study '{study.name}' has no finished trial yet")
    # Names of models and settings come from outside: everything but our own drawings is escaped.
    template = Environment(autoescape=True).from_string(TEMPLATE.read_text(encoding="utf-8"))
    drawings = [
        (title, note, svg)
        for title, note, svg in (_by_shape(study), _front(study), _importances(importances), _course(study))
        if svg
    ]
    page = template.render(
        study=study,
        best=study.best_trial,
        front={trial.number for trial in study.front},
        drawings=drawings,
        trials=study.trials,
        percent=lambda value: "n/a" if value is None else f"{100 * value:.1f} %",
        number=lambda value: "n/a" if value is None else f"{value:.4g}",
        interval=_interval_text,
    )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror or error}") from None
    return out


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
    trials = [trial for trial in study.finished if trial.state == "complete"]
    names = [name for name in COUNTS if any(name in trial.settings for trial in trials)]
    if not names:
        return "", "", ""
    across = next((name for name in names if name != "rounds"), "rounds")
    by_rounds: dict[Any, list[TrialResult]] = defaultdict(list)
    for trial in trials:
        key = trial.settings.get("rounds") if across != "rounds" else None
        by_rounds[key].append(trial)
    drawing, axes = plots.figure()
    for index, (rounds, group) in enumerate(sorted(by_rounds.items(), key=lambda item: str(item[0]))):
        best: dict[Any, TrialResult] = {}
        for trial in group:
            known = best.get(trial.settings[across])
            if known is None or (trial.score or 0) > (known.score or 0):
                best[trial.settings[across]] = trial
        x = sorted(best)
        # Lines are set apart a little, so that intervals at the same place stay readable.
        shifted = [value + 0.06 * (index - (len(by_rounds) - 1) / 2) for value in x]
        label = f"{rounds} round{'s' if rounds != 1 else ''}" if rounds is not None else across
        colour = plots.COLOURS[index % len(plots.COLOURS)]
        plots.intervals(axes, shifted, [_bounds(best[value]) for value in x], label=label, color=colour)
        for place, value in zip(shifted, x, strict=True):
            calls = best[value].costs.get("calls")
            if calls is not None:
                spot = (place, best[value].score or 0)
                axes.annotate(f"{calls:.0f}", spot, (4, 5), textcoords="offset points", fontsize=7, color=colour)
    axes.set_xlabel(across)
    axes.set_ylabel("score")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False)
    note = "Whole trials only; bars are 95 % intervals, the small numbers calls per question."
    return f"Score by {across}" + (" and rounds" if across != "rounds" else ""), note, plots.to_svg(drawing)


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
    axes.legend(frameon=False, loc="lower right")
    return "Score against cost", "No other whole trial is better in both than one on the front.", plots.to_svg(drawing)


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
            numbers.append(trial.number)
            course.append(best)
    axes.step(numbers, course, where="post", color=plots.COLOURS[1], label="best so far")
    axes.set_xlabel("trial")
    axes.set_ylabel("score")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False, loc="lower right")
    note = "A pruned trial stands at its score when it was stopped."
    return "The course of the search", note, plots.to_svg(drawing)
