"""What a compilation spends: its calls are counted, held to a budget, and never made twice for the same debate.

Teleprompters call the program from threads of their own, into which nothing of ours reaches; so the program itself
carries its watch with it (`Spending.watch`), and models that write prompts are copies that count (`Spending.metered`).
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import dspy

from ..errors import BudgetExceededError, RunError, TownhallError
from ..evaluation.budget import Budget, CallControl, Halted
from ..evaluation.run import priced
from ..programs.asking import Meter
from ..programs.base import Strategy
from ..programs.observer import OBSERVER
from ..signatures.transcript import Usage
from .metric import Failure

StrategyT = TypeVar("StrategyT", bound=Strategy)

#: DSPy's parallel executor starts an item anew that takes longer than 120 s when few are left, and pays it twice. A
#: question that is asked of the same program again after this time is such a repetition, and refused.
REPEATED_AFTER_SECONDS = 100.0
#: A compilation ends when so many debates in a row fail because the model cannot be used.
MOST_UNUSABLE = 3
#: The role under which calls that write prompts are booked.
PROMPTS = "prompts"

_UNUSABLE = (
    dspy.LMTransportError,
    dspy.LMTimeoutError,
    dspy.LMAuthError,
    dspy.LMBillingError,
    dspy.LMConfigurationError,
    dspy.LMUnsupportedModelError,
    dspy.LMUnsupportedFeatureError,
)


class RepeatedDebateError(Exception):
    """A debate that is still going on was started again; the first one's result stands."""


class Spending:
    """Watches a compilation's programs and models.

    Args:
        budget: what may be spent; a limit on calls is exact.
        concurrency: most model calls in flight.
        on_debate: called after every debate.

    Attributes:
        control: books every call.
        debates: debates held so far, by the program or its teacher.
        failures: debates that raised.
    """

    def __init__(self, budget: Budget | None, concurrency: int, on_debate: Callable[[], None] | None = None) -> None:
        self.control = CallControl(concurrency, budget or Budget(), pricing=priced, outer=OBSERVER.get())
        self.debates = 0
        self.failures: list[Failure] = []
        self._on_debate = on_debate
        self._state = threading.Condition()
        self._running: dict[tuple[int, str], float] = {}
        self._unusable = 0

    @property
    def stopped(self) -> TownhallError | None:
        """Why no further call is made; None while calls are."""
        return self.control.halted

    @property
    def by_role(self) -> dict[str, Usage]:
        """What each role took; the writing of prompts under `PROMPTS`."""
        return self.control.by_role("")

    # -- debates --------------------------------------------------------------------------------------------------

    def watch(self, program: StrategyT) -> StrategyT:
        """Make a program, and every copy a teleprompter makes of it, report here. Returns the program."""
        spending, kind = self, type(program)

        def forward(watched: Strategy, question: str, **inputs: Any) -> dspy.Prediction:
            with spending._debate(watched, {"question": question, **inputs}):
                return kind.forward(watched, question, **inputs)

        # A subclass of the same name: teleprompters that show a model the program's source find the strategy's.
        named = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
        line = {"__firstlineno__": kind.__firstlineno__} if "__firstlineno__" in vars(kind) else {}
        metaclass: Any = type(kind)
        program.__class__ = metaclass(kind.__name__, (kind,), {"forward": forward, **named, **line})
        return program

    @contextmanager
    def _debate(self, program: Strategy, inputs: dict[str, Any]) -> Iterator[None]:
        key = (id(program), json.dumps(inputs, sort_keys=True, default=str))
        self._enter(key)
        token = OBSERVER.set(self.control)
        try:
            yield
        except (BudgetExceededError, Halted):
            raise
        except Exception as error:
            self._note(inputs["question"], error)
            raise
        else:
            self._unusable = 0
        finally:
            OBSERVER.reset(token)
            with self._state:
                del self._running[key]
                self.debates += 1
                self._state.notify_all()
            if self._on_debate is not None:
                self._on_debate()

    def _enter(self, key: tuple[int, str]) -> None:
        with self._state:
            while (started := self._running.get(key)) is not None:
                if time.monotonic() - started > REPEATED_AFTER_SECONDS:
                    raise RepeatedDebateError("this question is being debated already")
                # The same question twice in one batch: the second debate finds the replies of the first in the cache.
                self._state.wait(timeout=REPEATED_AFTER_SECONDS)
            self._running[key] = time.monotonic()

    def _note(self, question: str, error: Exception) -> None:
        failure = Failure(question[:200], f"{type(error).__name__}: {first_line(error)}")
        with self._state:
            if failure not in self.failures:
                self.failures.append(failure)
            self._unusable = self._unusable + 1 if isinstance(error, _UNUSABLE) else 0
        if self._unusable >= MOST_UNUSABLE:
            self.control.halt(RunError(f"{first_line(error)} ({self._unusable} debates in a row failed this way)"))

    # -- models that write prompts --------------------------------------------------------------------------------

    def metered(self, lm: dspy.LM) -> dspy.LM:
        """Return a copy of a model whose calls are booked and held to the budget; its own copies are too."""
        spending = self

        class Metered(type(lm)):  # type: ignore[misc]  # the model's class is known at run time only
            def __call__(self, *args: Any, **kwargs: Any) -> Any:
                meter = Meter(dspy.settings.usage_tracker)
                callers = [*(dspy.settings.caller_modules or []), meter]
                completions = int(kwargs.get("n") or self.kwargs.get("n") or 1)
                with dspy.context(lm=self), spending.control.whole(PROMPTS, meter):
                    with dspy.context(usage_tracker=meter, caller_modules=callers):
                        reply = super().__call__(*args, **kwargs)
                    if completions > 1 and meter.usage().calls:
                        # Each completion is a request of its own; DSPy reports them as one.
                        spending.control.book(PROMPTS, Usage(calls=completions - 1))
                return reply

        copied = lm.copy()
        copied.__class__ = Metered
        return copied


def first_line(error: BaseException) -> str:
    """Return an error's first line that says something; its type's name when there is none."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return line[:500] or type(error).__name__
