"""The queue of trials in the storage: how many there are, who has one, what happens to those of the dead."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import optuna
import pytest
from optuna.trial import TrialState

from townhall.errors import InputError
from townhall.optimize import trial_queue
from townhall.optimize.trial_queue import TrialQueue, is_dead, open_storage, this_process, without_password


@pytest.fixture(autouse=True)
def quiet_optuna():
    optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture(params=[None, "journal"], ids=["sqlite", "journal"])
def queue_of(request, tmp_path):
    """Return `make() -> queue` on a storage of this test, opened anew each time as by another process."""
    (tmp_path / "study").mkdir()

    def make():
        storage = open_storage(request.param, tmp_path / "study")
        optuna.create_study(study_name="s", storage=storage, direction="maximize", load_if_exists=True)
        return TrialQueue("s", storage, tmp_path / "lock")

    return make


def states(queue):
    return [trial.state.name for trial in queue.trials()]


def test_it_is_filled_up_to_the_number_asked_for(queue_of):
    queue = queue_of()
    queue.fill(3, [{"x": 1}])
    assert states(queue) == ["WAITING"] * 3
    assert [trial.system_attrs["fixed_params"] for trial in queue.trials()] == [{"x": 1}, {}, {}]
    queue.fill(3)
    queue_of().fill(3)
    assert len(queue.trials()) == 3
    queue.fill(5)
    assert len(queue_of().trials()) == 5


def test_more_than_asked_for_are_withdrawn(queue_of):
    queue = queue_of()
    queue.fill(5)
    first = queue.claim()
    queue.fill(2)
    assert states(queue) == ["RUNNING", "WAITING", "FAIL", "FAIL", "FAIL"]
    assert [trial.number for trial in queue.counted()] == [first, 1]
    queue.fill(1)
    queue.fill(0)  # what runs goes on
    assert states(queue)[:2] == ["RUNNING", "FAIL"]


def test_a_trial_is_claimed_once(queue_of):
    queue_of().fill(12)
    queues = [queue_of() for _ in range(4)]

    def claim_all(queue):
        return list(iter(queue.claim, None))

    with ThreadPoolExecutor(4) as pool:
        claimed = [number for numbers in pool.map(claim_all, queues) for number in numbers]
    assert sorted(claimed) == list(range(12))
    assert queue_of().claim() is None


def test_finished_and_failed_trials_and_repetitions_count_as_they_should(queue_of):
    queue = queue_of()
    queue.fill(4)
    done, repeated, refused, _ = (queue.claim() for _ in range(4))
    assert queue.finish(done, [0.5], scores={"0": 0.5})
    assert queue.finish(repeated, [0.5], duplicate_of=done)
    queue.refuse(refused, "no such thing")
    assert [trial.number for trial in queue_of().counted()] == [done, 3]
    queue.fill(4)
    assert len(queue.waiting()) == 2


def test_a_trial_that_is_put_back_keeps_its_settings_and_its_folder(queue_of):
    queue = queue_of()
    queue.fill(1, [{"x": 2}])
    number = queue.claim()
    queue.trial(number, optuna.samplers.RandomSampler(seed=1)).suggest_int("x", 1, 9)
    queue.put_back(number, "budget")
    again = queue_of().claim()
    assert queue.trials(TrialState.FAIL)[0].user_attrs["failed"] == "budget"
    assert queue.trial(again, optuna.samplers.RandomSampler(seed=1)).suggest_int("x", 1, 9) == 2
    assert queue.folder(again) == number
    queue.put_back(again, "budget")
    assert queue.folder(queue.claim()) == number


def test_a_trial_that_was_put_back_meanwhile_is_not_finished(queue_of):
    queue = queue_of()
    queue.fill(1)
    number = queue.claim()
    queue_of().put_back(number, "its process ended")
    assert not queue.finish(number, [0.9])
    assert states(queue) == ["FAIL", "WAITING"]
    # Nor is it put back twice.
    queue.put_back(number, "error")
    assert states(queue) == ["FAIL", "WAITING"]


def test_a_dead_process_of_this_machine_is_seen_at_once(queue_of, monkeypatch):
    queue = queue_of()
    queue.fill(2)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with monkeypatch.context() as patch:
        patch.setattr(trial_queue, "this_process", lambda: {**this_process(), "pid": gone.pid})
        dead = queue.claim()
    mine = queue.claim()
    assert queue_of().put_back_dead() == [dead]
    assert [trial.state.name for trial in queue.trials()] == ["FAIL", "RUNNING", "WAITING"]
    assert mine == 1
    assert queue_of().put_back_dead() == []


def test_a_silent_process_of_another_machine_counts_as_dead_after_a_while(queue_of, monkeypatch):
    queue = queue_of()
    queue.fill(1)
    with monkeypatch.context() as patch:
        patch.setattr(trial_queue, "this_process", lambda: {"host": "elsewhere", "pid": 1, "started": "1"})
        number = queue.claim()
    watcher = queue_of()
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    assert watcher.put_back_dead() == []
    now[0] += 59
    assert watcher.put_back_dead() == []
    queue.storage.set_trial_user_attr(queue._id(number), "alive", 7)
    now[0] += 2
    assert watcher.put_back_dead() == []  # a sign of life
    now[0] += 61
    assert watcher.put_back_dead() == [number]


def test_a_running_trial_gives_signs_of_life(queue_of):
    queue = queue_of()
    queue.fill(1)
    number = queue.claim()
    with queue.heartbeat(number):
        end = time.monotonic() + 20
        while "alive" not in queue_of().running()[0].user_attrs:
            assert time.monotonic() < end
    assert queue.finish(number, [1.0])


def test_who_is_dead():
    me = this_process()
    assert not is_dead(me)
    assert not is_dead({**me, "host": "elsewhere", "pid": 999_999_999})
    assert not is_dead({})
    assert is_dead({**me, "pid": 4_194_305})
    # Another process has got the number of the one that ended.
    assert is_dead({**me, "started": "0"})
    assert not is_dead({**this_process(), "pid": os.getppid(), "started": trial_queue._started(os.getppid())})


def test_storages_are_named_without_their_password():
    assert without_password(None) == "study.db"
    assert without_password("journal") == "journal"
    assert without_password("postgresql://ann:secret@host:5433/db") == "postgresql://ann:***@host:5433/db"
    assert "secret" not in without_password("post gres://ann:secret@host/db")
    assert "secret" not in without_password("postgresql://ann:secret@host:port/db")


@pytest.mark.parametrize(
    ("storage", "problem"),
    [
        ("studies.db", "give a database URL, a path that ends in .journal, or 'journal'"),
        ("nosuch://host/db", "storage nosuch://host/db cannot be opened: "),
        ("postgresql://ann:secret@127.0.0.1:1/db", r"storage postgresql://ann:\*\*\*@127.0.0.1:1/db cannot be opened"),
        ("sqlite:////nowhere/at/all.db", "cannot be opened: "),
    ],
)
def test_storages_that_cannot_be_opened_say_why(tmp_path, storage, problem):
    with pytest.raises(InputError, match=problem) as refused:
        open_storage(storage, tmp_path)
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_journal_can_have_a_path_of_its_own(tmp_path):
    open_storage(str(tmp_path / "deep" / "trials.journal"), tmp_path)
    assert (tmp_path / "deep").is_dir()
