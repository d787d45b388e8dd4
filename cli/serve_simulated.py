"""`townhall serve-simulated`: the simulated model as an OpenAI-compatible endpoint."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from . import interrupt, screen
from .options import option, output_options
from .params import Number

if TYPE_CHECKING:
    from ..models.simulation import Fault


@click.command(
    name="serve-simulated",
    epilog="Examples:\n\n"
    "\b\n"
    "  townhall serve-simulated --port 8000 --behaviour 'accuracy=0.7&latency=0.2'\n"
    "  townhall serve-simulated --every 10=429:1 --fault 3=half-json\n"
    "  townhall evaluate --task arithmetic --lm openai/simulated --api-base http://127.0.0.1:8000/v1",
)
@option("--port", type=Number(int, 0, 65535), default=8000, show_default=True, help="0 for any free one.")
@option(
    "--behaviour",
    default="",
    metavar="KEY=VALUE&...",
    help="How it answers, such as accuracy=0.7&latency=0.2&answers=FILE.",
)
@option(
    "--accepts",
    type=click.Choice(["json_schema", "json_object", "none"]),
    default="json_schema",
    show_default=True,
    help="The richest output format that it takes.",
)
@option("--fault", multiple=True, metavar="N=KIND[:SECONDS]", help="What goes wrong with request N.")
@option("--every", multiple=True, metavar="N=KIND[:SECONDS]", help="What goes wrong with each Nth request.")
@output_options
def command(
    port: int, behaviour: str, accepts: str, fault: tuple[str, ...], every: tuple[str, ...], as_json: bool
) -> None:
    """Serve the simulated model over HTTP until Ctrl-C. The first line printed is its address (the --api-base).

    Kinds of fault: refuse, stall, 429, 500, empty, half-json, half-body. Every reply and model name is labelled as
    simulated; GET /v1/stats counts the requests.
    """
    from ..models.server import SimulatedServer
    from ..models.simulation import parse_behaviour

    at, steps = _numbered(fault, "--fault"), _numbered(every, "--every")

    def plan(number: int, body: Mapping[str, Any]) -> Fault | None:
        return at.get(number) or next((found for step, found in steps.items() if number % step == 0), None)

    server = SimulatedServer(
        behaviour=parse_behaviour(behaviour), faults=plan, accepts=accepts, record=False, port=port
    )
    with server:
        try:
            if as_json:
                screen.print_json({"api_base": server.url, "simulated": True})
            else:
                click.echo(server.url)
                screen.notice("serving the simulated model; Ctrl-C ends it")
            threading.Event().wait()
        except KeyboardInterrupt:
            stats = server.stats()
            interrupt.set_hint(f"{stats['requests']} requests, {stats['completed']} answered in full")
            raise


def _numbered(texts: Sequence[str], flag: str) -> dict[int, Fault]:
    from ..models.simulation import Fault

    found = {}
    for text in texts:
        number, _, kind = text.partition("=")
        if not number.isdigit() or int(number) < 1:
            raise InputError(f"{flag} is '{text}'; it must be N=KIND or N=KIND:SECONDS, such as 3=429:1")
        found[int(number)] = Fault.parse(kind)
    return found
