"""How far a compilation or a search is, on standard error."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from . import screen

if TYPE_CHECKING:
    from ..optimize.compile import CompileState
    from ..optimize.search import SearchProgress
    from ..optimize.study import TrialResult

#: Seconds between two lines where there is no terminal.
LINE_EVERY = 15.0


class Display:
    """One line that changes, on a terminal; elsewhere a line now and then. Safe for several threads."""

    def __init__(self, status: Any) -> None:
        self._status = status
        self._lock = threading.Lock()
        self._last = time.monotonic()

    def update(self, text: str) -> None:
        """Show how far it is."""
        with self._lock:
            if self._status is not None:
                self._status.update(text)
            elif time.monotonic() - self._last >= LINE_EVERY:
                self._last = time.monotonic()
                print(text, file=sys.stderr, flush=True)

    def line(self, text: str) -> None:
        """Print a line that stays."""
        with self._lock:
            if self._status is not None:
                self._status.console.print(text)
            else:
                print(text, file=sys.stderr, flush=True)


@contextmanager
def display(text: str) -> Iterator[Display]:
    """Return a display for as long as the block runs."""
    console = screen.stderr()
    if not console.is_terminal:
        yield Display(None)
        return
    with console.status(text) as status:
        yield Display(status)


@contextmanager
def compiling() -> Iterator[Callable[[CompileState], None]]:
    """Return the function that a compilation tells how far it is."""
    with display("compiling") as shown:

        def tell(state: CompileState) -> None:
            parts = [f"{state.debates} debates", f"{screen.count(state.usage.calls)} calls"]
            if state.usage.cached:
                parts.append(f"{screen.count(state.usage.cached)} cached")
            if state.candidates:
                parts.append(f"{state.candidates} candidates, best {screen.fraction(state.best)}")
            parts.append(screen.seconds(state.elapsed))
            shown.update(f"{state.title}: {', '.join(parts)}")

        yield tell


@contextmanager
def searching() -> Iterator[SearchProgress]:
    """Return the watcher that a search tells how far it is."""
    from ..optimize.search import SearchProgress as Base

    with display("searching") as shown:

        class Shown(Base):
            def __init__(self) -> None:
                self.total = 0
                self.settings: dict[int, str] = {}

            def start(self, total: int, points: int) -> None:
                self.total = total
                shown.line(f"{total} trials in a space of {points:,} points")

            def trial(self, number: int, settings: dict[str, Any]) -> None:
                self.settings[number] = words(settings)

            def example(self, number: int, answered: int, total: int, score: float) -> None:
                shown.update(f"trial {number}: {self.settings.get(number, '')}  {answered}/{total}  score {score:.3f}")

            def finished(self, result: TrialResult, best: TrialResult | None) -> None:
                end = f"  (stopped after {result.n})" if result.state == "pruned" else ""
                ahead = f"  best: #{best.number} {screen.fraction(best.score)}" if best is not None else ""
                score = screen.fraction(result.score)
                shown.line(f"trial {result.number}: {words(result.settings)}  score {score}{end}{ahead}")

        yield Shown()


def words(settings: dict[str, Any]) -> str:
    """Return settings in one line."""
    return " ".join(f"{name}={f'{value:g}' if isinstance(value, float) else value}" for name, value in settings.items())
