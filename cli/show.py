"""`townhall show`: a run's tables, its examples, or one example's transcript."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InputError
from ..registry import nearest
from . import screen
from .options import option, output_options
from .text import clean

if TYPE_CHECKING:
    from ..evaluation.records import Record

FILTERS = ("all", "wrong", "right", "blank", "failed")


@click.command(
    name="show",
    epilog="Examples:\n\n"
    "\b\n"
    "  townhall show runs/zebra-grid-town-hall-1a2b3c4d\n"
    "  townhall show runs/zebra-grid-town-hall-1a2b3c4d --examples wrong\n"
    "  townhall show runs/zebra-grid-town-hall-1a2b3c4d --example lgp-test-2x2-7\n"
    "  townhall show runs/zebra-grid-town-hall-1a2b3c4d --html run.html",
)
@click.argument("run", type=click.Path())
@option("--example", metavar="ID", help="Show the transcript of this example; #1 is the run's first.")
@option("--examples", type=click.Choice(FILTERS), help="List the examples: all, or only such.")
@option(
    "--html",
    metavar="FILE",
    type=click.Path(),
    help="Also write a page: the tables, and the transcripts of the examples that are shown.",
)
@output_options
def command(run: str, example: str | None, examples: str | None, html: str | None, as_json: bool) -> None:
    """Show a RUN folder: scores, cost by role and debate dynamics; or its examples; or one transcript. Or a grid."""
    from ..evaluation.grid_folder import is_grid
    from ..evaluation.run_folder import load_run
    from . import run_view

    if is_grid(Path(run)):
        _show_grid(Path(run), example or examples, html, as_json)
        return
    found = load_run(Path(run))
    if html is not None:
        from ..reports.run_page import write_run_page

        shown = found.records
        if example is not None:
            shown = [record_of(found.records, example, run)]
        elif examples not in (None, "all"):
            shown = [record for record in shown if record.outcome == examples]
        screen.notice(f"page written to {write_run_page(found, Path(html), shown)}")
    if example is not None:
        record = record_of(found.records, example, run)
        screen.print_json(record) if as_json else _show_example(record)
        return
    if examples is not None:
        chosen = [record for record in found.records if examples in ("all", record.outcome)]
        if as_json:
            screen.print_json(chosen)
        else:
            screen.show(run_view.examples_table(chosen))
        return
    if as_json:
        screen.print_json(run_view.run_json(found))
        return
    screen.show(*run_view.run_view(found))
    if found.summary.usage_by_role:
        screen.show("", run_view.roles_table(found.summary.usage_by_role))
    if found.summary.dynamics:
        from .dynamics_view import dynamics_view

        screen.show(*dynamics_view(found.summary.dynamics))


def _show_grid(folder: Path, asked: str | None, html: str | None, as_json: bool) -> None:
    from ..evaluation.grid_folder import load_grid
    from .grid_view import grid_json, grid_view

    grid = load_grid(folder)
    if asked is not None:
        raise InputError(f"{folder}: is a grid; examples are in its runs, such as {folder / grid.info.runs[0].folder}")
    if html is not None:
        raise InputError(
            f"{folder}: is a grid; pages are made of its runs, such as {folder / grid.info.runs[0].folder}"
        )
    if as_json:
        screen.print_json(grid_json(grid))
    else:
        screen.show(*grid_view(grid))


def record_of(records: Sequence[Record], wanted: str, run: str) -> Record:
    """Return a record by its example's id, or by its place ("#1").

    Raises:
        InputError: when there is none.
    """
    if wanted.startswith("#") and wanted[1:].isdigit():
        if not 1 <= int(wanted[1:]) <= len(records):
            raise InputError(f"{run}: no example {wanted}; {len(records)} are finished")
        return records[int(wanted[1:]) - 1]
    for record in records:
        if record.id == wanted:
            return record
    ids = [record.id for record in records]
    raise InputError(f"{run}: no finished example has the id '{wanted}'.{nearest(wanted, ids)}")


def _show_example(record: Record) -> None:
    from rich.text import Text

    from ..signatures.answers import brief
    from .transcript_view import section, transcript_view, usage_line

    if record.transcript is not None:
        screen.show(*transcript_view(record.transcript))
    else:
        screen.show(section("Question"), Text(clean(record.question)))
    screen.show(section(f"Example {record.id}"))
    if record.error is not None:
        screen.show(Text(clean(f"failed ({record.error_kind}): {record.error}"), style="red"))
    screen.show(Text(clean(f"gold: {brief(record.gold, 500)}")))
    if record.transcript is None:
        screen.show(Text(clean(f"answer: {brief(record.answer, 500)}")))
    verdict = f"score: {screen.fraction(record.score)}"
    screen.show(Text(clean(f"{verdict}  {record.feedback}" if record.feedback else verdict)))
    screen.show(Text(usage_line(record.usage, record.seconds), style="dim"))
