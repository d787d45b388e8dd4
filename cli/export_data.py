"""`townhall export-data`: what a run's debates agreed on, as fine-tuning data."""

from __future__ import annotations

from typing import Any

import click

from . import screen
from .files import json_line, writable
from .options import option, output_options


@click.command(
    name="export-data",
    epilog="Examples:\n\n"
    "\b\n"
    "  townhall export-data runs/gsm8k-society-1a2b3c4d --out train.jsonl\n"
    "  townhall export-data runs/gsm8k-society-1a2b3c4d --format hf --agreement majority --out train.jsonl",
)
@click.argument("run", type=click.Path())
@option(
    "--format",
    type=click.Choice(["openai-chat", "dspy", "hf"]),
    default="openai-chat",
    show_default=True,
    help="Chat messages, rows for dspy.Example, or prompt and completion (TRL).",
)
@option(
    "--agreement",
    type=click.Choice(["unanimous", "majority"]),
    default="unanimous",
    show_default=True,
    help="Which debates are taken: all agents held the answer in the end, or more than half.",
)
@option(
    "--only-right", is_flag=True, help="Leave out what is wrong by the gold answer; default: gold is not looked at."
)
@option("--out", metavar="FILE", type=click.Path(), help="The JSONL file to write.", when_absent="standard output")
@output_options
def command(run: str, format: Any, agreement: Any, only_right: bool, out: str | None, as_json: bool) -> None:
    """Write the answers that a RUN's debates agreed on, with their reasoning, as fine-tuning examples.

    Beside the file stands FILE.about.json: where the data comes from, what was left out and why. Take care not to
    train on a test split: the notice names the splits.
    """
    from ..evaluation.training_data import export_data

    target = writable(out) if out is not None else None
    data = export_data(run, format=format, agreement=agreement, only_right=only_right)
    if target is not None:
        data.write(target)
    if as_json:
        screen.print_json({**data.about, "out": out} if target is not None else {**data.about, "rows": data.rows})
    elif target is None:
        for row in data.rows:
            click.echo(json_line(row), nl=False)
    about = data.about
    left = ", ".join(f"{count} {why}" for why, count in about["left_out"].items())
    splits = ", ".join(f"{count} from {split}" for split, count in about["splits"].items())
    screen.notice(
        f"{about['examples']} examples{f' ({splits})' if splits else ''}{f'; left out: {left}' if left else ''}"
        + ("; SIMULATED: no real model said this" if about["simulated"] else "")
    )
