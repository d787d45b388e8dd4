"""Majority vote over samples."""

from __future__ import annotations

import asyncio

import dspy
import pytest

from townhall.errors import InputError
from townhall.programs.majority import Majority


@pytest.fixture
def seeded(obliging):
    """A model that answers with the parity of the seed."""
    return obliging(answer=lambda inputs, seed: "even" if seed % 2 == 0 else "odd")


def test_the_most_frequent_sample_wins(scripted_lm, obliging):
    answers = iter(["a", "b", "b", "c", "b"])
    lm, _ = scripted_lm(obliging(answer=lambda inputs, seed: next(answers)))
    with dspy.context(lm=lm):
        result = Majority(samples=5)(question="Which?")
    assert result.answer == "b"
    assert {candidate.answer: candidate.votes for candidate in result.decision.candidates} == {"a": 1, "b": 3, "c": 1}
    assert not result.decision.tie


def test_samples_have_prompts_alike_and_seeds_of_their_own(scripted_lm, seeded):
    lm, engine = scripted_lm(seeded)
    with dspy.context(lm=lm):
        Majority(samples=9)(question="Which?")
    assert len({str(messages) for messages, _ in engine.requests}) == 1
    assert len({config.seed for _, config in engine.requests}) == 9


def test_fewer_samples_are_the_first_of_more_through_the_cache(scripted_lm, seeded, cache):
    lm, engine = scripted_lm(seeded, cache=True)
    with dspy.context(lm=lm):
        more = Majority(samples=6)(question="Which?")
        fewer = Majority(samples=2)(question="Which?")
    assert len(engine.requests) == 6
    assert [turn.answer for turn in fewer.transcript.turns] == [turn.answer for turn in more.transcript.turns[:2]]
    assert fewer.transcript.usage().calls == 0
    assert fewer.transcript.usage().cached == 2


@pytest.mark.parametrize("samples", [1, 5, 64])
def test_a_question_may_have_a_number_of_samples_of_its_own(samples, scripted_lm, seeded):
    lm, engine = scripted_lm(seeded)
    with dspy.context(lm=lm):
        result = Majority(samples=3)(question="Which?", samples=samples)
        asyncio.run(Majority(samples=3).acall(question="Which?", samples=samples))
    assert len(engine.requests) == 2 * samples
    assert result.transcript.models == ["scripted"] * samples
    assert result.transcript.question == "Which?"


@pytest.mark.parametrize("samples", [0, 65])
def test_samples_out_of_bounds_are_an_error(samples, scripted_lm, seeded):
    with pytest.raises(InputError, match=rf"^samples is {samples}"):
        Majority(samples=samples)
    lm, engine = scripted_lm(seeded)
    with dspy.context(lm=lm), pytest.raises(InputError, match=rf"^samples is {samples}; it must be from 1 to 64$"):
        Majority()(question="Which?", samples=samples)
    assert not engine.requests


def test_the_decision_rule_is_a_setting(scripted_lm, obliging):
    def vote(rule):
        answers = iter(["a", "a", "b"])
        lm, _ = scripted_lm(obliging(answer=lambda inputs, seed: next(answers)))
        with dspy.context(lm=lm):
            return Majority(samples=3, decision=rule)(question="Which?")

    assert vote("absolute-majority").answer == "a"
    assert vote("unanimity").answer is None
    assert vote("unanimity").decision.rule == "unanimity"


def test_an_unknown_decision_rule_is_an_error_that_lists_all():
    with pytest.raises(InputError, match=r"decision is 'most': no decision rule 'most'; known: .*majority"):
        Majority(decision="most")


def test_models_take_turns(scripted_lm, obliging):
    first, _ = scripted_lm(obliging(answer="a"), model="first")
    second, _ = scripted_lm(obliging(answer="b"), model="second")
    result = Majority(samples=3, lms=[first, second])(question="Which?")
    assert result.transcript.models == ["first", "second", "first"]
    assert result.answer == "a"


def test_blank_samples_do_not_vote(scripted_lm, obliging):
    answers = iter([None, None, "b"])
    lm, _ = scripted_lm(obliging(answer=lambda inputs, seed: next(answers)))
    with dspy.context(lm=lm):
        result = Majority(samples=1)(question="Which?")
        assert (result.answer, result.decision.abstentions) == (None, 1)
        assert Majority(samples=1)(question="Which?").answer == "b"
