"""Fixtures of the optimize tests: a small task, a simulated model that knows its answers, an own cache."""

from __future__ import annotations

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
