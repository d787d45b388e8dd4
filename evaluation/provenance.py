"""What a run is, written down before it starts: task, data, program, models, versions. No secret is in it."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dspy

from .. import __version__
from ..errors import InputError
from ..models import resolve
from ..programs.base import Strategy
from ..tasks.base import Example, Task
from .fingerprints import content_hash, examples_fingerprint, program_fingerprint
from .records import RunInfo, Session

#: Packages that shape the messages sent or the replies read.
_PACKAGES = ("dspy", "pydantic", "json-repair", "litellm", "xllamacpp")


def models_of(program: dspy.Module, lm: dspy.LM | None) -> list[dspy.LM]:
    """Return the models that a program's agents use, each once and in order.

    Args:
        program: a strategy, or any DSPy module.
        lm: the model of what has none of its own; None for the configured one.

    Raises:
        InputError: when there is no model.
    """
    found = list(program.lms) if isinstance(program, Strategy) else []
    default = lm if lm is not None else dspy.settings.lm
    own = [predictor.lm for _, predictor in program.named_predictors()]
    if not found and (not own or None in own):
        if default is None:
            raise InputError("no model: give lm=townhall.lm(NAME), or dspy.configure(lm=...)")
        found.append(default)
    found += [model for model in own if model is not None]
    return list({id(model): model for model in found}.values())


def all_models(program: dspy.Module, lm: dspy.LM | None) -> list[dspy.LM]:
    """Return the models of the agents and the judge's."""
    judge = program.judge_lm if isinstance(program, Strategy) else None
    found = models_of(program, lm)
    return found if judge is None or any(model is judge for model in found) else [*found, judge]


def strategy_name(program: dspy.Module) -> str:
    """Return a strategy's name; the class's of another module."""
    return program.name if isinstance(program, Strategy) else type(program).__name__


def run_info(
    program: dspy.Module,
    task: Task,
    examples: Sequence[Example],
    *,
    given: bool,
    split: str,
    order: str,
    limit: int | None,
    seed: int,
    lm: dspy.LM | None,
    adapter: dspy.Adapter | None,
    concurrency: int,
    match: dict[str, Any] | None,
) -> RunInfo:
    """Return what a run is. See `RunInfo` for the arguments."""
    agents, everyone = models_of(program, lm), all_models(program, lm)
    judge = program.judge_lm if isinstance(program, Strategy) else None
    settings = program.config.model_dump(mode="json") if isinstance(program, Strategy) else {}
    used = adapter or dspy.settings.adapter
    return RunInfo(
        task=task.name,
        task_version=task.version,
        task_options=json.loads(json.dumps(task.options, default=str)),
        source=task.source,
        data_fingerprint=None if given else task.fingerprint,
        examples_fingerprint=examples_fingerprint(examples),
        n=len(examples),
        split=split,
        order="given" if given else order,
        limit=limit,
        seed=0 if given else seed,
        strategy=strategy_name(program),
        settings=settings,
        program_fingerprint=program_fingerprint(program),
        models=[describe(model) for model in agents],
        judge_model=describe(judge) if judge is not None and len(everyone) > len(agents) else None,
        adapter=type(used).__name__ if used is not None else "DebateAdapter",
        match=match,
        simulated=any(resolve.is_simulated(model) for model in everyone),
        sessions=[
            Session(
                started=datetime.now(UTC).isoformat(timespec="seconds"),
                concurrency=concurrency,
                versions=versions(),
                code_version=code_version(),
            )
        ],
    )


def describe(lm: dspy.LM) -> dict[str, Any]:
    """Return what is written down of a model. Whether it is simulated stands in `RunInfo.simulated`."""
    return {name: value for name, value in resolve.describe(lm).items() if name != "simulated"}


def versions() -> dict[str, str]:
    """Return the versions that shape a run's result."""
    return {"townhall": __version__, "python": platform.python_version(), **_installed()}


@functools.cache
def _installed() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@functools.cache
def code_version() -> str | None:
    """Return the commit of townhall's own checkout, with "+" behind it when it has local changes; None without one."""
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return None
    commit = _git(root, "rev-parse", "--short=12", "HEAD")
    if not commit:
        return None
    return f"{commit}+" if _git(root, "status", "--porcelain", "--untracked-files=no") else commit


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def short_hash(info: RunInfo) -> str:
    """Return 8 hex digits that stand for a run's configuration."""
    return content_hash(info.identity())[:8]
