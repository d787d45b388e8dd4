"""Runs that are killed: nothing that was received is paid again, nothing that was written is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from townhall.errors import InputError, RunError
from townhall.evaluation.assembly import program
from townhall.evaluation.run import Budget, evaluate, load_run
from townhall.evaluation.run_folder import RunFolder
from townhall.models.server import SimulatedServer
from townhall.models.simulation import Fault, SimulatedBehaviour

SCRIPT = """
import sys
from townhall.evaluation.assembly import program
from townhall.evaluation.run import evaluate
from townhall.models.resolve import lm
from townhall.tasks.access import task

url, out = sys.argv[1:]
sums = task("arithmetic", count=6, seed=3)
run = evaluate(
    program(sums, "town-hall", personas=3, rounds=2, vote_when_unanimous=True), sums,
    split="all", lm=lm("simulated-model", api_base=url, temperature=0.7), out=out, concurrency=4,
)
print(run.summary.status, run.usage.calls, run.usage.cached, run.summary.n)
"""
#: Naming the personas, three arguments, three rebuttals, three votes.
CALLS = 6 * 10


def client(server, out, reply_folder):
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, server.url, str(out)],
        env={**os.environ, "TOWNHALL_CACHE": str(reply_folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


@pytest.mark.parametrize("calls_before", [7, 38])
def test_a_killed_process_is_resumed_without_making_a_finished_call_again(calls_before, tmp_path, reply_folder):
    def stall_from_then_on(number, body):
        return Fault("stall", 3600) if number > calls_before else None

    out = tmp_path / "run"
    with SimulatedServer(faults=stall_from_then_on) as server:
        first = client(server, out, reply_folder)
        # All finished replies are in, and every place is taken by a call that never will be.
        wait_for(lambda: server.completed == calls_before and server.requests > calls_before)
        wait_for(lambda: server.requests == calls_before + 4 or _quiet(server))
        first.send_signal(signal.SIGKILL)
        first.communicate()
        stalled = Counter(map(_key, server.bodies[calls_before:]))
        server.plan = lambda number, body: None
        second = client(server, out, reply_folder)
        printed, problems = second.communicate(timeout=120)
        assert printed.split() == ["complete", str(CALLS), "0", "6"], problems
        assert server.completed == CALLS
        repeated = Counter(map(_key, server.bodies)) - stalled
        assert set(repeated.values()) == {1}
        assert len(repeated) == CALLS
        # A third start makes no call at all.
        requests = server.requests
        third = client(server, out, reply_folder)
        assert third.communicate(timeout=120)[0].split() == ["complete", str(CALLS), "0", "6"]
        assert server.requests == requests


def _key(body):
    return json.dumps(body, sort_keys=True)


def _quiet(server):
    before = server.requests
    time.sleep(0.5)
    return server.requests == before


def test_a_process_killed_at_any_moment_repeats_only_calls_in_flight(tmp_path, reply_folder):
    out = tmp_path / "run"
    kills = 0
    with SimulatedServer(behaviour=SimulatedBehaviour(latency=0.02)) as server:
        for moment in (5, 23, 41):
            running = client(server, out, reply_folder)
            wait_for(lambda moment=moment: server.requests >= moment)
            running.send_signal(signal.SIGKILL)
            running.communicate()
            kills += 1
        printed, problems = client(server, out, reply_folder).communicate(timeout=120)
        assert printed.split()[0] == "complete", problems
        assert printed.split()[3] == "6"
        assert server.requests <= CALLS + 4 * kills
    run = load_run(out)
    assert len(run.records) == 6
    assert len(run.info.sessions) == kills + 1


def small_run(sums, adder, tmp_path, **settings):
    task = sums(4)
    lm, engine = adder(cache=True)
    hall = program(task, "chain-of-thought", shots=0)
    run = evaluate(hall, task, split="all", order="file", lm=lm, out=tmp_path / "run", concurrency=1, **settings)
    return task, lm, engine, hall, run


@pytest.mark.parametrize("file", ["records.jsonl", "usage.jsonl"])
def test_a_line_torn_at_any_byte_is_dropped_and_its_example_done_again_for_free(file, sums, adder, tmp_path):
    task, lm, engine, hall, whole = small_run(sums, adder, tmp_path)
    path = tmp_path / "run" / file
    data = path.read_bytes()
    start = data.rfind(b"\n", 0, len(data) - 1) + 1
    for cut in (start + 1, (start + len(data)) // 2, len(data) - 2, len(data) - 1):
        path.write_bytes(data[:cut])
        (tmp_path / "run" / "summary.json").unlink(missing_ok=True)
        partial = load_run(tmp_path / "run")
        # The last line lacks its newline only: it is whole, and reading it is no mistake.
        assert len(partial.records) in ((3, 4) if cut == len(data) - 1 else (3,) if file == "records.jsonl" else (4,))
        run = evaluate(hall, task, split="all", order="file", lm=lm, out=tmp_path / "run", concurrency=1)
        assert run.summary.status == "complete"
        assert [record.answer for record in run.records] == [record.answer for record in whole.records]
        assert run.scores == whole.scores
        assert len(engine.requests) == 4


def test_zeros_left_by_a_power_cut_are_dropped(sums, adder, tmp_path):
    task, lm, engine, hall, _ = small_run(sums, adder, tmp_path)
    path = tmp_path / "run" / "records.jsonl"
    data = path.read_bytes()
    path.write_bytes(data[: data.rfind(b"\n", 0, len(data) - 1) + 1] + b"\0" * 300)
    run = evaluate(hall, task, split="all", order="file", lm=lm, out=tmp_path / "run", concurrency=1)
    assert run.summary.n == 4
    assert len(engine.requests) == 4


def test_a_damaged_line_in_the_middle_is_named(sums, adder, tmp_path):
    small_run(sums, adder, tmp_path)
    path = tmp_path / "run" / "records.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], '{"index": "one"}\n', *lines[2:]]))
    with pytest.raises(InputError, match=r"records\.jsonl, line 2: damaged"):
        load_run(tmp_path / "run")


def test_a_damaged_run_file_is_named(sums, adder, tmp_path):
    small_run(sums, adder, tmp_path)
    (tmp_path / "run" / "run.json").write_text('{"task": 3}')
    with pytest.raises(InputError, match=r"run\.json, field .*: damaged"):
        load_run(tmp_path / "run")
    with pytest.raises(InputError, match="no such folder"):
        load_run(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"it has no run\.json"):
        load_run(tmp_path)


def test_a_run_of_a_later_version_is_refused(sums, adder, tmp_path):
    small_run(sums, adder, tmp_path)
    path = tmp_path / "run" / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format_version": 99}))
    with pytest.raises(InputError, match="format version 99 is later"):
        load_run(tmp_path / "run")


def test_a_run_that_was_killed_has_a_summary_of_what_there_is(sums, adder, tmp_path):
    small_run(sums, adder, tmp_path, budget=Budget(calls=3))
    (tmp_path / "run" / "summary.json").unlink()
    found = load_run(tmp_path / "run")
    assert found.summary.status == "interrupted"
    assert "start it again" in found.summary.reason
    assert (found.summary.n, found.summary.total) == (3, 4)
    assert found.usage.calls == 3


def test_two_processes_do_not_write_one_run(sums, adder, tmp_path):
    with RunFolder(tmp_path / "run"), pytest.raises(RunError, match="another process is writing"):
        RunFolder(tmp_path / "run")
    with RunFolder(tmp_path / "run"):
        pass


def test_the_same_content_at_another_place_goes_on(sums, adder, tmp_path):
    task, lm, engine, hall, _ = small_run(sums, adder, tmp_path, budget=Budget(calls=2))
    moved = type(task)(task.data.rename(tmp_path / "moved.jsonl"))
    run = evaluate(hall, moved, split="all", order="file", lm=lm, out=tmp_path / "run", concurrency=1)
    assert run.summary.status == "complete"
    assert len(engine.requests) == 4
