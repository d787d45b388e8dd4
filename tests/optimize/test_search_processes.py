"""Searches of several processes, killed ones among them, on every kind of storage."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter

import optuna
import pytest

from townhall.errors import InputError
from townhall.models.server import SimulatedServer
from townhall.models.simulation import Fault
from townhall.optimize.search import tune
from townhall.optimize.study import read_trials
from townhall.optimize.trial_queue import open_storage

#: One process that searches. It prints the numbers of the trials that it finished, and waits for a line where told to.
SCRIPT = """
import json, sys
from townhall.models.resolve import lm
from townhall.optimize.search import SearchProgress, tune
from townhall.tasks.access import task

class Told(SearchProgress):
    def finished(self, result, best):
        print(result.number, flush=True)
        if result.number == wait_after:
            sys.stdin.readline()

settings = json.loads(sys.argv[1])
url, wait_after = settings.pop("url"), settings.pop("wait_after", None)
study = tune(
    task("arithmetic", count=60, seed=3), "society", lm=lm("simulated-model", api_base=url, temperature=0.7),
    progress=Told(), concurrency=2, **settings,
)
"""


@pytest.fixture
def worker(tmp_path):
    """Return `start(server, **settings) -> process`; those that still run are ended after the test."""
    started = []

    def start(server, **settings):
        settings = {"url": server.url, "folder": str(tmp_path / "studies"), "name": "s", **settings}
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, json.dumps(settings)],
            env={**os.environ, "TOWNHALL_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ended(process, seconds=120):
    out, problems = process.communicate(timeout=seconds)
    assert process.returncode == 0, problems
    return [int(line) for line in out.split()]


def wait_for(condition, seconds=90.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def trials_of(storage, folder):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return read_trials(optuna.load_study(study_name="s", storage=open_storage(storage, folder)))


def key(body):
    return json.dumps(body, sort_keys=True)


@pytest.mark.parametrize("storage", [None, "journal"], ids=["sqlite", "journal"])
def test_a_search_killed_in_its_third_trial_is_resumed_without_paying_twice(worker, tmp_path, storage):
    """Five trials in all: five finish, the killed one is marked failed, and no reply that came in is asked again."""
    settings = {"trials": 5, "limit": 4, "agents": "2:9", "rounds": "2:2", "pruner": "none", "storage": storage}
    folder = tmp_path / "studies" / "s"
    with SimulatedServer() as server:
        first = worker(server, **settings, wait_after=1)
        assert [int(first.stdout.readline()) for _ in range(2)] == [0, 1]
        done = server.requests
        # In the third trial, after some more replies, the server answers no more.
        server.plan = lambda number, body: Fault("stall", 3600) if number > done + 3 else None
        first.stdin.write("\n")
        first.stdin.flush()
        wait_for(lambda: server.completed == done + 3 and server.requests >= done + 4)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        stalled = Counter(map(key, server.bodies)) - Counter(map(key, server.bodies[: done + 3]))
        assert [trial.state for trial in trials_of(storage, folder)][:3] == ["complete", "complete", "running"]
        server.plan = lambda number, body: None
        assert len(ended(worker(server, **settings))) == 3
        asked = Counter(map(key, server.bodies)) - stalled
        trials = trials_of(storage, folder)
    assert Counter(trial.state for trial in trials) == {"complete": 5, "failed": 1}
    killed = trials[2]
    assert (killed.state, killed.problem) == ("failed", "its process ended")
    again = next(trial for trial in trials if trial.run == 2 and trial.state == "complete")
    assert again.settings == killed.settings
    assert set(asked.values()) == {1}
    # The account of the trials is the server's: what the killed process paid for is in it.
    paid = sum(trial.calls for trial in trials)
    assert paid <= server.completed <= paid + len(stalled)


def _running(storage, folder, pid):
    study = optuna.load_study(study_name="s", storage=open_storage(storage, folder))
    running = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,))
    return any(trial.user_attrs.get("worker", {}).get("pid") == pid for trial in running)


@pytest.mark.parametrize(
    ("storage", "trials"), [("sqlite", 8), ("journal", 8), ("postgres", 20)], ids=["sqlite", "journal", "postgres"]
)
def test_two_processes_share_a_study_and_one_may_die(worker, tmp_path, request, storage, trials):
    """All trials in all, none of them twice, though a process is killed and started again."""
    url = {"sqlite": None, "journal": "journal"}.get(storage, storage)
    if storage == "postgres":
        url = request.getfixturevalue("postgres")
    settings = {
        "trials": trials, "limit": 2, "agents": "2:9", "rounds": "2:4", "pruner": "none", "sampler": "random",
        "storage": url,
    }  # fmt: skip
    with SimulatedServer() as server:
        first = worker(server, **settings, wait_after=0)
        first.stdout.readline()  # there is a study now
        helper = worker(server, **settings, worker=True)
        helper.stdout.readline()  # it has finished a trial, and the server answers it no more in the next one
        server.plan = lambda number, body: Fault("stall", 3600)
        wait_for(lambda: server.requests > server.completed and _running(url, tmp_path / "studies" / "s", helper.pid))
        helper.send_signal(signal.SIGKILL)
        helper.communicate()
        server.plan = lambda number, body: None
        again = worker(server, **settings, worker=True)
        first.stdin.write("\n")
        first.stdin.flush()
        by_first, by_again = ended(first), ended(again)
    found = trials_of(url, tmp_path / "studies" / "s")
    states = Counter(trial.state for trial in found)
    assert states["complete"] == trials
    assert states["failed"] == 1
    assert states["running"] == states["waiting"] == 0
    settings = [tuple(trial.settings.values()) for trial in found if trial.state == "complete"]
    assert len(set(settings)) == trials
    assert not set(by_first) & set(by_again)
    if storage == "postgres":
        _no_password(tmp_path)


def _no_password(tmp_path):
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert b"a-secret-word" not in file.read_bytes(), file
    written = json.loads((tmp_path / "studies" / "s" / "study.json").read_text())
    assert written["storage"].startswith("postgresql://ann:***@127.0.0.1:")


def test_a_worker_may_be_there_before_the_study(worker, tmp_path):
    settings = {"trials": 4, "limit": 2, "agents": "2:5", "rounds": "1:1", "sampler": "random", "pruner": "none"}
    with SimulatedServer() as server:
        helper = worker(server, **settings, worker=True)
        wait_for(lambda: (tmp_path / "studies" / "s" / "study.db").exists())
        first = worker(server, **settings)
        assert len(ended(first) + ended(helper)) == 4


def test_two_processes_may_begin_a_study_at_the_same_moment(worker, tmp_path):
    settings = {"trials": 6, "limit": 2, "agents": "2:9", "rounds": "1:2", "sampler": "random", "pruner": "none"}
    with SimulatedServer() as server:
        both = [worker(server, **settings) for _ in range(2)]
        numbers = [number for process in both for number in ended(process)]
    assert len(numbers) == len(set(numbers)) == 6
    assert sum(trial.state == "complete" for trial in trials_of(None, tmp_path / "studies" / "s")) == 6


def test_a_search_on_a_database_keeps_its_password_out_of_messages(postgres, surface, surface_task, tmp_path):
    def run(storage=postgres, limit=2):
        return tune(
            surface_task, surface.SurfaceSociety(), trials=1, limit=limit, lm=surface.model(), folder=tmp_path,
            name="words", storage=storage,
        )  # fmt: skip

    study = run()
    assert "a-secret-word" not in study.storage
    assert "a-secret-word" not in repr(study)
    for broken in (postgres.replace("a-secret-word", "another-word"), postgres.replace("/postgres", "/nowhere", 1)):
        with pytest.raises(InputError) as refused:
            run(storage=broken)
        assert "word@" not in str(refused.value)
        assert "cannot be opened" in str(refused.value)
    with pytest.raises(InputError) as refused:
        run(limit=3)
    assert "a-secret-word" not in str(refused.value)


def test_optuna_dashboard_opens_the_storage(surface, surface_task, tmp_path):
    pytest.importorskip("optuna_dashboard")
    study = tune(
        surface_task,
        surface.SurfaceSociety(),
        trials=2,
        limit=2,
        lm=surface.model(),
        objectives=("score", "calls"),
        folder=tmp_path,
        name="seen",
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable, "-c", "from optuna_dashboard._cli import main; main()", "--port", str(port),
        f"sqlite:///{study.folder.resolve()}/study.db",
    ]  # fmt: skip
    dashboard = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        found = {}

        def answers():
            assert dashboard.poll() is None
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/studies/1?after=0", timeout=10) as reply:
                    found.update(json.load(reply))
            except OSError:
                return False
            return True

        wait_for(answers)
    finally:
        dashboard.kill()
        dashboard.wait()
    assert found["name"] == "seen"
    assert [trial["state"] for trial in found["trials"]] == ["Complete", "Complete"]
    stored = optuna.load_study(study_name="seen", storage=open_storage(None, study.folder))
    assert stored.metric_names == ["score", "calls"]
