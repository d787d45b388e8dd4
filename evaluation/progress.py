"""Showing how far a run is, on standard error: a bar where that is a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Any, Protocol, TextIO

from ..signatures.transcript import Usage

#: Seconds between two lines where there is no terminal, and between two drawings where there is one.
LINE_EVERY, DRAW_EVERY = 15.0, 0.2
#: Columns of a terminal up to which the bar is a short one.
NARROW = 100


@dataclass(frozen=True)
class State:
    """How far a run is.

    Attributes:
        title: what runs ("zebra-grid, town-hall").
        total: examples in all.
        done: examples with a record, failed and blank ones included.
        resumed: how many of them earlier sessions did.
        score: mean score so far; None before the first.
        primary: the score's name.
        failed: failed examples.
        blank: blank ones.
        in_flight: calls under way.
        usage: what was paid and served so far.
        elapsed: seconds since this session began.
        paid_now: calls that this session made.
        calls_each: mean calls of a finished example, replies from the cache included; None before the first.
        simulated: some model is simulated.
    """

    title: str
    total: int
    done: int = 0
    resumed: int = 0
    score: float | None = None
    primary: str = "score"
    failed: int = 0
    blank: int = 0
    in_flight: int = 0
    usage: Usage = field(default_factory=Usage)
    elapsed: float = 0.0
    paid_now: int = 0
    calls_each: float | None = None
    simulated: bool = False

    @property
    def left(self) -> float | None:
        """Seconds that the rest will take at this session's pace; None while there is none.

        Where calls are made, they set the pace: examples from the cache take no time, and half an example is half done.
        """
        if self.paid_now and self.calls_each:
            to_come = self.calls_each * self.total - self.usage.calls - self.usage.cached
            return self.elapsed / self.paid_now * max(0.0, to_come)
        now_done = self.done - self.resumed
        return self.elapsed / now_done * (self.total - self.done) if now_done else None


class Progress(Protocol):
    """Is shown how far a run is. `update` comes several times a second, from one thread."""

    def start(self, state: State) -> None:
        """Begin."""

    def update(self, state: State) -> None:
        """Show a new state."""

    def finish(self, state: State) -> None:
        """End; the state is the last one."""


class Silent:
    """Shows nothing."""

    def start(self, state: State) -> None:
        """Show nothing."""

    def update(self, state: State) -> None:
        """Show nothing."""

    def finish(self, state: State) -> None:
        """Show nothing."""


class Lines:
    """Writes a line when the run begins, now and then, and when it ends.

    Args:
        stream: where to.
        every: seconds between two lines.
    """

    def __init__(self, stream: TextIO | None = None, every: float = LINE_EVERY) -> None:
        self._stream = stream
        self._every = every
        self._last = 0.0

    def start(self, state: State) -> None:
        """Say what runs."""
        resumed = f", {state.resumed} of them done already" if state.resumed else ""
        self._say(f"{label(state)}: {state.total} examples{resumed}")

    def update(self, state: State) -> None:
        """Say how far it is, when it is time."""
        if time.monotonic() - self._last >= self._every:
            self._say(f"{label(state)}: {in_words(state)}")

    def finish(self, state: State) -> None:
        """Say how it ended."""
        self._say(f"{label(state)}: {in_words(state)}")

    def _say(self, line: str) -> None:
        self._last = time.monotonic()
        print(line, file=self._stream or sys.stderr, flush=True)


class Bar:
    """Draws the title and below it a progress bar with `rich`; what does not fit beside the bar goes on below it.

    Args:
        stream: where to.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._bar: Any = None
        self._task: Any = None
        self._last = 0.0

    def start(self, state: State) -> None:
        """Draw the empty bar."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress
        from rich.table import Column

        console = Console(file=self._stream or sys.stderr)
        console.print(label(state), markup=False, highlight=False)
        self._bar = RichProgress(
            BarColumn(bar_width=24 if console.width > NARROW else 12),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[words]}", markup=False, table_column=Column(no_wrap=False)),
            console=console,
            auto_refresh=False,
        )
        self._task = self._bar.add_task("", total=state.total, completed=state.done, words="")
        self._bar.start()

    def update(self, state: State) -> None:
        """Draw the new state, a few times a second at most."""
        if time.monotonic() - self._last >= DRAW_EVERY:
            self._draw(state)

    def finish(self, state: State) -> None:
        """Draw the last state and leave it there."""
        self._draw(state)
        self._bar.stop()

    def _draw(self, state: State) -> None:
        self._last = time.monotonic()
        self._bar.update(self._task, completed=state.done, words=in_words(state, count=False))
        self._bar.refresh()


def automatic(stream: TextIO | None = None) -> Progress:
    """Return a bar where the stream (standard error) is a terminal, else lines."""
    target = stream or sys.stderr
    return Bar(stream) if target.isatty() else Lines(stream)


def label(state: State) -> str:
    """Return the title, marked when a model is simulated."""
    return f"{state.title} [simulated]" if state.simulated else state.title


def in_words(state: State, *, count: bool = True) -> str:
    """Return a state as one line."""
    usage = state.usage
    parts = [f"{state.done}/{state.total} done"] if count else []
    if state.score is not None:
        parts.append(f"{state.primary} {state.score:.3f}")
    if state.failed:
        parts.append(f"{state.failed} failed")
    if state.blank:
        parts.append(f"{state.blank} blank")
    served = f" (+{usage.cached} cached)" if usage.cached else ""
    parts.append(f"{usage.calls} calls{served}")
    parts.append(f"{_short_count(usage.tokens)} tokens")
    if usage.cost:
        parts.append(f"${usage.cost:.4f}" if usage.cost < 1 else f"${usage.cost:.2f}")
    elif usage.cost is None:
        parts.append("cost unknown")
    if state.left is not None and state.done < state.total:
        parts.append(f"{duration(state.left)} left")
    elif state.done >= state.total:
        parts.append(f"in {duration(state.elapsed)}")
    return ", ".join(parts)


def _short_count(number: int) -> str:
    for limit, suffix in ((1_000_000, "M"), (10_000, "k")):
        if number >= limit:
            return f"{number / (1_000_000 if suffix == 'M' else 1_000):.1f}{suffix}"
    return str(number)


def duration(seconds: float) -> str:
    """Return seconds as people say them: "8 s", "3:20", "1:02:05"."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
