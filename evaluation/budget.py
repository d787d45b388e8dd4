"""Budgets, and who holds them: every model call of a run asks here for a place and reports here what it took."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import dspy

from ..errors import BudgetExceededError, InputError, TownhallError
from ..programs.asking import Ask, Meter
from ..programs.observer import Observer
from ..signatures.transcript import Turn, Usage
from .accounting import accounted, only_paid
from .run_folder import PaidCall

#: The fingerprint of the example whose calls are made in this context.
EXAMPLE: ContextVar[str] = ContextVar("townhall_example", default="")


@dataclass(frozen=True)
class Budget:
    """Limits on what a run pays for in all, its earlier sessions included.

    Replies from the cache are free; but once a limit is used up nothing is started any more, since only an answered
    call shows that it was in the cache.

    Attributes:
        calls: model calls; never exceeded.
        tokens: tokens sent and received; no call is started once they are used up, so that at most the calls in flight
            then go beyond.
        cost: US dollars; likewise. Needs a price for every model.

    Raises:
        InputError: for a limit that is not above 0.
    """

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        for name in ("calls", "tokens", "cost"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"the budget of {name} is {value}; it must be above 0")

    def minus(self, usage: Usage) -> Budget:
        """Return what is left of the budget.

        Raises:
            BudgetExceededError: when nothing is.
        """
        if reached := self.reached(usage):
            raise BudgetExceededError(reached)
        return Budget(
            calls=None if self.calls is None else self.calls - usage.calls,
            tokens=None if self.tokens is None else self.tokens - usage.tokens,
            cost=None if self.cost is None or usage.cost is None else self.cost - usage.cost,
        )

    def reached(self, usage: Usage) -> str | None:
        """Return which limit is used up, in words; None when none is."""
        if self.calls is not None and usage.calls >= self.calls:
            return f"the budget of {self.calls} calls is used up"
        if self.tokens is not None and usage.tokens >= self.tokens:
            return f"the budget of {self.tokens} tokens is used up ({usage.tokens} were)"
        if self.cost is not None and usage.cost is not None and usage.cost >= self.cost:
            return f"the budget of ${self.cost:g} is used up (${usage.cost:.4f} were)"
        return None


class Halted(TownhallError):
    """Raised instead of a call in a run that has been told to end; its example stays unfinished."""


#: Returns a call's usage with the cost that our own price list gives it.
Pricing = Callable[[Any, Usage], Usage]


class CallControl(Observer):
    """Watches all calls of a run: places in flight, budget, and the ledger of what was paid.

    Args:
        concurrency: calls in flight at most.
        budget: what may be spent.
        spent: what earlier sessions paid.
        write: writes a paid call down.
        pricing: see `Pricing`.
        outer: another observer that wants to hear of everything too.
    """

    def __init__(
        self,
        concurrency: int,
        budget: Budget,
        spent: Iterable[PaidCall] = (),
        *,
        write: Callable[[PaidCall], None] = lambda call: None,
        pricing: Pricing = lambda lm, usage: usage,
        outer: Observer | None = None,
    ) -> None:
        self.concurrency = concurrency
        self.budget = budget
        self._write = write
        self._pricing = pricing
        self._outer = outer if outer is not None else Observer()
        # One lock, and a queue for each thing waited for: a reply must wake one waiting call, not a hundred.
        self._lock = threading.Lock()
        self._place_free = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._settled = threading.Condition(self._lock)
        self._free = concurrency
        self._waiting = 0
        self._starting: set[str] = set()
        self._in_flight = 0
        self._halt: TownhallError | None = None
        #: By example and role: what was paid in all sessions, and what the attempt under way took.
        self._paid_for: dict[str, dict[str, Usage]] = defaultdict(dict)
        self._attempts: dict[str, dict[str, Usage]] = defaultdict(dict)
        self._cached: dict[str, int] = {}
        self._paid = Usage()
        for call in spent:
            self._pay(call)

    # -- what the run asks ---------------------------------------------------------------------------------------

    @property
    def total(self) -> Usage:
        """All that was paid so far, by earlier sessions too, and how many replies came from the cache instead."""
        with self._lock:
            return self._paid.model_copy(update={"cached": sum(self._cached.values())})

    @property
    def in_flight(self) -> int:
        """Calls under way."""
        with self._lock:
            return self._in_flight

    @property
    def halted(self) -> TownhallError | None:
        """Why no call is started any more; None while calls are."""
        with self._lock:
            return self._halt

    def by_role(self, example: str) -> dict[str, Usage]:
        """Return by role what an example took so far; see `accounted`."""
        with self._lock:
            paid, attempt = self._paid_for[example], self._attempts[example]
            return {
                role: accounted(paid.get(role, Usage()), attempt.get(role, Usage())) for role in {**paid, **attempt}
            }

    def attempt(self, example: str) -> Usage:
        """Return what an example took since it was admitted."""
        with self._lock:
            return sum(self._attempts[example].values(), Usage())

    def halt(self, reason: TownhallError) -> None:
        """Start no call any more. The first reason stands."""
        with self._lock:
            self._stop(reason)

    def _stop(self, reason: TownhallError) -> None:
        self._halt = self._halt or reason
        for queue in (self._place_free, self._room, self._settled):
            queue.notify_all()

    def admit(self, example: str) -> bool:
        """Wait until there is a place that nobody waits for, and keep it for an example's first call.

        Returns:
            False when the run has been told to end.
        """
        with self._lock:
            while self._halt is None and self._free <= self._waiting + len(self._starting):
                self._room.wait()
            if self._halt is not None:
                return False
            self._starting.add(example)
            self._attempts[example].clear()
            self._offer()
            return True

    def dismiss(self, example: str) -> None:
        """Hear that an example has ended, with or without a call."""
        with self._lock:
            self._starting.discard(example)
            self._offer()

    def _offer(self) -> None:
        """Wake whom a free place is for: a waiting call, else an example."""
        if self._free > 0 and self._waiting:
            self._place_free.notify()
        if self._free > self._waiting + len(self._starting):
            self._room.notify()

    def wait_until_quiet(self, seconds: float) -> bool:
        """Wait until no call is under way, for so long at most; return whether that is so."""
        with self._lock:
            return self._settled.wait_for(lambda: self._in_flight == 0, timeout=seconds)

    # -- what the calls ask --------------------------------------------------------------------------------------

    def slot(self, ask: Ask) -> AbstractContextManager[None]:
        """Return a place among the calls in flight."""
        return self._slot(ask)

    @contextmanager
    def _slot(self, ask: Ask) -> Iterator[None]:
        with self._place(), self._outer.slot(ask):
            yield

    @contextmanager
    def _place(self) -> Iterator[None]:
        with self._lock:
            self._starting.discard(EXAMPLE.get())
            self._waiting += 1
            try:
                while self._free <= 0 and self._halt is None:
                    self._place_free.wait()
                if self._halt is not None:
                    raise self._halt
                self._free -= 1
            finally:
                self._waiting -= 1
            self._offer()
        try:
            yield
        finally:
            with self._lock:
                self._free += 1
                self._offer()

    def before_call(self, ask: Ask) -> None:
        """Let a call start that the budget allows.

        Raises:
            BudgetExceededError: when it is used up.
            Halted: when the run has been told to end.
        """
        self._begin()
        try:
            self._outer.before_call(ask)
        except BaseException:
            self._end()
            raise

    def _begin(self) -> None:
        with self._lock:
            while True:
                if self._halt is not None:
                    raise self._halt
                if reached := self.budget.reached(self._paid):
                    self._stop(BudgetExceededError(reached))
                    raise self._halt or BudgetExceededError(reached)
                if self.budget.calls is None or self._paid.calls + self._in_flight < self.budget.calls:
                    break
                # Each call in flight may turn out to be served from the cache: only then is there room for this one.
                self._settled.wait()
            self._in_flight += 1

    def _end(self) -> None:
        with self._lock:
            self._in_flight -= 1
            self._settled.notify_all()

    def after_call(self, ask: Ask, usage: Usage) -> None:
        """Book what a call took."""
        priced = self._close(ask.role, ask.lm or ask.predictor.lm or dspy.settings.lm, usage)
        self._outer.after_call(ask, priced)

    def _close(self, role: str, lm: Any, usage: Usage) -> Usage:
        priced = self._pricing(lm, usage)
        try:
            self.book(role, priced)
        finally:
            self._end()
        if priced.cost is None and self.budget.cost is not None:
            self.halt(
                InputError(
                    f"no price is known for the model '{getattr(lm, 'model', lm)}', so that a budget of cost cannot be "
                    "held; use --max-tokens or --max-calls, or state the prices in --models-file"
                )
            )
        return priced

    @contextmanager
    def whole(self, role: str, meter: Meter) -> Iterator[None]:
        """Hold a place and the budget for a module that makes its calls unseen; they are booked when it ends."""
        with self._place():
            self._begin()
            try:
                yield
            finally:
                self._close(role, dspy.settings.lm, meter.usage())

    def on_turn(self, turn: Turn) -> None:
        """Pass a turn on."""
        self._outer.on_turn(turn)

    def book(self, role: str, usage: Usage) -> None:
        """Book usage for the example of this context."""
        example = EXAMPLE.get()
        paid = PaidCall(example=example, role=role, usage=only_paid(usage)) if usage.calls or usage.tokens else None
        with self._lock:
            attempt = self._attempts[example]
            attempt[role] = attempt.get(role, Usage()) + usage
            if paid is not None:
                self._pay(paid)
            took = sum(part.calls + part.cached for part in attempt.values())
            self._cached[example] = max(0, took - sum(part.calls for part in self._paid_for[example].values()))
        if paid is not None:
            self._write(paid)

    def _pay(self, call: PaidCall) -> None:
        roles = self._paid_for[call.example]
        roles[call.role] = roles.get(call.role, Usage()) + call.usage
        self._paid = self._paid + call.usage
