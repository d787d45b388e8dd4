"""`townhall doctor`: what is installed, which model answers, where things are kept, how much room there is."""

from __future__ import annotations

import os
import platform
import shutil
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import __version__
from . import screen
from .build import ModelChoice
from .options import combined, model_options, option, output_options
from .text import one_line

if TYPE_CHECKING:
    from .build import Models

#: Packages that shape results, and the extras with what each adds.
PACKAGES = ("dspy", "pydantic", "optuna", "datasets", "ortools", "scipy", "statsmodels", "rich", "click")
EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    "local": (("xllamacpp", "huggingface-hub"), "the embedded model"),
    "chess": (("chess",), "the chess tasks"),
    "viz": (("matplotlib",), "plots"),
    "postgres": (("psycopg",), "studies shared by several machines"),
}
#: Besides providers' keys. Only whether they are set is looked at and said, never their values.
VARIABLES = ("HF_TOKEN", "HF_HUB_OFFLINE", "TOWNHALL_CACHE", "TOWNHALL_MODELS", "TOWNHALL_DEBUG")
QUESTION = "What is 2 + 3?"


@click.command(
    name="doctor",
    epilog="Examples:\n\n"
    "\b\n"
    "  townhall doctor\n"
    "  townhall doctor --ask --lm openai/gpt-4o-mini\n"
    "  townhall doctor --json",
)
@option("--ask", is_flag=True, help=f"Ask each model a question ({QUESTION}) and say what it answers, and how fast.")
@combined(model_options, output_options)
def command(ask: bool, named_models: ModelChoice, as_json: bool) -> int:
    """Say what is installed, which model answers, where caches and runs are, and how much room the disk has.

    With --ask, models named by --lm are asked a small question; the exit code is 1 when one does not answer.
    """
    from ..models.catalog import KEY_VARIABLES

    report: dict[str, Any] = {
        "versions": versions(),
        "extras": extras(),
        "environment": {name: bool(os.environ.get(name)) for name in (*KEY_VARIABLES, *VARIABLES)},
        "places": places(),
    }
    if ask:
        report["models"] = answers(named_models.open(), fresh=True)
    if as_json:
        screen.print_json(report)
    else:
        _print(report)
    return 0 if all(model["answered"] for model in report.get("models", [])) else 1


def versions() -> dict[str, str | None]:
    """Return the versions of what shapes results; None for a package that is not installed."""
    return {
        "townhall": __version__,
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def extras() -> list[dict[str, Any]]:
    """Return each extra: what it adds, its packages' versions, and how to install it where it is missing."""
    found = []
    for name, (packages, purpose) in EXTRAS.items():
        installed = {package: _version(package) for package in packages}
        complete = None not in installed.values()
        missing = "" if complete else f'pip install "townhall[{name}]"'
        found.append(
            {"name": name, "purpose": purpose, "packages": installed, "installed": complete, "install": missing}
        )
    stockfish = shutil.which("stockfish") or next(
        (path for path in ("/usr/games/stockfish",) if os.access(path, os.X_OK)), None
    )
    found.append(
        {
            "name": "stockfish",
            "purpose": "scoring chess moves",
            "packages": {"stockfish": stockfish},
            "installed": stockfish is not None,
            "install": "" if stockfish else "apt install stockfish",
        }
    )
    return found


def places() -> list[dict[str, Any]]:
    """Return where things are kept: each folder, what is in it, its size, and the room on its disk."""
    from ..models.folders import cache_dir, weights_dir

    named = (
        ("weights", "models' weights", weights_dir()),
        ("replies", "model replies that were paid for", cache_dir() / "replies"),
        ("runs", "runs of this folder", Path("runs").absolute()),
    )
    found = []
    for name, purpose, path in named:
        inside = [item for item in path.rglob("*") if item.is_file()] if path.is_dir() else []
        found.append(
            {
                "name": name,
                "purpose": purpose,
                "path": str(path),
                "exists": path.is_dir(),
                "bytes": sum(item.stat().st_size for item in inside),
                "free_bytes": shutil.disk_usage(_existing(path)).free,
                "writable": os.access(_existing(path), os.W_OK),
            }
        )
    return found


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


def answers(models: Models, *, fresh: bool) -> list[dict[str, Any]]:
    """Ask each model one question, and return what each answered and how long it took."""
    import dspy

    from ..evaluation.reply_cache import replies
    from ..programs.chain_of_thought import ChainOfThought

    found = []
    for name, lm in dict(zip(models.names, models.every, strict=True)).items():
        started = time.perf_counter()
        answer, problem = None, None
        try:
            with replies(serve=not fresh), dspy.context(lm=lm, adapter=models.adapter):
                answer = ChainOfThought(answer=int, shots=0)(question=QUESTION).answer
            if answer is None:
                problem = "its reply could not be read"
        except Exception as error:  # whatever it is, that is the diagnosis
            problem = one_line(error)
        found.append(
            {
                "model": name,
                "answered": problem is None,
                "question": QUESTION,
                "answer": answer,
                "problem": problem,
                "seconds": round(time.perf_counter() - started, 2),
            }
        )
    return found


def _print(report: dict[str, Any]) -> None:
    versions_, width = report["versions"], 3
    made = screen.table(*["package", "version"] * width)
    items = [(name, version or "missing") for name, version in versions_.items()]
    items += [("", "")] * (-len(items) % width)
    for start in range(0, len(items), width):
        made.add_row(*(cell for pair in items[start : start + width] for cell in pair))
    screen.show(made, "")
    made = screen.table("extra", "for", "state")
    for extra in report["extras"]:
        state = ", ".join(f"{name} {version}" for name, version in extra["packages"].items() if version)
        made.add_row(extra["name"], extra["purpose"], state if extra["installed"] else f"missing: {extra['install']}")
    screen.show(made, "")
    made = screen.table("place", "path", ">size", ">disk has free")
    for place in report["places"]:
        note = "" if place["writable"] else " (cannot be written)"
        size = screen.size(place["bytes"]) if place["exists"] else "none yet"
        made.add_row(place["purpose"], place["path"] + note, size, screen.size(place["free_bytes"]))
    screen.show(made, "")
    there = [name for name, is_set in report["environment"].items() if is_set]
    screen.show(f"set in the environment: {', '.join(there) or 'no key'}")
    if "models" not in report:
        screen.notice("add --ask to see which model answers")
        return
    made = screen.table("model", "answers", ">seconds")
    for model in report["models"]:
        said = f"{model['question']} {model['answer']}" if model["answered"] else f"no: {model['problem']}"
        made.add_row(one_line(model["model"]), said, f"{model['seconds']:.1f}")
    screen.show("", made)
