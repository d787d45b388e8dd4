"""Asking agents: the calls of one step run at the same time, and come back in a fixed order.

A strategy is written once, as a generator that yields the calls of a step and receives their replies; `run` and `arun`
drive it with threads and with asyncio. What they take care of:

- **Order.** Replies, turns and the DSPy trace come in the order of the asks, whoever finishes first.
- **Samples.** Agents with the same prompt get different samples: each has its own rollout id (DSPy's cache key) and,
  where the model takes one, its own seed. At temperature 0 they are one sample by definition and share it through the
  cache: the first asks, the others wait for its reply.
- **Bad replies.** A reply that cannot be read is asked for once more; then the agent abstains. Errors of the provider
  are retried by the client and then raised.
- **Accounting.** Every turn knows its calls, tokens, cost and seconds.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import dspy
from dspy.utils.exceptions import AdapterParseError

from ..signatures.answers import canonical, plain
from ..signatures.transcript import Turn, Usage
from .adapter import DebateAdapter
from .observer import OBSERVER, Observer

Result = TypeVar("Result")
#: A second attempt at temperature 0 would return the same unreadable reply; it is made a little warmer.
RETRY_TEMPERATURE = 0.3


@dataclass(frozen=True)
class Ask:
    """One call of a role.

    Attributes:
        predictor: the role's predictor.
        role: its name in the program ("argue").
        inputs: the signature's input fields.
        round: see `Turn.round`.
        agent: index of the agent; None for a moderator, judge or summariser.
        name: the speaker's name.
        lm: the agent's model; None for the configured one.
        temperature: overrides the model's.
        sample: tells apart samples of the same prompt; agents use their index.
        repeat: how many times the same was asked before in this debate; set by `run` and `arun`. An agent that reads
            the very same in a later round draws anew, as it would without a cache.
        seed: of the program; another seed gives other samples.
        check: returns what is wrong with a reply that could be read (None: nothing). A wrong reply is treated as an
            unreadable one.
        answer_field: the output field that states the agent's answer; None for roles that state none.
    """

    predictor: dspy.Predict
    role: str
    inputs: dict[str, Any]
    round: int
    agent: int | None = None
    name: str = ""
    lm: dspy.LM | None = None
    temperature: float | None = None
    sample: int = 0
    repeat: int = 0
    seed: int = 0
    check: Callable[[dspy.Prediction], str | None] | None = None
    answer_field: str | None = None


@dataclass
class Reply:
    """What came back for an ask.

    Attributes:
        prediction: the output fields; None when the agent abstained.
        turn: the transcript's record of it.
        trace: the DSPy trace entries of this call.
        last: the last reply that could be read but did not pass the check, for repair.
    """

    prediction: dspy.Prediction | None
    turn: Turn
    trace: list[Any] = field(default_factory=list)
    last: dspy.Prediction | None = None

    @property
    def answer(self) -> Any:
        """The typed answer; None when there is none."""
        return None if self.prediction is None or self._field is None else getattr(self.prediction, self._field, None)

    _field: str | None = None


#: A strategy's flow: yields the asks of a step, is sent their replies, returns its result.
Script = Generator[Sequence[Ask], list[Reply], Result]


def run(script: Script[Result]) -> Result:
    """Drive a script; the asks of a step run in threads. Works inside a running event loop too.

    Raises:
        dspy.utils.exceptions.LMError: when a provider fails for good; what other agents said in that step is in the
            cache.
    """
    return _drive_steps(script, _ask_all)


async def arun(script: Script[Result]) -> Result:
    """Drive a script with asyncio; otherwise as `run`."""
    seen: Counter[str] = Counter()
    try:
        asks = next(script)
        while True:
            asks = script.send(_merge_traces(await _aask_all(number_repeats(asks, seen))))
    except StopIteration as stop:
        return stop.value


def _drive_steps(script: Script[Result], step: Callable[[Sequence[Ask]], list[Reply]]) -> Result:
    seen: Counter[str] = Counter()
    try:
        asks = next(script)
        while True:
            asks = script.send(_merge_traces(step(number_repeats(asks, seen))))
    except StopIteration as stop:
        return stop.value


def number_repeats(asks: Sequence[Ask], seen: Counter[str]) -> list[Ask]:
    """Return the asks of a step with their `repeat`, and count them in `seen`."""
    numbered = []
    for ask in asks:
        key = f"{ask.agent}/{_wording(ask)}"
        numbered.append(replace(ask, repeat=seen[key]))
        seen[key] += 1
    return numbered


def _wording(ask: Ask) -> str:
    inputs = [(name, str(value)) for name, value in sorted(ask.inputs.items())]
    return repr((id(ask.predictor), inputs))


def _merge_traces(replies: list[Reply]) -> list[Reply]:
    trace = dspy.settings.trace
    if trace is not None and dspy.settings.max_trace_size > 0:
        for reply in replies:
            for entry in reply.trace:
                if len(trace) >= dspy.settings.max_trace_size:
                    trace.pop(0)
                trace.append(entry)
    return replies


def _ask_all(asks: Sequence[Ask]) -> list[Reply]:
    if len(asks) == 1:
        return [_ask(asks[0])]
    pool, futures = _agents(), list[Future[Reply]]()
    try:
        for ask, twin in zip(asks, twins_of(asks), strict=True):
            twin_future = futures[twin] if twin is not None else None
            # Each ask gets its own copy of the context: DSPy's settings and our observer live in context variables.
            futures.append(pool.submit(contextvars.copy_context().run, _ask_after, twin_future, ask))
        # All are awaited before the first error is raised: a reply that was paid for reaches the cache.
        errors = [future.exception() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    for error in errors:
        if error is not None:
            raise error
    return [future.result() for future in futures]


#: Threads in which agents speak, shared by all debates of the process: starting new ones for every step took a tenth of
#: the throughput of many debates. An agent never waits for one that was asked after it, so that a full pool moves on.
_MOST_AGENTS = 512
_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def _agents() -> ThreadPoolExecutor:
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(_MOST_AGENTS, thread_name_prefix="townhall-agent")
        return _pool


def _forget_agents() -> None:
    """Start with no threads in a forked process: it has none of its parent's."""
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_agents)


