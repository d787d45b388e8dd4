"""`townhall debate`: one question, the transcript shown as the agents speak."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ..errors import InputError
from . import interrupt, screen
from .build import ModelChoice, Models, ProgramChoice, TaskChoice, example_of, ready_to_score
from .files import writable, write_json
from .options import (
    budget_options,
    combined,
    common_settings,
    concurrency_option,
    model_options,
    no_cache_option,
    option,
    output_options,
    program_options,
    task_options,
)
from .strategy_command import StrategyCommand
from .text import clean

if TYPE_CHECKING:
    from rich.console import Console

    from ..evaluation.budget import Budget
    from ..programs.observer import Observer
    from ..signatures.transcript import Transcript, Usage
    from ..tasks.base import Example, Task


@click.command(
    name="debate",
    cls=StrategyCommand,
    epilog="Examples:\n\n"
    "\b\n"
    '  townhall debate "What is 12 + 15 * 21 + 0 - 3 * 27?" --answer int --personas 3 --rounds 2\n'
    '  townhall debate "Is it rude to be early?" --answer yes,no,depends --lm openai/gpt-4o\n'
    "  townhall debate --task zebra-grid --example '#1' -T sizes=2x2 --strategy society --html debate.html",
)
@click.argument("question", required=False)
@option(
    "--answer",
    metavar="TYPE",
    help="Type of the answer: int, float, text, or the choices, separated by commas.",
    when_absent="text",
)
@task_options
@option("--example", metavar="ID", help="Debate this example of --task and score the answer; #1 is the first.")
@combined(
    program_options,
    common_settings,
    model_options,
    no_cache_option,
    concurrency_option,
    budget_options,
)
@option("--out", metavar="FILE", type=click.Path(), help="Also write the transcript, as JSON, to this file.")
@option("--html", metavar="FILE", type=click.Path(), help="Also write the transcript as a page.")
@output_options
def command(
    question: str | None,
    answer: str | None,
    chosen_task: TaskChoice,
    example: str | None,
    chosen_program: ProgramChoice,
    named_models: ModelChoice,
    no_cache: bool,
    concurrency: int | None,
    budget: Budget,
    out: str | None,
    html: str | None,
    as_json: bool,
) -> None:
    """Hold one debate on QUESTION ("-" reads it from standard input), or on an example of a task.

    The transcript is shown as the agents speak, then the decision and what it cost.
    """
    from ..evaluation.budget import CallControl
    from ..evaluation.run import priced

    asked, source, one = _question(question, answer, chosen_task, example)
    target = writable(out) if out is not None else None
    page = writable(html) if html is not None else None
    models = named_models.open()
    if source is not None:
        ready_to_score(source, models)
    program = chosen_program.open(source, models, answer=answer_type_of(answer))
    if not as_json:
        screen.show(*_opening(asked, chosen_program.strategy, models))
    interrupt.set_hint("replies that came in are kept; the same command goes on from them")
    started = time.perf_counter()
    with _watching(models, silent=as_json) as watcher:
        control = CallControl(concurrency or models.concurrency, budget, pricing=priced, outer=watcher)
        with _ready(models, control, serve=not no_cache):
            prediction = program(question=asked)
            score = source.score(prediction.answer, one) if source is not None and one is not None else None
    usage = control.total
    wall = time.perf_counter() - started
    transcript = prediction.transcript
    report = {
        "question": asked,
        "strategy": chosen_program.strategy,
        "answer": transcript.decision.answer if transcript.decision else None,
        "decision": transcript.decision,
        "usage": usage,
        "seconds": round(wall, 3),
        "simulated": models.simulated,
        "models": list(dict.fromkeys(models.names)),
        "transcript": transcript,
    }
    if score is not None and one is not None:
        report |= {"example": one.id, "score": score.value, "feedback": score.feedback}
    if target is not None:
        write_json(target, report)
    if page is not None:
        _write_page(page, transcript, models, usage, wall)
    if as_json:
        screen.print_json(report)
        return
    screen.show(*_closing(prediction, score, usage, wall, models))
    if target is not None:
        screen.notice(f"transcript written to {target}")
    if page is not None:
        screen.notice(f"page written to {page}")


def answer_type_of(text: str | None) -> Any:
    """Return the Python type that `--answer` names.

    Raises:
        InputError: for a name that is neither a type nor a list of choices.
    """
    named = {None: str, "text": str, "str": str, "int": int, "integer": int, "float": float, "number": float}
    if text in named:
        return named[text]
    choices = [part.strip() for part in text.split(",") if part.strip()] if text else []
    if len(choices) < 2:
        raise InputError(f"--answer is '{text}'; it must be int, float, text, or choices such as yes,no,unclear")
    if len(set(choices)) != len(choices):
        raise InputError(f"--answer is '{text}'; a choice stands there twice")
    return Literal[tuple(choices)]


def _question(
    question: str | None, answer: str | None, chosen_task: TaskChoice, example: str | None
) -> tuple[str, Task | None, Example | None]:
    """Return the question, and the task and example it comes from."""
    if example is None and chosen_task.task is None:
        if question is None:
            raise InputError('nothing to debate: give a "QUESTION", or --task NAME --example ID')
        text = sys.stdin.read() if question == "-" else question
        if not text.strip():
            raise InputError("the question is empty")
        return text.strip(), None, None
    if question is not None:
        raise InputError("a question and --task / --example at once; give one of them")
    if answer is not None:
        raise InputError("--answer is for a question of your own; a task has its own type of answer")
    source = chosen_task.with_examples()
    one = example_of(source, example if example is not None else "#1")
    return one.question, source, one


@contextmanager
def _ready(models: Models, observer: Observer, *, serve: bool) -> Iterator[None]:
    """Set the model, the adapter, the cache of replies and the observer."""
    import dspy

    from ..evaluation.reply_cache import replies
    from ..programs.observer import OBSERVER

    token = OBSERVER.set(observer)
    try:
        with replies(serve=serve), dspy.context(lm=models.first, adapter=models.adapter):
            yield
    finally:
        OBSERVER.reset(token)


@contextmanager
def _watching(models: Models, *, silent: bool) -> Iterator[Observer]:
    """Return an observer that prints turns as they come, and a spinner while models work."""
    from ..programs.asking import Ask
    from ..programs.observer import Observer
    from ..signatures.transcript import Persona, Turn
    from .transcript_view import personas_view, section, turn_view

    console = screen.stdout()
    several = len(set(models.names)) > 1

    class Live(Observer):
        def __init__(self, status: Any) -> None:
            self.lock = threading.Lock()
            self.status = status
            self.title: str | None = None
            self.asked: list[str] = []

        def before_call(self, ask: Ask) -> None:
            self._update(ask, entered=True)

        def after_call(self, ask: Ask, usage: Usage) -> None:
            self._update(ask, entered=False)

        def _update(self, ask: Ask, *, entered: bool) -> None:
            with self.lock:
                name = clean(ask.name or ask.role)
                if entered:
                    self.asked.append(name)
                else:
                    self.asked.remove(name)
                if self.status is not None and self.asked:
                    who = ", ".join(self.asked) if len(self.asked) < 3 else f"{len(self.asked)} participants"
                    self.status.update(f"waiting for {who} ({ask.role})")

        def on_turn(self, turn: Turn) -> None:
            if silent:
                return
            with self.lock:
                if (title := turn.part) != self.title:
                    self.title = title
                    screen.show(section(title), on=console)
                if turn.role == "identify" and not turn.abstained:
                    people = [Persona.model_validate(item) for item in turn.said.get("personas", [])]
                    screen.show(personas_view(people), on=console)
                else:
                    screen.show(turn_view(turn, show_model=several), on=console)

    with _spinner(console) as status:
        yield Live(status)


def _spinner(console: Console) -> AbstractContextManager[Any]:
    # On the terminal that the transcript goes to, or, when that goes to a file, on standard error.
    where = console if console.is_terminal else screen.stderr()
    return where.status("waiting for the model") if where.is_terminal else nullcontext(None)


def _opening(question: str, strategy: str, models: Models) -> Iterator[Any]:
    from rich.padding import Padding
    from rich.text import Text

    from .transcript_view import section

    yield section("Question")
    yield Padding(Text(clean(question)), (0, 0, 0, 2))
    line = f"{strategy} · {', '.join(dict.fromkeys(models.names))}"
    if models.simulated:
        line += " · SIMULATED: these words and figures come from no real model"
    yield Text(clean(line), style="dim")


def _write_page(page: Path, transcript: Transcript, models: Models, usage: Usage, wall: float) -> None:
    from ..reports.debate_page import write_debate_page
    from .transcript_view import usage_line

    notes = [f"Models: {', '.join(dict.fromkeys(models.names))}", usage_line(usage, wall)]
    write_debate_page(transcript, page, notes=notes, simulated=models.simulated)


def _closing(prediction: Any, score: Any, usage: Usage, wall: float, models: Models) -> Iterator[Any]:
    from rich.padding import Padding
    from rich.text import Text

    from .transcript_view import decision_view, section, usage_line

    yield section("Decision")
    yield decision_view(prediction.decision)
    if score is not None:
        verdict = f"score {screen.fraction(score.value)}"
        if score.feedback:
            verdict += f": {score.feedback}"
        yield Padding(Text(clean(verdict)), (0, 0, 0, 2))
    yield Text()
    line = usage_line(usage, wall)
    yield Text(line + (" · simulated" if models.simulated else ""), style="dim")
