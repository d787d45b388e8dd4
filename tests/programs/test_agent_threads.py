"""Agents speak in threads that all debates share."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import dspy
import pytest

from townhall.programs import asking
from townhall.programs.majority import Majority


def echo(messages, seed):
    return {"reasoning": "so", "answer": 1}


def test_threads_are_used_again(scripted_lm):
    seen = set()

    def script(messages, seed):
        seen.add(threading.current_thread().name)
        return echo(messages, seed)

    lm, engine = scripted_lm(script)
    with dspy.context(lm=lm):
        for number in range(20):
            Majority(answer=int, samples=4)(question=f"{number}?")
    assert len(engine.requests) == 80
    # A pool may start a thread while another is about to be free; without a pool there would be 80.
    assert len(seen) <= 40


def test_more_agents_than_threads_take_turns_and_twins_too(scripted_lm, monkeypatch):
    monkeypatch.setattr(asking, "_pool", ThreadPoolExecutor(2))
    lm, engine = scripted_lm(echo, cache=True, temperature=0)
    with dspy.context(lm=lm):
        found = Majority(answer=int, samples=9)(question="how many?")
    assert found.answer == 1
    assert len(engine.requests) <= 1  # at temperature 0 all samples are one, and the cache may know it from before


def test_debates_in_many_threads_share_a_small_pool(scripted_lm, monkeypatch):
    monkeypatch.setattr(asking, "_pool", ThreadPoolExecutor(3))
    lm, engine = scripted_lm(echo)
    answers = []

    def debate(number):
        with dspy.context(lm=lm):
            answers.append(Majority(answer=int, samples=5)(question=f"{number}?").answer)

    threads = [threading.Thread(target=debate, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert answers == [1] * 8
    assert len(engine.requests) == 40


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_has_threads_of_its_own(scripted_lm):
    lm, _ = scripted_lm(echo)
    with dspy.context(lm=lm):
        Majority(answer=int, samples=3)(question="before?")
        child = os.fork()
        if child == 0:
            try:
                found = Majority(answer=int, samples=3)(question="after?")
                os._exit(0 if found.answer == 1 else 1)
            except BaseException:
                os._exit(2)
        deadline = threading.Timer(30, os.kill, (child, 9))
        deadline.start()
        _, status = os.waitpid(child, 0)
        deadline.cancel()
    assert os.waitstatus_to_exitcode(status) == 0