def _ask_after(twin: Future[Reply] | None, ask: Ask) -> Reply:
    if twin is not None:
        wait([twin])
    return _ask(ask)


async def _aask_all(asks: Sequence[Ask]) -> list[Reply]:
    tasks: list[asyncio.Task[Reply]] = []
    for ask, twin in zip(asks, twins_of(asks), strict=True):
        tasks.append(asyncio.create_task(_aask_after(tasks[twin] if twin is not None else None, ask)))
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if isinstance(result, Reply)]


async def _aask_after(twin: asyncio.Task[Reply] | None, ask: Ask) -> Reply:
    if twin is not None:
        await asyncio.wait([twin])
    return await _aask(ask)


def twins_of(asks: Sequence[Ask]) -> list[int | None]:
    """Return for each ask the first ask before it that the cache cannot tell from it; None where there is none.

    Asked at the same time, twins would each be paid for, since the cache only knows replies that have arrived.
    """
    first: dict[Any, int] = {}
    twins: list[int | None] = []
    for index, ask in enumerate(asks):
        attempts = _Attempts(ask)
        config = sorted(attempts.config(0).items())
        key = repr((_wording(ask), id(attempts.lm), config))
        twins.append(first.get(key) if getattr(attempts.lm, "cache", False) else None)
        first.setdefault(key, index)
    return twins


