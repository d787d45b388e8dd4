from __future__ import annotations

import dspy
import pytest

from townhall.evaluation.accounting import accounted, only_cached, only_paid
from townhall.evaluation.assembly import program
from townhall.evaluation.fingerprints import content_hash, examples_fingerprint, program_fingerprint
from townhall.signatures.transcript import Usage


def test_equal_programs_have_one_fingerprint():
    first, second = (program("arithmetic", "town-hall", personas=3) for _ in range(2))
    assert program_fingerprint(first) == program_fingerprint(second)


def test_a_programs_shape_is_not_its_prompts():
    assert program_fingerprint(program("arithmetic", "town-hall", personas=3)) == program_fingerprint(
        program("arithmetic", "town-hall", personas=5, rounds=1)
    )


@pytest.mark.parametrize("change", ["instructions", "description", "demo", "answer type", "config"])
def test_whatever_reaches_the_model_changes_the_fingerprint(change):
    before = program_fingerprint(program("arithmetic", "town-hall"))
    hall = program("gsm8k" if change == "answer type" else "arithmetic", "town-hall")
    if change == "answer type":
        same_demos = program("arithmetic", "town-hall")
        for name, predictor in hall.named_predictors():
            predictor.demos = dict(same_demos.named_predictors())[name].demos
    if change == "instructions":
        hall.vote.signature = hall.vote.signature.with_instructions("Vote wisely.")
    elif change == "description":
        hall.vote.signature = hall.vote.signature.with_updated_fields("reason", desc="one word")
    elif change == "demo":
        hall.argue.demos = [*hall.argue.demos, dspy.Example(question="q", persona="p", argument="a", answer=1)]
    elif change == "config":
        hall.argue.config = {"temperature": 0.1}
    assert program_fingerprint(hall) != before


def test_examples_are_known_by_content_and_order(sums):
    examples = sums(3).examples
    assert examples_fingerprint(examples) == examples_fingerprint(list(examples))
    assert examples_fingerprint(examples) != examples_fingerprint(examples[::-1])
    assert content_hash({"a": 1, "b": 2}) == content_hash({"b": 2, "a": 1})


def test_a_reply_paid_by_an_earlier_attempt_counts_once():
    paid = Usage(calls=10, prompt_tokens=1000, completion_tokens=100, cost=0.5, seconds=3.0)
    # The last attempt was served six of those ten, three that others had paid for, and made four calls itself.
    attempt = Usage(
        calls=4,
        prompt_tokens=400,
        completion_tokens=40,
        cost=0.2,
        cached=9,
        cached_prompt_tokens=900,
        cached_completion_tokens=90,
        cached_cost=0.45,
    )
    found = accounted(paid, attempt)
    assert (found.calls, found.cached) == (10, 3)
    assert (found.prompt_tokens, found.cached_prompt_tokens) == (1000, 300)
    assert (found.completion_tokens, found.cached_completion_tokens) == (100, 30)
    assert found.cost == 0.5
    assert found.cached_cost == pytest.approx(0.15)


def test_an_attempt_that_took_less_than_was_paid_was_served_nothing():
    found = accounted(Usage(calls=10, prompt_tokens=1000), Usage(calls=4, prompt_tokens=400))
    assert (found.calls, found.cached, found.cached_prompt_tokens) == (10, 0, 0)


def test_unknown_costs_stay_unknown():
    assert accounted(Usage(calls=1, cost=None), Usage(calls=1, cost=None)).cost is None
    assert accounted(Usage(calls=1, cost=None), Usage(cached=1, cached_cost=None)).cached_cost is None


def test_paid_and_cached_are_told_apart():
    usage = Usage(calls=2, prompt_tokens=20, cached=3, cached_prompt_tokens=30, cached_cost=0.1)
    assert only_paid(usage) == Usage(calls=2, prompt_tokens=20)
    assert only_cached(usage) == Usage(cached=3, cached_prompt_tokens=30, cached_cost=0.1)
