"""Ctrl-C, in real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

#: The console script's own code, with less patience.
SCRIPT = "import sys\nfrom townhall.cli import interrupt, main\ninterrupt.GRACE = 1.0\nsys.exit(main.main())"


@pytest.fixture
def start(folder):
    processes = []

    def run(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TOWNHALL_CACHE": str(folder / "cache")},
        )
        processes.append(process)
        return process

    yield run
    for process in processes:
        process.kill()
        process.wait()


def wait_until(condition, process):
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def interrupted(process):
    """Send Ctrl-C; return how long the process took to end, its last line and its output."""
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    return time.monotonic() - started, err.splitlines()[-1], out


def test_run_with_calls_under_way_ends_soon_and_goes_on_later(start, folder):
    command = ("evaluate", "--task", "arithmetic", "--strategy", "chain-of-thought", "--limit", "3")
    process = start(*command, "--lm", "simulated?latency=20", "--out", "run")
    wait_until((folder / "run" / "run.json").exists, process)
    time.sleep(0.3)
    took, line, _ = interrupted(process)
    assert process.returncode == 130
    assert took < 6
    assert line == "townhall: interrupted: what is finished is kept; the same command goes on where it stopped"


def test_finished_examples_are_kept(start, folder):
    command = [
        "evaluate",
        "--task",
        "arithmetic",
        "--strategy",
        "chain-of-thought",
        "--limit",
        "3",
        "--concurrency",
        "1",
    ]
    process = start(*command, "--lm", "simulated?latency=1", "--out", "run")
    records = folder / "run" / "records.jsonl"
    wait_until(lambda: records.exists() and records.read_text().count("\n") >= 1, process)
    interrupted(process)
    kept = [json.loads(line)["id"] for line in records.read_text().splitlines()]
    process = start(*command, "--lm", "simulated?latency=1", "--out", "run", "--json")
    out, _ = process.communicate(timeout=60)
    report = json.loads(out)
    assert process.returncode == 0
    assert report["n"] == 3
    assert report["usage"]["calls"] == 3
    assert [json.loads(line)["id"] for line in records.read_text().splitlines()][: len(kept)] == kept


def test_debate_ends_soon(start):
    process = start("debate", "x?", "--lm", "simulated?latency=20", "--personas", "2", "--rounds", "1")
    line = ""
    while "SIMULATED" not in line:
        line = process.stdout.readline()
        assert line, process.stderr.read()
    time.sleep(0.5)
    took, line, _ = interrupted(process)
    assert process.returncode == 130
    assert took < 6
    assert line.startswith("townhall: interrupted: replies that came in are kept")


@pytest.mark.skipif(sys.platform != "linux", reason="blocks in the C library's own lock")
def test_call_that_python_cannot_interrupt_is_left_too():
    # As an engine's call that does not come back: Python's own handler never runs.
    code = (
        "import ctypes\nfrom townhall.cli import interrupt\n"
        "interrupt.GRACE = 1.0\ninterrupt.set_hint('try again')\n"
        "library, lock = ctypes.CDLL(None), ctypes.create_string_buffer(64)\n"
        "with interrupt.watched():\n"
        "    print('in', flush=True)\n"
        "    library.pthread_mutex_lock(lock)\n"
        "    library.pthread_mutex_lock(lock)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "in\n"
        time.sleep(0.3)
        took, line, _ = interrupted(process)
    finally:
        process.kill()
    assert process.returncode == 130
    assert took < 5
    assert line == "townhall: interrupted: try again"


def test_simulated_server_ends_with_its_count(start):
    process = start("serve-simulated", "--port", "0", "--json")
    text = "".join(process.stdout.readline() for _ in range(4))
    address = json.loads(text)["api_base"]
    assert address.startswith("http://127.0.0.1:")
    _, line, _ = interrupted(process)
    assert process.returncode == 130
    assert line == "townhall: interrupted: 0 requests, 0 answered in full"
