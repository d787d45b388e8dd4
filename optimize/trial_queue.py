"""The trials of a study as a queue in its storage: exactly as many as asked for, whoever works on them.

The process that starts a study puts its trials there as waiting; workers claim them one by one. A claim is atomic in
every storage of Optuna, so that two processes never run the same trial and together never run more than were asked for.
A trial whose process died is marked failed and put back with the same settings.
"""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import optuna
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.trial import FrozenTrial, TrialState

from ..errors import InputError

#: Seconds between signs of life of a running trial, and how long after the last one it counts as dead. Only needed for
#: workers on other machines: a dead process of this machine is seen at once.
HEARTBEAT_SECONDS = 10
GRACE_SECONDS = 60


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
    url = url.replace("postgresql://", "postgresql+psycopg://", 1).replace("postgres://", "postgresql+psycopg://", 1)
    engine: dict[str, Any] = {"pool_pre_ping": True}
    if url.startswith("sqlite"):
        engine = {"connect_args": {"timeout": 60}}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return RDBStorage(
                url,
                engine_kwargs=engine,
                heartbeat_interval=HEARTBEAT_SECONDS,
                grace_period=GRACE_SECONDS,
                heartbeat_stale_trial_callback=_queue_again,
            )
    except ImportError as error:
        raise InputError(
            f'storage {without_password(storage)}: {error}. For PostgreSQL: pip install "townhall[postgres]"'
        ) from None
    except Exception as error:  # SQLAlchemy and the database drivers raise types of their own
        reason = str(error.__cause__ or error).strip().splitlines()[0]
        raise InputError(f"storage {without_password(storage)} cannot be opened: {reason}") from None


def _queue_again(study: optuna.Study, trial: FrozenTrial) -> None:
    """Put the settings of a trial that gave no sign of life back into the queue."""
    study.enqueue_trial(dict(trial.params), user_attrs={"retry_of": trial.number})


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
    return {"host": socket.gethostname(), "pid": os.getpid()}


def is_dead(worker: dict[str, Any]) -> bool:
    """Return whether a process is known to have ended; False for processes of other machines."""
    if worker.get("host") != socket.gethostname():
        return False
    pid = int(worker.get("pid", 0))
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


class TrialQueue:
    """One study's trials.

    Args:
        name: of the study.
        storage: as opened by `open_storage`.
        study: makes the Optuna study object; called anew for each trial, so that no process works on an old view.
    """

    def __init__(self, name: str, storage: BaseStorage, study: Callable[[], optuna.Study]) -> None:
        self.name = name
        self.storage = storage
        self.study = study

    def _all(self, *states: TrialState) -> list[FrozenTrial]:
        return self.study().get_trials(deepcopy=False, states=states or None)

    def _id(self, trial: FrozenTrial) -> int:
        study_id = self.storage.get_study_id_from_name(self.name)
        return self.storage.get_trial_id_from_study_id_trial_number(study_id, trial.number)

    def counted(self) -> list[FrozenTrial]:
        """Return the trials that count towards the number asked for: finished, running and waiting ones.

        Failed trials do not count, nor do repetitions of a configuration, which cost nothing.
        """
        states = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING, TrialState.WAITING)
        return [trial for trial in self._all(*states) if "duplicate_of" not in trial.user_attrs]

    def waiting(self) -> int:
        """Return how many trials nobody has claimed."""
        return len(self._all(TrialState.WAITING))

    def running(self) -> list[FrozenTrial]:
        """Return the trials that some process works on."""
        return self._all(TrialState.RUNNING)

    def fill(self, trials: int, first: list[dict[str, Any]] | None = None) -> None:
        """Put trials into the queue until `trials` count in all.

        Args:
            trials: how many there are to be in all.
            first: settings to try first, when the study is new.
        """
        study = self.study()
        missing = trials - len(self.counted())
        known = len(study.get_trials(deepcopy=False))
        for index in range(missing):
            settings = (first or [])[index] if known == 0 and index < len(first or []) else {}
            study.enqueue_trial(settings)

    def add(self, settings: dict[str, Any], **attrs: Any) -> None:
        """Put one more trial into the queue, with these settings (all others are the sampler's choice)."""
        self.study().enqueue_trial(settings, user_attrs=attrs)

    def claim(self) -> optuna.Trial | None:
        """Take the next waiting trial; None when there is none."""
        for waiting in self._all(TrialState.WAITING):
            try:
                if not self.storage.set_trial_state_values(self._id(waiting), state=TrialState.RUNNING):
                    continue
            except (optuna.exceptions.UpdateFinishedTrialError, KeyError):
                continue
            trial = optuna.Trial(self.study(), self._id(waiting))
            trial.set_user_attr("worker", this_process())
            return trial
        return None

    def put_back(self, trial: optuna.Trial | FrozenTrial, reason: str) -> None:
        """Mark a trial as failed and queue its settings again; its replies are in the cache."""
        number = trial.number
        frozen = next(known for known in self._all() if known.number == number)
        study_id = self.storage.get_study_id_from_name(self.name)
        trial_id = self.storage.get_trial_id_from_study_id_trial_number(study_id, number)
        with suppress(optuna.exceptions.UpdateFinishedTrialError):
            self.storage.set_trial_user_attr(trial_id, "failed", reason)
            if self.storage.set_trial_state_values(trial_id, state=TrialState.FAIL):
                settings = frozen.params or frozen.system_attrs.get("fixed_params", {})
                self.add(dict(settings), retry_of=number)

    def put_back_dead(self) -> list[int]:
        """Put back the running trials whose process is gone; returns the numbers of those of this machine."""
        dead = [trial for trial in self.running() if is_dead(trial.user_attrs.get("worker", {}))]
        for trial in dead:
            self.put_back(trial, "its process ended")
        if isinstance(self.storage, RDBStorage):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                optuna.storages.fail_stale_trials(self.study())
        return sorted(trial.number for trial in dead)

    def heartbeat(self, trial: optuna.Trial) -> AbstractContextManager[None]:
        """Return a context that gives signs of life of a running trial."""
        study_id = self.storage.get_study_id_from_name(self.name)
        trial_id = self.storage.get_trial_id_from_study_id_trial_number(study_id, trial.number)
        return _Heartbeat(self.storage, trial_id)


class _Heartbeat(AbstractContextManager[None]):
    def __init__(self, storage: BaseStorage, trial_id: int) -> None:
        self._storage = storage
        self._trial_id = trial_id
        self._stop = Event()
        self._thread = Thread(target=self._beat, name="townhall-heartbeat", daemon=True)

    def __enter__(self) -> None:
        if isinstance(self._storage, RDBStorage):
            self._thread.start()

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _beat(self) -> None:
        while True:
            # A database that is away for a moment must not end the trial; its next call will tell.
            with suppress(Exception):
                self._storage.record_heartbeat(self._trial_id)
            if self._stop.wait(HEARTBEAT_SECONDS):
                return
