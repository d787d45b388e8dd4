"""Running a program over a task's examples."""

from __future__ import annotations

import contextvars
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import dspy

from ..errors import BudgetExceededError, InputError, RunError, TownhallError
from ..metrics.score import Score
from ..models import resolve
from ..programs.asking import Meter
from ..programs.base import Strategy
from ..programs.observer import OBSERVER
from ..signatures.answers import plain
from ..signatures.transcript import Transcript, Turn, Usage
from ..tasks.base import Example, SplitName, Task
from .budget import EXAMPLE, Budget, CallControl, Halted
from .matching import Match, check_samples
from .progress import Progress, Silent, State, automatic
from .provenance import all_models, run_info, short_hash, strategy_name
from .records import Record, RunInfo, Status
from .reply_cache import replies
from .run_folder import Run, RunFolder, load_run
from .scoring import group_of
from .summary import summarise

__all__ = ["Budget", "Run", "evaluate", "load_run"]

#: Where runs are kept unless a folder is named.
RUNS = Path("runs")
#: Entries kept in DSPy's call histories: a meter needs its call's own, and threads that share one must not empty it.
_HISTORY = 256
#: Seconds between two updates of the progress display.
_TICK = 0.2
#: Seconds that an interrupted run waits for the calls in flight, so that what is paid for reaches the cache.
_LAST_REPLIES = 30.0
#: A run ends when so many examples in a row fail because no server answers; at its start, and later.
_UNREACHABLE_AT_START, _UNREACHABLE_LATER = 3, 10
#: At its start it ends after so many that fail because a server refuses (a wrong key, a model it does not have).
_REFUSED_AT_START = 2

_UNREACHABLE = (dspy.LMTransportError, dspy.LMTimeoutError)
_REFUSED = (
    dspy.LMAuthError,
    dspy.LMBillingError,
    dspy.LMConfigurationError,
    dspy.LMUnsupportedModelError,
    dspy.LMUnsupportedFeatureError,
)


def evaluate(
    program: dspy.Module,
    task: Task,
    *,
    split: SplitName | Literal["all"] = "dev",
    limit: int | None = None,
    order: Literal["shuffled", "file"] = "shuffled",
    seed: int = 0,
    examples: Sequence[Example] | None = None,
    out: Path | str | None = None,
    lm: dspy.LM | None = None,
    adapter: dspy.Adapter | None = None,
    concurrency: int | None = None,
    budget: Budget | None = None,
    by: str | None = None,
    match: Match | None = None,
    progress: Progress | bool | None = None,
    fresh: bool = False,
    keep_transcripts: bool = True,
    on_record: Callable[[Record], bool | None] | None = None,
) -> Run:
    """Run a program over a split, and score it.

    Each example's record is on the disk as soon as it is finished, and every reply is in the cache as soon as it is in.
    The same call again resumes a run that was stopped, interrupted or killed: no finished example is done again and no
    call whose reply was received is paid again (a model made with `cache=False` is asked again for unfinished
    examples). Examples that failed are tried again. A finished run is returned as it is.

    Args:
        program: a strategy, or any DSPy module called as `program(question=...)` that returns `answer`.
        task: gives the examples and scores the answers.
        split: which examples.
        limit: at most so many.
        order: a fixed shuffle, or the source's order.
        seed: of the shuffle.
        examples: these instead of a split.
        out: the run's folder; `runs/TASK-STRATEGY-HASH` when None, the hash being the configuration's.
        lm: the model of roles that have none of their own; None for the configured one.
        adapter: None for the configured one, else `programs.adapter.DebateAdapter`.
        concurrency: model calls in flight at most; what suits the model when None.
        budget: limits on the run's calls, tokens or cost in all. When one is reached the run ends with the status
            "stopped".
        by: a field of the examples' `meta` to group the scores by; the task's `default_by` when None.
        match: makes the program as dear as another run, see `matching`.
        progress: shows how far it is; True for a bar or lines on standard error, None for nothing.
        fresh: set aside what the folder holds, and ask the models again for everything.
        keep_transcripts: keep what was said in the records.
        on_record: called with each record, those of earlier sessions first, one at a time; when it returns False the
            run ends with the status "stopped".

    Returns:
        the run; its status says whether it is complete.

    Raises:
        InputError: for bad input, or a folder that cannot be written or belongs to another run.
        RunError: when the model cannot be used at all, or the disk fails. What was recorded is kept.
        KeyboardInterrupt: likewise, with the status "interrupted".
    """
    given = examples is not None
    chosen = list(examples) if examples is not None else task.split(split, limit=limit, order=order, seed=seed)
    chosen = list({example.fingerprint: example for example in chosen}.values())
    if not chosen:
        raise InputError("there are no examples to run")
    by = by or task.default_by
    if by:
        for example in chosen:
            group_of(example.meta, by, f"example '{example.id}'")
    if match is not None:
        check_samples(program)
    task.check_scoring()
    models = all_models(program, lm)
    if isinstance(program, Strategy):
        with dspy.context(**({"lm": lm} if lm is not None else {})):
            program.check_models()
    places = concurrency or min(resolve.default_concurrency(model) for model in models)
    if places < 1:
        raise InputError(f"the concurrency is {places}; it must be at least 1")
    info = run_info(
        program,
        task,
        chosen,
        given=given,
        split=split if not given else "given",
        order=order,
        limit=None if given else limit,
        seed=seed,
        lm=lm,
        adapter=adapter,
        concurrency=places,
        match=match.describe() if match else None,
    )
    path = Path(out) if out is not None else RUNS / f"{task.name}-{strategy_name(program)}-{short_hash(info)}"
    shown: Progress = Silent() if not progress else automatic() if progress is True else progress
    with RunFolder(path) as folder:
        known = folder.open(info, fresh=fresh)
        session = _Session(
            program=program,
            task=task,
            examples=chosen,
            splits=_splits(task, chosen, split) if not given else {},
            folder=folder,
            info=known or info,
            models=models,
            places=places,
            budget=budget or Budget(),
            match=match,
            keep_transcripts=keep_transcripts,
            progress=shown,
            on_record=on_record,
            by=by,
        )
        if not session.pending and (finished := session.finished()):
            return finished
        if session.pending:
            session.info = folder.begin(info, known)
            settings: dict[str, Any] = {"trace": None, "max_history_size": _HISTORY}
            if lm is not None:
                settings["lm"] = lm
            if adapter is not None:
                settings["adapter"] = adapter
            with replies(serve=not fresh), dspy.context(**settings):
                session.run()
        return session.finish()


