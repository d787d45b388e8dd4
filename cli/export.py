"""`townhall export`: a tuned program in a form that runs elsewhere."""

from __future__ import annotations

import click

from . import screen
from .options import option, output_options


@click.command(
    name="export",
    epilog="Examples:\n\n"
    "\b\n"
    "  townhall export artifacts/arithmetic-town-hall-bootstrap --format python --out debate.py\n"
    "  townhall export artifacts/arithmetic-town-hall-bootstrap --format messages --out messages\n"
    "  townhall export artifacts/arithmetic-town-hall-bootstrap --as-single-prompt --out artifacts/splice",
)
@click.argument("artifact", type=click.Path())
@option(
    "--format",
    metavar="NAME",
    help="dspy, messages, markdown, json-schema, promptfoo, langchain or python; `townhall list formats` says more.",
    when_absent="an artifact folder",
)
@option(
    "--out",
    metavar="PATH",
    type=click.Path(),
    required=True,
    help="The folder, or the file of a format that is one file.",
)
@option("--as-single-prompt", is_flag=True, help="Of a town hall: the single prompt, its tuned instructions folded in.")
@option("--model", metavar="NAME", help="The model that the files name.", when_absent="gpt-4o-mini")
@option("--overwrite", is_flag=True, help="Replace files that are there.")
@output_options
def command(
    artifact: str,
    format: str | None,
    out: str,
    as_single_prompt: bool,
    model: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write an ARTIFACT's prompts in some format.

    DSPy state, chat messages, Markdown, JSON schemas, promptfoo, LangChain, or one Python file that holds the whole
    debate and needs only the openai package.
    """
    from ..optimize.export import export

    files = export(artifact, out, format=format, as_single_prompt=as_single_prompt, model=model, overwrite=overwrite)
    if as_json:
        screen.print_json({"format": format or "artifact", "files": [str(file) for file in files]})
        return
    for file in files:
        click.echo(str(file))
