"""The console script: runs a command and turns whatever happens into one line and an exit code.

Exit codes: 0 done; 1 failed while running; 2 bad input or usage; 3 stopped by a budget with the partial result kept;
130 interrupted, resumable. `TOWNHALL_DEBUG=1` shows the traceback of an error.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from .. import __version__
from ..errors import InputError, TownhallError
from . import interrupt
from .lazy import Entry, LazyGroup

#: All commands. The lines are here so that `townhall --help` imports none of them.
SECTIONS: dict[str, dict[str, Entry]] = {
    "Debate and measure": {
        "debate": Entry("debate", "Hold one debate and show it as the agents speak."),
        "evaluate": Entry("evaluate", "Run a strategy over a task's examples and score it."),
        "score": Entry("score", "Score outputs that are there already; no model is called."),
        "compare": Entry("compare", "Compare runs example by example, with intervals and cost."),
        "grid": Entry("grid", "Debate every pair of several models, next to each model alone."),
        "reproduce": Entry("reproduce", "Run a published experiment, with its figures beside yours."),
        "show": Entry("show", "Show a run or a grid, or one example's transcript."),
    },
    "Tune and hand over": {
        "compile": Entry("compile", "Improve a strategy's prompts with a teleprompter."),
        "tune": Entry("tune", "Search a debate's shape: how many speak, for how long, and more."),
        "study": Entry("study", "Show what a search found."),
        "export": Entry("export", "Write a tuned program in a form that runs elsewhere."),
    },
    "Data": {
        "generate": Entry("generate", "Write generated examples, or verify a file of puzzles."),
        "export-data": Entry("export_data", "Write a run's agreed answers as fine-tuning data."),
    },
    "Models and machine": {
        "models": Entry("models", "List, pull and find the embedded models."),
        "serve-simulated": Entry("serve_simulated", "Serve the simulated model as an OpenAI-compatible endpoint."),
        "list": Entry("listing", "List tasks, strategies, models, teleprompters and more."),
        "doctor": Entry("doctor", "Say what is installed, what answers, and where things are."),
    },
}


@click.group(
    cls=LazyGroup,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`townhall COMMAND --help` says more. Results go to standard output, progress to standard error.",
)
@click.version_option(__version__, prog_name="townhall", message="%(prog)s %(version)s")
def cli() -> None:
    """Debates between personas and models: held, scored, compared and tuned."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Args:
        argv: the arguments after the program's name. None takes the process's own, and then an interrupted command
            ends the process at once, since threads that wait for a model would hold it up.
    """
    if argv is not None:
        return _run(argv)
    with interrupt.watched():
        code = _run(sys.argv[1:])
        if code == 130:
            interrupt.leave(code)
    return code


def _run(argv: Sequence[str]) -> int:
    interrupt.set_hint("")
    with _quiet(unless="--verbose" in argv or "-v" in argv):
        try:
            result = cli.main(args=list(argv), prog_name="townhall", standalone_mode=False)
            sys.stdout.flush()
            return result if isinstance(result, int) else 0
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            return 0
        except click.ClickException as error:
            return _say(_usage(error), InputError.exit_code)
        except TownhallError as error:
            return _say(str(error), error.exit_code)
        except (KeyboardInterrupt, click.Abort):
            return _say(interrupt.message(), 130)
        except SystemExit as end:  # click's way out when the reader of our output has gone (`... | head -1`)
            return end.code if isinstance(end.code, int) else 1
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            return _say(f"{where}{error.strerror or error}", 1)
        except Exception as error:
            first = (str(error).strip().splitlines() or ["no details"])[0]
            return _say(f"{type(error).__name__}: {first} (TOWNHALL_DEBUG=1 shows where)", 1)


def _say(message: str, code: int) -> int:
    if os.environ.get("TOWNHALL_DEBUG") and code not in (0, 130):
        import traceback

        traceback.print_exc()
    from .text import one_line

    sys.stdout.flush()
    # An interrupt is the user's own doing, and a budget's end is what was asked for: neither is an error.
    label = "" if code in (3, 130) else "error: "
    print(f"townhall: {label}{one_line(message)}", file=sys.stderr, flush=True)
    return code


def _usage(error: click.ClickException) -> str:
    """Return a usage error in our form: one line, the nearest name, and where the options are listed."""
    message = error.format_message().strip()
    if isinstance(error, click.UsageError) and error.ctx is not None:
        if isinstance(error, click.NoSuchOption):
            message = _no_such_option(error, error.ctx)
        elif type(error) is click.BadParameter and isinstance(error.param, click.Option):
            message = f"{max(error.param.opts, key=len)}: {error.message}"
        message = f"{message.rstrip('.')} (see: {error.ctx.command_path} --help)"
    return message


def _no_such_option(error: click.NoSuchOption, ctx: click.Context) -> str:
    from ..registry import nearest

    known = [name for param in ctx.command.get_params(ctx) for name in (*param.opts, *param.secondary_opts)]
    given = error.option_name
    return f"{ctx.info_name} has no option '{given}'.{nearest(given, [name for name in known if name[:2] == '--'])}"


@contextmanager
def _quiet(*, unless: bool) -> Iterator[None]:
    """Silence other libraries' logs and warnings, which would run through the screen, unless they were asked for."""
    if unless:
        yield
        return
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.ERROR)
        try:
            yield
        finally:
            logging.disable(before)
