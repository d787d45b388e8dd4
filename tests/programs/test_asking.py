"""Asking agents: samples, order, bad replies, errors, accounting, observers."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time

import dspy
import pytest
from dspy.utils.exceptions import LMError

from townhall.errors import BudgetExceededError
from townhall.programs.asking import RETRY_TEMPERATURE, sample_id
from townhall.programs.majority import Majority
from townhall.programs.observer import OBSERVER, Observer
from townhall.programs.single import Single
from townhall.programs.society import Society


def seeds(engine):
    return [config.seed for _, config in engine.requests]


@contextlib.contextmanager
def observed(observer):
    token = OBSERVER.set(observer)
    try:
        yield observer
    finally:
        OBSERVER.reset(token)


CALLS = [lambda program, **inputs: program(**inputs), lambda program, **inputs: asyncio.run(program.acall(**inputs))]


@pytest.fixture(params=CALLS, ids=["threads", "asyncio"])
def call(request):
    """Both ways of calling a program."""
    return request.param


# -- samples -----------------------------------------------------------------------------------------------------


def test_three_agents_of_one_model_are_three_samples_and_a_rerun_is_free(scripted_lm, obliging, cache, call):
    lm, engine = scripted_lm(obliging(), cache=True, temperature=0.7)
    with dspy.context(lm=lm):
        first = call(Majority(samples=3), question="Is it so?")
        assert len(engine.requests) == 3
        assert len({str(messages) for messages, _ in engine.requests}) == 1
        assert len(set(seeds(engine))) == 3
        again = call(Majority(samples=3), question="Is it so?")
    assert len(engine.requests) == 3
    assert first.transcript.usage().calls == 3
    assert (again.transcript.usage().calls, again.transcript.usage().cached) == (0, 3)
    assert again.transcript.usage().prompt_tokens == 0


def test_at_temperature_zero_agents_of_one_model_share_one_reply(scripted_lm, obliging, cache, call):
    def slow(messages, seed):
        time.sleep(0.05)
        return obliging()(messages, seed)

    lm, engine = scripted_lm(slow, cache=True, temperature=0)
    with dspy.context(lm=lm):
        result = call(Majority(samples=3), question="Is it so?")
    assert len(engine.requests) == 1
    assert seeds(engine) == [None]
    assert [(turn.usage.calls, turn.usage.cached) for turn in result.transcript.turns] == [(1, 0), (0, 1), (0, 1)]
    assert result.decision.candidates[0].supporters == [0, 1, 2]


def test_without_a_cache_nothing_is_shared(scripted_lm, obliging, call):
    lm, engine = scripted_lm(obliging(), temperature=0)
    with dspy.context(lm=lm):
        call(Majority(samples=3), question="Is it so?")
    assert len(engine.requests) == 3


def test_another_seed_gives_other_samples_and_the_same_seed_the_same(scripted_lm, obliging):
    def drawn(**settings):
        lm, engine = scripted_lm(obliging())
        with dspy.context(lm=lm):
            Majority(samples=2, **settings)(question="Is it so?")
        return set(seeds(engine))

    assert drawn() == drawn(seed=0)
    assert not drawn() & drawn(seed=1)


def test_a_models_own_rollout_id_gives_other_samples(scripted_lm, obliging):
    lm, engine = scripted_lm(obliging())
    with dspy.context(lm=lm):
        Single()(question="Is it so?")
    with dspy.context(lm=lm.copy(rollout_id=5)):
        Single()(question="Is it so?")
    assert len(set(seeds(engine))) == 2


def test_an_agent_that_reads_the_very_same_again_draws_anew(scripted_lm, obliging, shown):
    lm, engine = scripted_lm(obliging())
    with dspy.context(lm=lm):
        Society(agents=2, rounds=3, cot=False)(question="Is it so?")
    revisions = [config.seed for messages, config in engine.requests if "own_answer" in shown(messages)]
    assert len(set(revisions)) == 4


def test_an_agent_keeps_its_sample_number_where_what_it_reads_changes(scripted_lm, obliging):
    known = {}

    def answer(inputs, seed):
        known[seed] = known.get(seed, 0) + 1
        return f"{seed}-{known[seed]}"

    lm, _ = scripted_lm(obliging(answer=answer))
    with dspy.context(lm=lm):
        Society(agents=2, rounds=3)(question="Is it so?")
    assert sorted(known.values()) == [3, 3]


def test_sample_ids_differ_in_every_part():
    ids = {
        sample_id(base, seed, sample, repeat, attempt)
        for base in (None, 1)
        for seed in (0, 1)
        for sample in (0, 1, 11)
        for repeat in (0, 1)
        for attempt in (0, 1)
    }
    assert len(ids) == 48
    assert all(0 <= value < 2**31 for value in ids)


# -- order -------------------------------------------------------------------------------------------------------


def test_turns_come_by_agent_whoever_finishes_first(scripted_lm, obliging, call):
    lms = []
    for number, delay in enumerate((0.2, 0.1, 0.0)):

        def late(messages, seed, delay=delay, number=number):
            time.sleep(delay)
            return obliging(answer=str(number))(messages, seed)

        lms.append(scripted_lm(late, model=f"m{number}")[0])
    with dspy.context(trace=[]):
        result = call(Majority(samples=3, lms=lms), question="Is it so?")
        traced = [prediction.answer for _, _, prediction in dspy.settings.trace]
    assert [turn.answer for turn in result.transcript.turns] == ["0", "1", "2"]
    assert traced == ["0", "1", "2"]


def test_agents_of_a_round_are_asked_at_the_same_time(scripted_lm, obliging, call):
    barrier = threading.Barrier(4, timeout=5)

    def together(messages, seed):
        barrier.wait()
        return obliging()(messages, seed)

    lm, _ = scripted_lm(together)
    with dspy.context(lm=lm):
        result = call(Majority(samples=4), question="Is it so?")
    assert result.decision.abstentions == 0


def test_the_trace_holds_at_most_what_dspy_allows(scripted_lm, obliging):
    lm, _ = scripted_lm(obliging())
    with dspy.context(lm=lm, trace=[], max_trace_size=2):
        Majority(samples=4)(question="Is it so?")
        assert len(dspy.settings.trace) == 2


# -- bad replies and errors --------------------------------------------------------------------------------------


def test_an_unreadable_reply_is_asked_for_once_more_with_another_sample(scripted_lm, obliging, call):
    replies = iter(["I would rather not.", {"reasoning": "because", "answer": "yes"}])
    lm, engine = scripted_lm(lambda messages, seed: next(replies))
    with dspy.context(lm=lm, trace=[]):
        result = call(Single(), question="Is it so?")
        assert len(dspy.settings.trace) == 1
    assert result.answer == "yes"
    [turn] = result.transcript.turns
    assert (turn.abstained, turn.problem, turn.usage.calls) == (False, None, 2)
    assert len(set(seeds(engine))) == 2


def test_at_temperature_zero_the_second_attempt_is_warmer(scripted_lm):
    lm, engine = scripted_lm(lambda messages, seed: "no", temperature=0)
    with dspy.context(lm=lm):
        Single()(question="Is it so?")
    assert [config.temperature for _, config in engine.requests] == [0, RETRY_TEMPERATURE]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("", "empty reply"),
        ("Never mind.", "unreadable reply (The reply holds no JSON object.): 'Never mind.'"),
        ({"reasoning": "r", "answer": None}, "The field answer is null."),
        ({"reasoning": "r"}, "Missing: answer."),
        ('{"a":' * 3000, "nested too deeply"),
    ],
)
def test_an_agent_abstains_after_two_bad_replies_and_the_debate_goes_on(reply, problem, scripted_lm, obliging, call):
    broken, engine = scripted_lm(lambda messages, seed: reply, model="broken")
    sound, _ = scripted_lm(obliging(), model="sound")
    result = call(Society(agents=3, rounds=2, lms=[broken, sound, sound]), question="Is it so?")
    assert result.answer == "yes"
    assert len(engine.requests) == 4
    assert [turn.agent for turn in result.transcript.turns if turn.abstained] == [0, 0]
    assert problem in result.transcript.turns[0].problem
    assert result.decision.abstentions == 1


def test_an_error_of_the_provider_is_raised_after_the_others_have_finished(scripted_lm, obliging, cache, call):
    done = []

    def slow(messages, seed):
        time.sleep(0.1)
        done.append(seed)
        return obliging()(messages, seed)

    def failing(messages, seed):
        raise ConnectionError("the server is gone")

    bad, _ = scripted_lm(failing, model="bad", num_retries=0)
    good, engine = scripted_lm(slow, model="good", cache=True)
    program = Majority(samples=3, lms=[bad, good])
    with pytest.raises(LMError, match="the server is gone"):
        call(program, question="Is it so?")
    assert len(done) == 1
    with dspy.context(lm=good):
        call(Single(), question="Is it so?")
    assert len(engine.requests) == 1, "what was paid for is in the cache"


def test_no_model_at_all_is_an_error_of_dspy(call):
    with dspy.context(lm=None), pytest.raises(ValueError, match="No LM is loaded"):
        call(Single(), question="Is it so?")


# -- accounting --------------------------------------------------------------------------------------------------


def test_usage_is_counted_by_role_and_reaches_dspys_tracker(scripted_lm, obliging, call):
    lm, _ = scripted_lm(obliging())
    with dspy.context(lm=lm, track_usage=True):
        result = call(Society(agents=2, rounds=2, summarise=True), question="Is it so?")
    usage = result.transcript.usage_by_role()
    assert {role: used.calls for role, used in usage.items()} == {"solve": 2, "summarise": 1, "revise": 2}
    assert usage["revise"].completion_tokens == 20
    tracked = result.get_lm_usage()["scripted"]
    assert tracked["prompt_tokens"] == 500


def test_the_cost_of_a_model_without_a_price_is_unknown_and_of_cached_replies_nothing(scripted_lm, obliging, cache):
    lm, _ = scripted_lm(obliging(), cache=True)
    with dspy.context(lm=lm):
        assert Single()(question="Is it so?").transcript.usage().cost is None
        assert Single()(question="Is it so?").transcript.usage().cost == 0


def test_a_debate_leaves_dspys_settings_as_they_were(scripted_lm, obliging, call):
    lm, _ = scripted_lm(obliging())
    with dspy.context(lm=lm):
        before = (dspy.settings.adapter, dspy.settings.usage_tracker, list(dspy.settings.caller_modules or []))
        call(Majority(samples=2), question="Is it so?")
        assert (dspy.settings.adapter, dspy.settings.usage_tracker, list(dspy.settings.caller_modules or [])) == before


def test_a_configured_adapter_is_used(scripted_lm, obliging):
    lm, engine = scripted_lm(lambda messages, seed: "[[ ## reasoning ## ]]\nr\n\n[[ ## answer ## ]]\nyes")
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
        assert Single()(question="Is it so?").answer == "yes"
    assert "JSON object" not in str(engine.requests[0][0])


# -- observers ---------------------------------------------------------------------------------------------------


class Watcher(Observer):
    """Records what it sees and lets one call at a time through."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running = 0
        self.most = 0
        self.events = []

    @contextlib.contextmanager
    def slot(self, ask):
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
            yield
            self.running -= 1

    def before_call(self, ask):
        self.events.append(("before", ask.role))

    def after_call(self, ask, usage):
        self.events.append(("after", ask.role, usage.calls))

    def on_turn(self, turn):
        self.events.append(("turn", turn.role, turn.answer))


