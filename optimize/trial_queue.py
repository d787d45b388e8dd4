"""The trials of a study as a queue in its storage: exactly as many as asked for, whoever works on them.

The process that starts a study puts its trials there as waiting; workers claim them one by one. A claim is atomic
(databases lock the row; SQLite does not, and processes of one machine hold the study's lock), so that two processes
never run the same trial and together never run more than were asked for. A trial whose process died is marked failed
and put back with the same settings.
"""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import optuna
from filelock import FileLock
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.trial import FrozenTrial, TrialState

from ..errors import InputError

#: Seconds between signs of life of a running trial, and how long after the last one it counts as dead. Only needed for
#: workers on other machines: a dead process of this machine is seen at once.
HEARTBEAT_SECONDS = 10
GRACE_SECONDS = 60
#: Tries of two processes that set up the same new database at the same moment.
_TRIES = 5


def open_storage(storage: str | None, folder: Path) -> BaseStorage:
    """Open a study's storage.

    Args:
        storage: None for an SQLite file in `folder`; "journal" for a journal file there; a path that ends in
            ".journal"; or any database URL that Optuna takes (`postgresql://...`, `mysql://...`, `sqlite:///...`).
        folder: of the study.

    Raises:
        InputError: when the storage cannot be opened; passwords are left out of the text.
    """
    if storage == "journal" or (storage or "").endswith(".journal"):
        from optuna.storages.journal import JournalFileBackend

        path = folder / "study.journal" if storage == "journal" else Path(storage or "")
        path.parent.mkdir(parents=True, exist_ok=True)
        return JournalStorage(JournalFileBackend(str(path)))
    url = storage or f"sqlite:///{(folder / 'study.db').resolve()}"
    if "://" not in url:
        raise InputError(f"storage '{url}': give a database URL, a path that ends in .journal, or 'journal'")
    for scheme in ("postgresql://", "postgres://"):
        if url.startswith(scheme):
            url = "postgresql+psycopg://" + url.removeprefix(scheme)
    engine: dict[str, Any] = {"pool_pre_ping": True}
    if url.startswith("sqlite"):
        engine = {"connect_args": {"timeout": 60}}
    try:
        return _connected(url, engine)
    except ImportError as error:
        raise InputError(
            f'storage {without_password(storage)}: {error}. For PostgreSQL: pip install "townhall[postgres]"'
        ) from None
    except Exception as error:  # SQLAlchemy and the database drivers raise types of their own
        lines = str(error.__cause__ or error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"storage {without_password(storage)} cannot be opened: {lines[0]}") from None


def _connected(url: str, engine: dict[str, Any]) -> BaseStorage:
    for attempt in range(_TRIES):
        try:
            # Finished trials are kept in memory: looking at a study costs the new ones only.
            return optuna.storages.get_storage(RDBStorage(url, engine_kwargs=engine))
        except Exception as error:
            # Another process is making the same tables: they are there at the next try.
            if attempt == _TRIES - 1 or not any(word in str(error) for word in ("already exists", "UniqueViolation")):
                raise
            time.sleep(0.2 * (attempt + 1))
    raise AssertionError("the last try returns or raises")


def without_password(storage: str | None) -> str:
    """Return a storage's name for files and messages."""
    if storage is None:
        return "study.db"
    if "://" not in storage:
        return storage
    from sqlalchemy.engine import make_url

    try:
        return make_url(storage).render_as_string(hide_password=True)
    except Exception:
        return storage.split("://")[0] + "://..."


def this_process() -> dict[str, Any]:
    """Return what tells this process from others."""
    return {"host": _host(), "pid": os.getpid(), "started": _started(os.getpid())}