class Meter:
    """Counts one ask's calls: DSPy reports paid calls to the usage tracker, and every reply to the history."""

    def __init__(self, outer: Any) -> None:
        self.history: list[dict[str, Any]] = []
        self._outer = outer
        self._paid: list[dict[str, Any]] = []
        self._started = time.perf_counter()

    def add_usage(self, model: str, usage: dict[str, Any]) -> None:
        """Hear of a paid call, as DSPy's usage trackers do."""
        self._paid.append(usage)
        if self._outer is not None:
            self._outer.add_usage(model, usage)

    def usage(self) -> Usage:
        """Return what was counted so far."""
        # A reply from the cache has no usage of its own and is not reported to the tracker.
        billed = [entry for entry in self.history if entry.get("usage")]
        cached = [entry for entry in self.history if not entry.get("usage")][: len(self.history) - len(self._paid)]
        costs = [entry.get("cost") for entry in billed]
        known = len(billed) >= len(self._paid) and all(cost is not None for cost in costs)
        cached_costs = [entry.get("cost") for entry in cached]
        return Usage(
            calls=len(self._paid),
            cached=len(cached),
            prompt_tokens=sum(usage.get("prompt_tokens") or 0 for usage in self._paid),
            completion_tokens=sum(usage.get("completion_tokens") or 0 for usage in self._paid),
            cost=sum(float(cost) for cost in costs if cost is not None) if known else None,
            seconds=time.perf_counter() - self._started if self._paid else 0.0,
            cached_prompt_tokens=sum(_tokens(entry, "input_tokens") for entry in cached),
            cached_completion_tokens=sum(_tokens(entry, "output_tokens") for entry in cached),
            cached_cost=None
            if any(cost is None for cost in cached_costs)
            else sum(float(cost) for cost in cached_costs if cost is not None),
        )


def _tokens(entry: dict[str, Any], name: str) -> int:
    """Return a token count of a cached reply, from the response as it was stored."""
    return int(getattr(getattr(entry.get("response"), "usage", None), name, None) or 0)


