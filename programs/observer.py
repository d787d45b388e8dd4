"""Who watches a debate while it runs: live transcripts, budgets and limits on calls in flight hang in here."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ..signatures.transcript import Turn, Usage

if TYPE_CHECKING:
    from .asking import Ask


class Observer:
    """Watches the calls of a debate. Methods may be called from several threads at once; the base does nothing."""

    def slot(self, ask: Ask) -> AbstractContextManager[None]:
        """Return a context to hold while a call runs, such as a place among the calls in flight."""
        return nullcontext()

    def before_call(self, ask: Ask) -> None:
        """Run before a model is asked. May raise (a budget is used up): the debate then breaks off."""

    def after_call(self, ask: Ask, usage: Usage) -> None:
        """Run after a model was asked, also when its reply was unreadable or the call failed."""

    def on_turn(self, turn: Turn) -> None:
        """Run when an agent has spoken or abstained, in the order in which they finish."""


#: The observer of the debates run in this context.
_NOBODY = Observer()
OBSERVER: ContextVar[Observer] = ContextVar("townhall_observer", default=_NOBODY)