def test_an_observer_sees_every_call_and_turn_and_limits_calls_in_flight(scripted_lm, obliging, call):
    lm, _ = scripted_lm(obliging())
    with dspy.context(lm=lm), observed(Watcher()) as watcher:
        call(Majority(samples=3), question="Is it so?")
    assert watcher.most == 1
    assert watcher.running == 0
    assert sorted(watcher.events) == sorted([("before", "solve"), ("after", "solve", 1), ("turn", "solve", "yes")] * 3)


def test_an_observer_sees_both_attempts_and_the_abstention(scripted_lm, call):
    lm, _ = scripted_lm(lambda messages, seed: "?")
    with dspy.context(lm=lm), observed(Watcher()) as watcher:
        call(Single(), question="Is it so?")
    assert watcher.events == [("before", "solve"), ("after", "solve", 1)] * 2 + [("turn", "solve", None)]


def test_a_budget_that_is_used_up_breaks_off_before_the_next_call(scripted_lm, obliging, call):
    class Budget(Observer):
        left = 3

        def before_call(self, ask):
            if self.left == 0:
                raise BudgetExceededError("3 calls are used up")
            self.left -= 1

    lm, engine = scripted_lm(obliging())
    with dspy.context(lm=lm), observed(Budget()), pytest.raises(BudgetExceededError):
        call(Society(agents=3, rounds=2), question="Is it so?")
    assert len(engine.requests) == 3
