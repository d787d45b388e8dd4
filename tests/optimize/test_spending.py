"""Counting, limiting and never paying twice: the watch that a compilation's programs carry with them."""

from __future__ import annotations

import inspect
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import dspy
import pytest

from townhall.errors import BudgetExceededError
from townhall.evaluation.budget import Budget
from townhall.optimize import spending as module
from townhall.optimize.spending import PROMPTS, RepeatedDebateError, Spending
from townhall.programs.town_hall import TownHall


@pytest.fixture
def slow_lm(scripted_lm):
    """A model that answers when it is told to."""
    gate = threading.Event()

    def script(messages, seed):
        gate.wait(10)
        return {"reasoning": "r", "answer": 4}

    lm, engine = scripted_lm(script)
    return lm, engine, gate


def test_a_debate_that_is_started_again_while_it_goes_on_is_refused(small, slow_lm, monkeypatch):
    """DSPy's executor starts a slow item anew after 120 seconds; the model must not be asked twice."""
    monkeypatch.setattr(module, "REPEATED_AFTER_SECONDS", 0.05)
    lm, engine, gate = slow_lm
    program = Spending(None, 8).watch(small("single"))
    with dspy.context(lm=lm), ThreadPoolExecutor() as pool:
        program.set_lm(lm)
        first = pool.submit(program, question="Q")
        while not engine.requests:
            time.sleep(0.005)
        time.sleep(0.1)
        with pytest.raises(RepeatedDebateError):
            program(question="Q")
        gate.set()
        assert first.result().answer == 4
    assert len(engine.requests) == 1


def test_the_same_question_twice_in_a_batch_is_debated_one_after_the_other(small, slow_lm):
    lm, engine, gate = slow_lm
    program = Spending(None, 8).watch(small("single"))
    program.set_lm(lm)
    with ThreadPoolExecutor() as pool:
        both = [pool.submit(program, question="Q") for _ in range(2)]
        time.sleep(0.1)
        assert len(engine.requests) == 1
        gate.set()
        assert [result.result().answer for result in both] == [4, 4]


def test_copies_of_a_watched_program_are_watched_and_look_like_the_strategy():
    spending = Spending(None, 8)
    watched = spending.watch(TownHall(answer=int))
    copied = watched.deepcopy()
    assert type(copied) is type(watched)
    assert isinstance(copied, TownHall)
    assert "class TownHall(Strategy)" in inspect.getsource(type(copied))
    assert type(TownHall(answer=int)) is TownHall


def test_a_budget_stops_debates_and_prompt_writers_alike(small, scripted_lm):
    lm, engine = scripted_lm(lambda messages, seed: {"reasoning": "r", "answer": 1})
    spending = Spending(Budget(calls=3), 8)
    program = spending.watch(small("single"))
    writer = spending.metered(lm)
    with dspy.context(lm=lm):
        program(question="one")
        assert writer("write a prompt")
        program(question="two")
        with pytest.raises(BudgetExceededError):
            program(question="three")
        with pytest.raises(BudgetExceededError):
            writer.copy(temperature=1.0)("write another")
    assert len(engine.requests) == 3
    assert spending.by_role["solve"].calls == 2
    assert spending.by_role[PROMPTS].calls == 1
    assert spending.by_role[PROMPTS].prompt_tokens == 100


def test_each_of_several_completions_is_a_call(scripted_lm):
    lm, engine = scripted_lm(lambda messages, seed: {"text": "x"})
    spending = Spending(None, 8)
    spending.metered(lm)("write prompts", n=3)
    assert len(engine.requests) == 3
    assert spending.by_role[PROMPTS].calls == 3


def test_no_more_calls_are_in_flight_than_allowed(small, scripted_lm):
    running, most, lock = 0, 0, threading.Lock()

    def script(messages, seed):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1
        return {"reasoning": "r", "answer": 1}

    lm, _ = scripted_lm(script)
    program = Spending(None, 3).watch(small("majority", samples=8))
    with dspy.context(lm=lm):
        program(question="Q")
    assert most == 3
