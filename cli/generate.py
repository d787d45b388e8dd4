"""`townhall generate`: a task's own examples to a file, and proofs about a file of puzzles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ..errors import InputError
from . import screen
from .build import TaskChoice
from .files import json_line, replacing, writable
from .options import option, output_options
from .params import KeyValue, Number


@click.command(
    name="generate",
    epilog="Examples:\n\n"
    "\b\n"
    "  townhall generate zebra-grid --sizes 2x2,3x3 --count 20 --seed 7 --out puzzles.jsonl\n"
    "  townhall generate arithmetic --count 100 --out sums.jsonl\n"
    "  townhall generate --verify puzzles.jsonl",
)
@click.argument("task", required=False)
@option("--sizes", metavar="SIZES", help="Of puzzles, houses x attributes: 'all', or such as 2x2,3x4.")
@option("--count", type=Number(int, 1), help="How many examples.")
@option("--seed", type=Number(int), help="The same seed gives the same bytes.")
@option("-T", "--task-option", "task_option", type=KeyValue(), multiple=True, help="Another option of the task.")
@option("--out", type=click.Path(), help="The JSONL file to write.", when_absent="standard output")
@option(
    "--verify",
    type=click.Path(),
    help="Generate nothing: solve the puzzles of this file and check that each has one solution (the file's, where "
    "it gives one) and no clue that could go.",
)
@output_options
def command(
    task: str | None,
    sizes: str | None,
    count: int | None,
    seed: int | None,
    task_option: tuple[tuple[str, str], ...],
    out: str | None,
    verify: str | None,
    as_json: bool,
) -> int:
    """Write examples made by a task's own generator, or verify a file of logic puzzles.

    Every task with a generator can do it: zebra-grid, zebra-mcq, arithmetic, chess-validity. Equal options give equal
    bytes.
    """
    if verify is not None:
        return _verify(task, verify, as_json)
    if task is None:
        raise click.UsageError("which task? Such as: townhall generate zebra-grid", click.get_current_context())
    if as_json and out is None:
        raise InputError("--json reports on a file that was written: name it with --out")
    named = {"sizes": sizes, "count": count, "seed": seed}
    options = [*task_option, *((name, str(value)) for name, value in named.items() if value is not None)]
    made = TaskChoice(task, "generated", tuple(options)).open()
    rows = made.generate()
    if rows is None:
        raise InputError(f"task '{task}' has no generator; its examples come from --data FILE or the hub")
    if out is None:
        for row in rows:
            click.echo(json_line(row), nl=False)
        return 0
    with _progress("generating", getattr(made, "count", count)) as tick:
        written = _write(writable(out), rows, tick)
    if as_json:
        screen.print_json({"task": task, "count": written, "out": out})
    else:
        screen.notice(f"{written} examples of {task} written to {out}")
    return 0


def _write(target: Path, rows: Iterator[dict[str, Any]], tick: Callable[[int], None]) -> int:
    done = 0
    with replacing(target) as stream:
        for row in rows:
            stream.write(json_line(row))
            done += 1
            tick(done)
    return done


def _verify(task: str | None, path: str, as_json: bool) -> int:
    if task not in (None, "zebra-grid", "zebra-mcq"):
        raise InputError(f"--verify solves logic puzzles; task '{task}' has none")
    from ..tasks.zebra.files import verify_file

    with _progress("verifying", None) as tick:
        report = verify_file(path, tick)
    if as_json:
        screen.print_json(report.plain())
    else:
        made = screen.table("check", ">puzzles", ">of")
        screen.show(
            screen.rows(
                made,
                [
                    ("exactly one solution", report.unique, report.puzzles),
                    ("equal to the solution in the file", report.equal, report.compared),
                    ("no clue that could go", report.minimal, report.unique),
                ],
            )
        )
        for problem in report.problems:
            screen.notice(problem)
    return 0 if report.ok else 1


@contextmanager
def _progress(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error where that is a terminal."""
    console = screen.stderr()
    if not console.is_terminal:
        yield lambda done: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task(title, total=total)
        yield lambda done: bars.update(bar, completed=done)
