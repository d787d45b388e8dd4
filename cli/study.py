"""`townhall study`: what a search found: its best trials, the Pareto front, what mattered."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from ..registry import nearest
from . import screen
from .options import option, output_options
from .params import Number

if TYPE_CHECKING:
    import optuna

    from ..optimize.study import StudyResult, TrialResult


@click.command(
    name="study",
    epilog="Examples:\n\n"
    "\b\n"
    "  townhall study arithmetic-society\n"
    "  townhall study studies/arithmetic-society --html search.html\n"
    "  optuna-dashboard sqlite:///studies/arithmetic-society/study.db",
)
@click.argument("study")
@option(
    "--studies", metavar="FOLDER", type=click.Path(), default="studies", show_default=True, help="Where studies are."
)
@option("--storage", metavar="URL", help="The study's storage, where it needs a password.", when_absent="the study's")
@option("--top", type=Number(int, 1), default=10, show_default=True, help="How many of the best trials are shown.")
@option("--html", metavar="FILE", type=click.Path(), help="Also write a page with the plots.")
@output_options
def command(study: str, studies: str, storage: str | None, top: int, html: str | None, as_json: bool) -> None:
    """Print a STUDY's best trials, its Pareto front, and how much each setting mattered."""
    from ..optimize.importance import importances

    result, opened = read_study(study, studies, storage)
    shares = importances(opened)
    if as_json:
        screen.print_json(study_json(result, shares))
    else:
        screen.show(*study_view(result, shares, top))
    if html is not None:
        from ..reports.study_page import write_study_page

        screen.notice(f"page written to {write_study_page(result, shares, Path(html))}")


def read_study(name: str, studies: str, storage: str | None) -> tuple[StudyResult, optuna.Study]:
    """Return a study by its name or folder.

    Raises:
        InputError: when there is none, or its storage cannot be opened.
    """
    folder = next((path for path in (Path(name), Path(studies) / name) if (path / "study.json").exists()), None)
    if folder is None:
        known = sorted(path.parent.name for path in Path(studies).glob("*/study.json"))
        listed = f" Known: {', '.join(known)}" if known else ""
        raise InputError(f"no study '{name}' here or in {studies}.{nearest(name, known)}{listed}")
    import optuna

    from ..optimize.study import StudyDescription, StudyResult, read_trials
    from ..optimize.trial_queue import open_storage

    try:
        data = json.loads((folder / "study.json").read_text(encoding="utf-8"))
        description = StudyDescription.model_validate(data)
        stored = str(data["storage"])
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{folder / 'study.json'}: damaged ({' '.join(str(error).split())})") from None
    where = storage or (None if stored == "study.db" else stored)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        opened = optuna.load_study(study_name=str(data["name"]), storage=open_storage(where, folder))
    except KeyError:
        raise InputError(f"study '{data['name']}' is not in {stored}; name its --storage") from None

    def build(settings: dict[str, Any]) -> Any:
        raise InputError("a study that was read has no models; run `townhall tune` again to get its best program")

    return StudyResult(str(data["name"]), folder, stored, description, read_trials(opened), build), opened


def study_json(result: StudyResult, shares: Mapping[str, float]) -> dict[str, Any]:
    """Return a study as JSON data."""
    whole = bool(result.whole)
    return {
        "study": result.name,
        "folder": str(result.folder),
        "storage": result.storage,
        "description": result.description,
        "states": dict(Counter(trial.state for trial in result.trials)),
        "best": _trial_json(result.best_trial) if whole else None,
        "expected": {str(number): score for number, score in result.estimates.items()},
        "front": [_trial_json(trial) for trial in result.front],
        "importances": dict(shares),
        "cached_share": result.saved,
        "stopped": result.stopped,
        "trials": [_trial_json(trial) for trial in result.trials],
    }


def _trial_json(trial: TrialResult) -> dict[str, Any]:
    return {
        "number": trial.number,
        "state": trial.state,
        "settings": trial.settings,
        "score": trial.score,
        "n": trial.n,
        "costs": trial.costs,
        "calls": trial.calls,
        "cached": trial.cached,
    }


def study_view(result: StudyResult, shares: Mapping[str, float], top: int = 10) -> Iterator[Any]:
    """Yield a study: what was searched, the best trials (those on the Pareto front marked), what mattered."""
    from rich.text import Text

    from .text import clean

    about = result.description
    states = Counter(trial.state for trial in result.trials)
    line = Text(clean(result.name), style="bold")
    counted = ", ".join(f"{number} {state}" for state, number in states.items())
    yield line.append(clean(f" · {about.split}, {about.n} examples · {counted or 'no trials'}"), style="not bold")
    yield Text(clean("; ".join(map(str, about.space))), style="dim")
    if any(model.startswith("simulated") for model in about.models):
        yield Text("SIMULATED: these figures say nothing about a real model", style="bold yellow")
    if result.stopped:
        yield Text(clean(f"stopped: {result.stopped}"), style="bold yellow")
    yield Text()
    ranked = sorted(result.finished, key=lambda trial: (trial.state != "complete", -(trial.score or 0.0), trial.number))
    yield trials_table(ranked[:top], {trial.number for trial in result.front})
    yield Text("* on the Pareto front; costs are for one question, as if nothing had been cached", style="dim")
    if result.whole:
        yield Text()
        yield Text(clean(chosen_line(result)), style="bold")
    if shares:
        yield Text()
        made = screen.table("setting", ">importance")
        yield screen.rows(made, ((name, f"{share:.2f}") for name, share in shares.items()))
    if result.saved:
        yield Text()
        saved = f"{100 * result.saved:.0f} % of all replies came from the cache, mostly because trials overlap"
        yield Text(f"{screen.count(result.used.calls)} calls paid for; {saved}", style="dim")


def chosen_line(result: StudyResult) -> str:
    """Return which trial is chosen and why."""
    from ..metrics.statistics import interval
    from .tuning_progress import words

    best = result.best_trial
    found = interval(list(best.scores.values()))
    line = f"chosen: trial {best.number}, {words(best.settings)}: {screen.fraction(best.score)}"
    line += f" (95 % interval {screen.interval(found.low, found.high)})"
    highest = max(result.whole, key=lambda trial: (trial.score or 0.0, -trial.number))
    if (highest.score or 0.0) > (best.score or 0.0) and best.number in result.estimates:
        mine, theirs = (screen.fraction(result.estimates[trial.number]) for trial in (best, highest))
        line += f"; with what similar shapes scored, {mine} is expected, and {theirs} of trial {highest.number}"
    return line


def trials_table(trials: Sequence[TrialResult], front: set[int]) -> Any:
    """Return trials, one a line."""
    from .text import clean
    from .tuning_progress import words

    made = screen.table(">trial", "settings", ">score", ">n", ">calls", ">tokens", ">cost")
    for trial in trials:
        mark = "*" if trial.number in front else " "
        score = screen.fraction(trial.score) if trial.state == "complete" else f"({screen.fraction(trial.score)})"
        costs = trial.costs
        calls = costs.get("calls")
        made.add_row(
            f"{trial.number}{mark}",
            clean(words(trial.settings)),
            score,
            str(trial.n),
            f"{calls:.1f}" if calls is not None else "n/a",
            screen.count(costs.get("tokens")),
            screen.money(costs.get("cost")),
        )
    return made
