"""Fixtures of the optimize tests: a small task, a simulated model that knows its answers, an own cache."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import dspy
import pytest

import townhall
from townhall.evaluation.assembly import program as assemble
from townhall.models.simulated import AsyncSimulatedEngine, SimulatedEngine
from townhall.models.simulation import SimulatedBehaviour
from townhall.tasks.base import TASKS

#: Settings that keep debates of tests short.
SMALL = {
    "town-hall": {"personas": 2, "rounds": 2},
    "town-hall-prompt": {"personas": 2, "rounds": 2},
    "society": {"agents": 2, "rounds": 2},
    "majority": {"samples": 2},
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Replies of one test must not answer another."""
    monkeypatch.setenv("TOWNHALL_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def arithmetic():
    return townhall.task("arithmetic", count=60)


@pytest.fixture
def model_of():
    """Return `make(task, accuracy) -> lm`, a simulated model that knows a task's answers."""

    def make(task, accuracy=0.7, **behaviour):
        answers = {example.question: example.gold for example in task.examples}
        engine = SimulatedEngine("simulated", SimulatedBehaviour(accuracy=accuracy, answers=answers, **behaviour))
        return dspy.LM(
            "simulated/known",
            engine=engine,
            async_engine=AsyncSimulatedEngine(engine),
            temperature=0.7,
            cache=False,
        )

    return make


@pytest.fixture
def small(arithmetic):
    """Return `make(strategy, **settings) -> program` for short debates on arithmetic."""

    def make(strategy, **settings):
        return assemble(arithmetic, strategy, **{**SMALL.get(strategy, {}), **settings})

    return make


@pytest.fixture
def register_task():
    """Return a function that registers a task class for the length of a test."""
    added = []

    def register(kind):
        TASKS.names()
        TASKS._items[kind.name] = kind
        added.append(kind.name)
        return kind

    yield register
    for name in added:
        del TASKS._items[name]


@pytest.fixture(scope="session")
def surface():
    """The search benchmark as a module: a simulated society of known accuracy, its task, its model, its stand-in."""
    path = Path(__file__).parents[2] / "benchmarks" / "search.py"
    spec = importlib.util.spec_from_file_location("search_benchmark", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def surface_task(surface):
    return surface.SurfaceTask()


@pytest.fixture
def fast_tune(surface, surface_task, tmp_path, monkeypatch):
    """Return `tune` on the known surface, with the engine's stand-in; `noise=` as in the benchmark."""
    from townhall.optimize import search

    def tune(noise=0.0, **settings):
        monkeypatch.setattr(search, "evaluate", surface.StandIn(noise))
        settings = {"folder": tmp_path / "studies", "lm": surface.model(), "limit": 30, **settings}
        return search.tune(surface_task, settings.pop("strategy", surface.SurfaceSociety()), **settings)

    return tune


#: Stands in the URL that the fixture `postgres` gives, and nowhere else.
PASSWORD = "a-secret-word"


@pytest.fixture(scope="session")
def postgres():
    """The URL of a PostgreSQL server of the tests' own, with a password; the test skips where there is none."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    initdb = str(programs[-1]) if programs else shutil.which("initdb")
    if initdb is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    control = str(Path(initdb).with_name("pg_ctl"))
    user: list[str] = []
    folder = Path(tempfile.mkdtemp(prefix="townhall-postgres-"))
    if os.geteuid() == 0:  # the server refuses to run as root
        try:
            owner = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("there is no user 'postgres' to run the server as")
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        user = ["runuser", "-u", "postgres", "--"]
    (folder / "password").write_text(PASSWORD)
    (folder / "password").chmod(0o644)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "data"

    def run(*command):
        done = subprocess.run([*user, *command], cwd="/", capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    try:
        run(
            initdb, "-D", str(data), "-U", "ann", f"--pwfile={folder / 'password'}", "--auth=scram-sha-256",
            "--no-sync", "-E", "UTF8", "--locale=C",
        )  # fmt: skip
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        run(control, "-D", str(data), "-w", "-t", "60", "-l", str(data / "log"), "-o", options, "start")
        try:
            yield f"postgresql://ann:{PASSWORD}@127.0.0.1:{port}/postgres"
        finally:
            run(control, "-D", str(data), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