def _splits(task: Task, examples: Sequence[Example], split: str) -> dict[str, str]:
    """Return each example's split by fingerprint."""
    if split != "all":
        return {example.fingerprint: split for example in examples}
    named = zip(task.examples, task.assign_splits(task.examples), strict=True)
    return {example.fingerprint: name for example, name in named}


@dataclass
class _Session:
    """One start of a run, from its first pending example to the summary."""

    program: dspy.Module
    task: Task
    examples: list[Example]
    splits: dict[str, str]
    folder: RunFolder
    info: RunInfo
    models: list[dspy.LM]
    places: int
    budget: Budget
    match: Match | None
    keep_transcripts: bool
    progress: Progress
    on_record: Callable[[Record], bool | None] | None
    by: str | None
    done: dict[str, Record] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.done = {record.fingerprint: record for record in self.folder.records()}
        self.resumed = len(self.done)
        self.pending = [
            (index, example)
            for index, example in enumerate(self.examples)
            if example.fingerprint not in self.done or self.done[example.fingerprint].error is not None
        ]
        self.control = CallControl(
            self.places,
            self.budget,
            self.folder.calls(),
            write=self.folder.append_call,
            pricing=priced,
            outer=OBSERVER.get(),
        )
        self.paid_before = self.control.total.calls
        self._lock = threading.Lock()
        self._in_row = 0
        self._answered = any(record.error is None for record in self.done.values())
        self._crash: BaseException | None = None
        self._interrupted = False
        self.debates = any(isinstance(module, Strategy) for _, module in self.program.named_sub_modules())
        self._seconds = 0.0

    def finished(self) -> Run | None:
        """Return the run when it has its summary already."""
        run = load_run(self.folder.path)
        asked_for = run.summary.status == "complete" and (self.by is None or run.summary.by == self.by)
        return run if asked_for else None

    # -- the course ----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Do the pending examples.

        Raises:
            KeyboardInterrupt: after what was finished is on the disk.
        """
        started = time.monotonic()
        retried = {example.fingerprint for _, example in self.pending if example.fingerprint in self.done}
        for record in self._in_order():
            if record.fingerprint not in retried:
                self._tell(record)
        for fingerprint in retried:
            del self.done[fingerprint]
        self.resumed = len(self.done)
        self.folder.forget_summary()
        self.progress.start(self._state(started))
        queue = iter(self.pending)
        workers = []
        for number in range(min(self.places, len(self.pending))):
            context = contextvars.copy_context()
            workers.append(
                threading.Thread(
                    target=context.run, args=(self._work, queue), name=f"townhall-example-{number}", daemon=True
                )
            )
        try:
            for worker in workers:
                worker.start()
            while any(worker.is_alive() for worker in workers):
                next(worker for worker in workers if worker.is_alive()).join(_TICK)
                self.progress.update(self._state(started))
        except KeyboardInterrupt:
            self._interrupted = True
            self.control.halt(Halted("interrupted"))
            if self.control.wait_until_quiet(_LAST_REPLIES):
                for worker in workers:
                    worker.join(_LAST_REPLIES)
            raise
        finally:
            self._seconds = time.monotonic() - started
            self.progress.finish(self._state(started))
            if self._interrupted:
                self._write("interrupted", "interrupted; the same command goes on from here")

    def finish(self) -> Run:
        """Write the summary and return the run.

        Raises:
            TownhallError: what the run ended with, unless it was a budget.
        """
        reason = self.control.halted
        if self._crash is not None:
            self._write("failed", _first_line(self._crash))
            raise self._crash
        if isinstance(reason, BudgetExceededError):
            return self._write("stopped", str(reason))
        if reason is not None:
            self._write("failed", str(reason))
            raise reason
        return self._write("complete", None)

    def _write(self, status: Status, reason: str | None) -> Run:
        if self._seconds:
            self.info.simulated = self.info.simulated or any(resolve.is_simulated(model) for model in self.models)
            self.info.sessions[-1].seconds = round(self._seconds, 3)
            self.folder.write_info(self.info)
        with self._lock:
            records = self._in_order()
        summary = summarise(
            self.info, records, list(self.folder.calls()), status=status, reason=reason, by=self.by, task=self.task
        )
        self.folder.write_summary(summary)
        return Run(self.folder.path, self.info, records, summary)

    def _in_order(self) -> list[Record]:
        return sorted(self.done.values(), key=lambda record: record.index)

    def _state(self, started: float) -> State:
        with self._lock:
            records = list(self.done.values())
        count, total = len(records), self.control.total
        each = [record.full_usage.calls for record in records if record.error is None]
        return State(
            title=f"{self.info.task}, {self.info.strategy}",
            total=len(self.examples),
            done=count,
            resumed=self.resumed,
            score=sum(record.score for record in records) / count if count else None,
            primary=self.task.primary,
            failed=sum(record.error is not None for record in records),
            blank=sum(record.blank for record in records),
            in_flight=self.control.in_flight,
            usage=total,
            elapsed=time.monotonic() - started,
            paid_now=total.calls - self.paid_before,
            calls_each=sum(each) / len(each) if each else None,
            simulated=self.info.simulated,
        )

    # -- one thread ----------------------------------------------------------------------------------------------

    def _work(self, queue: Iterator[tuple[int, Example]]) -> None:
        OBSERVER.set(self.control)
        try:
            while True:
                with self._lock:
                    index, example = next(queue, (None, None))
                if index is None or example is None or not self.control.admit(example.fingerprint):
                    return
                try:
                    self._do(index, example)
                finally:
                    self.control.dismiss(example.fingerprint)
        except TownhallError as error:
            self.control.halt(error)  # the first reason stands
        except BaseException as error:  # a fault of ours must end the run, not one thread of it
            self._crash = self._crash or error
            self.control.halt(Halted("failed"))

    def _do(self, index: int, example: Example) -> None:
        EXAMPLE.set(example.fingerprint)
        started = time.monotonic()
        found = Record(
            index=index,
            id=example.id,
            fingerprint=example.fingerprint,
            split=self.splits.get(example.fingerprint),
            question=example.question,
            gold=plain(example.gold),
            meta=json.loads(json.dumps(example.meta, default=str)),
        )
        failure: Exception | None = None
        try:
            prediction = self._ask(example)
            answer = getattr(prediction, "answer", None)
            found.answer = json.loads(json.dumps(plain(answer), default=str))
            transcript = self._transcript(prediction)
            if self.keep_transcripts:
                found.transcript = transcript
            score, asked_a_model = self._score(answer, example)
            found.score, found.blank, found.feedback = float(score.value), score.blank, score.feedback
            found.parts = json.loads(json.dumps(score.parts, default=str))
            if transcript is not None and not asked_a_model:
                found.answer_scores = self._answer_scores(transcript, example)
        except TownhallError:
            raise
        except Exception as error:
            failure = error
            found.error, found.error_kind = _first_line(error), type(error).__name__
        found.usage_by_role = self.control.by_role(example.fingerprint)
        found.usage = sum(found.usage_by_role.values(), Usage())
        found.full_usage = self.control.attempt(example.fingerprint).uncached()
        found.seconds = time.monotonic() - started
        self.folder.append(found)
        with self._lock:
            self.done[found.fingerprint] = found
            self._judge(failure)
            self._tell(found)

    def _ask(self, example: Example) -> Any:
        arguments: dict[str, Any] = {"question": example.question}
        if self.match is not None:
            arguments["samples"] = self.match.samples_for(example)
        program = self.program
        if self.debates:
            return program(**arguments)
        # Another kind of module makes its calls unseen: it is a call of one role, counted and limited as a whole.
        meter = Meter(dspy.settings.usage_tracker)
        with (
            self.control.whole(type(program).__name__, meter),
            dspy.context(usage_tracker=meter, caller_modules=[meter]),
        ):
            return program(**arguments)

    def _answer_scores(self, transcript: Transcript, example: Example) -> dict[str, float]:
        """Score what agents answered on the way; an answer that cannot be scored is left out."""
        scores = {}
        for bucket, answer in {turn.bucket: turn.answer for turn in transcript.turns}.items():
            if bucket is not None:
                with suppress(Exception):
                    scores[bucket] = float(self.task.score(answer, example).value)
        return scores

    def _score(self, answer: Any, example: Example) -> tuple[Score, bool]:
        """Score an answer, and say whether a model judged it; what that takes is booked under the role "score"."""
        meter = Meter(None)
        with dspy.context(usage_tracker=meter, caller_modules=[meter]):
            try:
                score = self.task.score(answer, example)
            finally:
                usage = meter.usage()
                if usage.calls or usage.cached:
                    names = {entry.get("model") for entry in meter.history}
                    judges = [model for model in self.models if model.model in names]
                    self.control.book("score", priced(judges[0], usage) if judges else usage)
        return score, bool(usage.calls or usage.cached)

    def _transcript(self, prediction: Any) -> Transcript | None:
        transcript = getattr(prediction, "transcript", None)
        if not isinstance(transcript, Transcript):
            return None
        by_name = {model.model: model for model in self.models}
        return transcript.model_copy(update={"turns": [_priced_turn(turn, by_name) for turn in transcript.turns]})

    def _judge(self, failure: Exception | None) -> None:
        """End a run whose model cannot be used, instead of failing example after example."""
        if failure is None:
            self._in_row, self._answered = 0, True
            return
        if isinstance(failure, _UNREACHABLE):
            most = _UNREACHABLE_LATER if self._answered else _UNREACHABLE_AT_START
        elif isinstance(failure, _REFUSED) and not self._answered:
            most = _REFUSED_AT_START
        else:
            self._in_row = 0
            return
        self._in_row += 1
        if self._in_row >= min(most, len(self.pending)):
            how = f"{self._in_row} examples in a row failed" if self._in_row > 1 else "the example failed"
            self.control.halt(
                RunError(f"{_first_line(failure)} ({how} this way; the run ends here and can be resumed)")
            )

    def _tell(self, record: Record) -> None:
        if self.on_record is not None and self.on_record(record) is False:
            self.control.halt(BudgetExceededError("ended by its caller"))


def priced(lm: Any, usage: Usage) -> Usage:
    """Return a usage with the cost that our own prices give it; DSPy's estimate stands where they give none."""
    cost = resolve.price(lm, usage.prompt_tokens, usage.completion_tokens)
    if cost is None:
        return usage
    saved = resolve.price(lm, usage.cached_prompt_tokens, usage.cached_completion_tokens)
    return usage.model_copy(update={"cost": cost, "cached_cost": saved})


def _priced_turn(turn: Turn, models: dict[str, dspy.LM]) -> Turn:
    lm = models.get(turn.model or "")
    return turn if lm is None else turn.model_copy(update={"usage": priced(lm, turn.usage)})


def _first_line(error: BaseException) -> str:
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return line[:500] or type(error).__name__