class _Attempts:
    """The bookkeeping of one ask, shared by the two ways of calling."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.observer: Observer = OBSERVER.get()
        self.lm = ask.lm or ask.predictor.lm or dspy.settings.lm
        self.usage = Usage()
        self.problem: str | None = None
        self.last: dspy.Prediction | None = None

    def config(self, attempt: int) -> dict[str, Any]:
        defaults = {**getattr(self.lm, "kwargs", {}), **ask_config(self.ask)}
        config: dict[str, Any] = {}
        if self.ask.temperature is not None:
            config["temperature"] = self.ask.temperature
        if self.ask.lm is not None:
            # Agents with models of their own heed an optimiser's copy of the configured one, which wants other samples.
            copy = getattr(self.ask.predictor.lm or dspy.settings.lm, "kwargs", {})
            if copy.get("rollout_id") is not None:
                defaults["rollout_id"] = copy["rollout_id"]
                if self.ask.temperature is None and copy.get("temperature") is not None:
                    defaults["temperature"] = config["temperature"] = copy["temperature"]
        temperature = defaults.get("temperature")
        if temperature == 0 and attempt:
            temperature = config["temperature"] = RETRY_TEMPERATURE
        if temperature != 0:
            # An optimiser that wants fresh samples sets the model's rollout id; it must keep its effect.
            ask, base = self.ask, defaults.get("rollout_id")
            config["rollout_id"] = sample_id(base, ask.seed, ask.sample, ask.repeat, attempt)
            if takes_seed(self.lm):
                config["seed"] = config["rollout_id"]
        return config

    def settings(self, meter: Meter, trace: list[Any]) -> dict[str, Any]:
        callers = [*(dspy.settings.caller_modules or []), meter]
        values: dict[str, Any] = {"usage_tracker": meter, "caller_modules": callers}
        if dspy.settings.trace is not None:
            values["trace"] = trace
        if dspy.settings.adapter is None:
            values["adapter"] = _DEFAULT_ADAPTER
        return values

    def kwargs(self, attempt: int) -> dict[str, Any]:
        extra = {"lm": self.ask.lm} if self.ask.lm is not None else {}
        return {**self.ask.inputs, "config": self.config(attempt), **extra}

    def end(self, meter: Meter) -> None:
        usage = meter.usage()
        self.usage = self.usage + usage
        self.observer.after_call(self.ask, usage)

    def accept(self, prediction: dspy.Prediction) -> bool:
        problem = self.ask.check(prediction) if self.ask.check else None
        if problem is None:
            return True
        self.problem, self.last = problem, prediction
        return False

    def reply(self, prediction: dspy.Prediction | None, trace: list[Any]) -> Reply:
        ask = self.ask
        said = {} if prediction is None else {name: plain(value) for name, value in prediction.items()}
        answer = said.pop(ask.answer_field, None) if ask.answer_field else None
        typed = getattr(prediction, ask.answer_field, None) if prediction is not None and ask.answer_field else None
        turn = Turn(
            round=ask.round,
            agent=ask.agent,
            name=ask.name,
            role=ask.role,
            model=getattr(self.lm, "model", None),
            said=said,
            answer=answer,
            bucket=canonical(typed) if typed is not None else None,
            abstained=prediction is None,
            problem=self.problem if prediction is None else None,
            usage=self.usage,
        )
        self.observer.on_turn(turn)
        return Reply(prediction, turn, trace if prediction is not None else [], self.last, ask.answer_field)


def _ask(ask: Ask) -> Reply:
    attempts = _Attempts(ask)
    for attempt in range(2):
        trace: list[Any] = []
        with attempts.observer.slot(ask):
            attempts.observer.before_call(ask)
            meter = Meter(dspy.settings.usage_tracker)
            try:
                with dspy.context(**attempts.settings(meter, trace)):
                    prediction = ask.predictor(**attempts.kwargs(attempt))
            except AdapterParseError as error:
                attempts.problem = _first_line(error)
                continue
            finally:
                attempts.end(meter)
        if attempts.accept(prediction):
            return attempts.reply(prediction, trace)
    return attempts.reply(None, [])


async def _aask(ask: Ask) -> Reply:
    attempts = _Attempts(ask)
    for attempt in range(2):
        trace: list[Any] = []
        # Slots are made for threads: waiting for one here would stop the loop, so the wait moves to a thread.
        slot = attempts.observer.slot(ask)
        await asyncio.to_thread(slot.__enter__)
        try:
            attempts.observer.before_call(ask)
            meter = Meter(dspy.settings.usage_tracker)
            try:
                with dspy.context(**attempts.settings(meter, trace)):
                    prediction = await ask.predictor.acall(**attempts.kwargs(attempt))
            except AdapterParseError as error:
                attempts.problem = _first_line(error)
                continue
            finally:
                attempts.end(meter)
        finally:
            slot.__exit__(None, None, None)
        if attempts.accept(prediction):
            return attempts.reply(prediction, trace)
    return attempts.reply(None, [])


def ask_config(ask: Ask) -> dict[str, Any]:
    """Return the settings that an ask and its predictor put above the model's own."""
    config = dict(ask.predictor.config)
    if ask.temperature is not None:
        config["temperature"] = ask.temperature
    return config


def sample_id(base: object, seed: int, sample: int, repeat: int, attempt: int) -> int:
    """Return the rollout id of a sample: it depends on these only, so that overlapping debates share replies."""
    digest = hashlib.sha256(f"{base}/{seed}/{sample}/{repeat}/{attempt}".encode()).hexdigest()
    return int(digest[:8], 16) & 0x7FFFFFFF


_SEEDED: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


def takes_seed(lm: Any) -> bool:
    """Return whether a model accepts a sampling seed."""
    if not isinstance(lm, dspy.BaseLM):  # none, or a name: DSPy says so when it is asked
        return False
    if lm not in _SEEDED:
        _SEEDED[lm] = "seed" in (getattr(lm, "supported_params", None) or ())
    return _SEEDED[lm]


def _first_line(error: AdapterParseError) -> str:
    reply = str(error.lm_response).strip()
    reason = str(error).strip().splitlines()[0]
    return f"unreadable reply ({reason}): {reply[:200]!r}" if reply else "empty reply"


_DEFAULT_ADAPTER = DebateAdapter()