def _host() -> str:
    """Return this machine's name; containers of one name count as different machines."""
    try:
        return f"{socket.gethostname()}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> str | None:
    """Return when a process started, in the kernel's own count; None where that is not known."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def is_dead(worker: dict[str, Any]) -> bool:
    """Return whether a process is known to have ended; False for processes of other machines."""
    if worker.get("host") != _host():
        return False
    pid = int(worker.get("pid", 0))
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    # Another process may have its number by now.
    return worker.get("started") != _started(pid)


class TrialQueue:
    """One study's trials.

    Args:
        name: of the study.
        storage: as opened by `open_storage`.
        lock: file that processes of this machine lock while they change the queue.
    """

    def __init__(self, name: str, storage: BaseStorage, lock: Path) -> None:
        self.name = name
        self.storage = storage
        self.lock = FileLock(str(lock))
        self._study_id = storage.get_study_id_from_name(name)
        #: By number, the last sign of life of a running trial and when this process first saw it.
        self._alive: dict[int, tuple[Any, float]] = {}

    def study(self, sampler: optuna.samplers.BaseSampler | None = None) -> optuna.Study:
        """Return the Optuna study, made anew so that nobody works on an old view of it."""
        return optuna.load_study(study_name=self.name, storage=self.storage, sampler=sampler or _NO_SAMPLER)

    def trials(self, *states: TrialState) -> list[FrozenTrial]:
        """Return the trials in some states; in all when none is named."""
        return self.storage.get_all_trials(self._study_id, deepcopy=False, states=states or None)

    def _id(self, number: int) -> int:
        return self.storage.get_trial_id_from_study_id_trial_number(self._study_id, number)

    def counted(self) -> list[FrozenTrial]:
        """Return the trials that count towards the number asked for: finished, running and waiting ones.

        Failed trials do not count, nor do repetitions of a configuration, which cost nothing.
        """
        states = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING, TrialState.WAITING)
        return [trial for trial in self.trials(*states) if "duplicate_of" not in trial.user_attrs]

    def waiting(self) -> list[FrozenTrial]:
        """Return the trials that nobody has claimed."""
        return self.trials(TrialState.WAITING)

    def running(self) -> list[FrozenTrial]:
        """Return the trials that some process works on."""
        return self.trials(TrialState.RUNNING)

    def fill(self, trials: int, first: Iterable[dict[str, Any]] = ()) -> None:
        """Put trials into the queue until `trials` count in all; withdraw waiting ones when there are more.

        Args:
            trials: how many there are to be in all.
            first: settings to try first.
        """
        with self.lock:
            missing = trials - len(self.counted())
            given = iter(first)
            for _ in range(missing):
                self.add(next(given, {}))
            # The last ones: what is to be done again after its process died comes before the sampler's choices.
            surplus = sorted(self.waiting(), key=lambda trial: ("folder" in trial.user_attrs, -trial.number))
            for trial in surplus[: max(0, -missing)]:
                self._fail(trial.number, withdrawn=True)

    def withdraw_open(self) -> None:
        """Withdraw the waiting trials whose settings nobody has chosen yet."""
        with self.lock:
            for trial in self.waiting():
                if not trial.system_attrs.get("fixed_params"):
                    self._fail(trial.number, withdrawn=True)

    def add(self, settings: dict[str, Any], **attrs: Any) -> None:
        """Put one more trial into the queue, with these settings (all others are the sampler's choice)."""
        self.study().enqueue_trial(settings, user_attrs=attrs)

    def claim(self) -> int | None:
        """Take the next waiting trial; returns its number, None when there is none."""
        with self.lock:
            # What was begun comes first: it is half paid for.
            for waiting in sorted(self.waiting(), key=lambda trial: ("folder" not in trial.user_attrs, trial.number)):
                trial_id = self._id(waiting.number)
                with suppress(optuna.exceptions.UpdateFinishedTrialError):
                    if self.storage.set_trial_state_values(trial_id, state=TrialState.RUNNING):
                        self.storage.set_trial_user_attr(trial_id, "worker", this_process())
                        return waiting.number
        return None

    def trial(self, number: int, sampler: optuna.samplers.BaseSampler) -> optuna.Trial:
        """Return a claimed trial, whose settings a sampler chooses."""
        return optuna.Trial(self.study(sampler), self._id(number))

    def note(self, number: int, **attrs: Any) -> None:
        """Write something down about a trial that runs."""
        trial_id = self._id(number)
        with suppress(optuna.exceptions.UpdateFinishedTrialError):
            for key, value in attrs.items():
                self.storage.set_trial_user_attr(trial_id, key, value)

    def finish(self, number: int, values: list[float], **attrs: Any) -> bool:
        """Write a trial's result down; returns False when it is not this process's trial any more."""
        return self._end(number, TrialState.COMPLETE, values, attrs)

    def _fail(self, number: int, **attrs: Any) -> bool:
        return self._end(number, TrialState.FAIL, None, attrs)

    def _end(self, number: int, state: TrialState, values: list[float] | None, attrs: dict[str, Any]) -> bool:
        trial_id = self._id(number)
        with suppress(optuna.exceptions.UpdateFinishedTrialError):
            for key, value in attrs.items():
                self.storage.set_trial_user_attr(trial_id, key, value)
            return self.storage.set_trial_state_values(trial_id, state=state, values=values)
        return False

    def repeat_of(self, number: int, other: int) -> None:
        """Mark a trial as the repetition of one that another process is running."""
        self._fail(number, duplicate_of=other)

    def refuse(self, number: int, reason: str) -> None:
        """Mark a trial as failed because the strategy refuses its settings; it is not queued again."""
        self._fail(number, failed=reason, invalid=True)

    def put_back(self, number: int, reason: str) -> None:
        """Mark a trial as failed and queue its settings again; its replies are in the cache and its run's folder."""
        if not self._fail(number, failed=reason):
            return
        trial = self.storage.get_trial(self._id(number))
        settings = trial.params or trial.system_attrs.get("fixed_params", {})
        self.add(dict(settings), retry_of=number, folder=self.folder(number))

    def folder(self, number: int) -> int:
        """Return the number under which a trial's run is kept: that of the trial which it does again, if it does."""
        return int(self.storage.get_trial(self._id(number)).user_attrs.get("folder", number))

    def put_back_dead(self) -> list[int]:
        """Put back the running trials whose process is gone; returns their numbers."""
        with self.lock:
            dead = [trial.number for trial in self.running() if self._is_dead(trial)]
            for number in dead:
                self.put_back(number, "its process ended")
        return dead

    def _is_dead(self, trial: FrozenTrial) -> bool:
        """Return whether a running trial's process has ended, or has given no sign of life for too long.

        How long is measured by this machine's clock: those of others may be wrong.
        """
        if is_dead(trial.user_attrs.get("worker", {})):
            return True
        sign, since = trial.user_attrs.get("alive"), time.monotonic()
        known = self._alive.get(trial.number)
        if known is None or known[0] != sign:
            self._alive[trial.number] = (sign, since)
            return False
        return since - known[1] > GRACE_SECONDS

    def heartbeat(self, number: int) -> AbstractContextManager[None]:
        """Return a context that gives signs of life of a running trial."""
        return _Heartbeat(self.storage, self._id(number))


#: Where no sampler is needed: Optuna's default one would be made anew each time.
_NO_SAMPLER = optuna.samplers.RandomSampler(seed=0)


class _Heartbeat(AbstractContextManager[None]):
    def __init__(self, storage: BaseStorage, trial_id: int) -> None:
        self._storage = storage
        self._trial_id = trial_id
        self._stop = Event()
        self._thread = Thread(target=self._beat, name="townhall-heartbeat", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def _beat(self) -> None:
        for beat in itertools.count(1):
            # A database that is away for a moment must not end the trial; its next call will tell.
            with suppress(Exception):
                self._storage.set_trial_user_attr(self._trial_id, "alive", beat)
            if self._stop.wait(HEARTBEAT_SECONDS):
                return
