from __future__ import annotations

import pytest

from townhall.errors import InputError
from townhall.evaluation.assembly import program
from townhall.evaluation.matching import Match, evaluate_matched, match_cost
from townhall.evaluation.run import evaluate
from townhall.tasks.access import task as task_by_name


@pytest.fixture
def debate_run(sums, adder, scripted_lm, asked, tmp_path):
    """A run of a two-round society over four sums: agents of even sums stop early, so that costs differ."""
    task = sums(4)

    def script(messages, seed):
        a, b = asked(messages)
        return {"reasoning": "so", "answer": a + b if a % 2 == 0 else seed % 1000}

    lm, _ = scripted_lm(script)
    society = program(task, "society", agents=3, rounds=2, stop_when_unanimous=True)
    run = evaluate(society, task, split="all", order="file", lm=lm, out=tmp_path / "debate")
    assert [record.full_usage.calls for record in run.records] == [3, 6, 3, 6]
    return task, run


def test_calls_are_matched_example_by_example(debate_run, adder, tmp_path):
    task, run = debate_run
    lm, engine = adder()
    matched = evaluate_matched(program(task, "majority"), task, run, lm=lm, out=tmp_path / "majority")
    assert [record.full_usage.calls for record in matched.records] == [3, 6, 3, 6]
    assert [record.fingerprint for record in matched.records] == [record.fingerprint for record in run.records]
    assert len(engine.requests) == 18
    assert matched.info.match["run"] == "debate"
    assert matched.info.match["target"] == 4.5


def test_calls_are_matched_on_average(debate_run, adder, tmp_path):
    task, run = debate_run
    match = match_cost(run, spread="mean")
    assert {match.samples_for(example) for example in task.examples} == {round(4.5)}
    assert str(match) == "as many calls for the mean example as debate (4.5 on average): 4 samples"


def test_tokens_are_matched_by_what_one_sample_takes(debate_run, adder, tmp_path):
    task, run = debate_run  # 110 tokens a call: 330 or 660 an example
    lm, engine = adder(cache=True)
    matched = evaluate_matched(program(task, "majority"), task, run, per="tokens", lm=lm, out=tmp_path / "majority")
    assert [record.full_usage.tokens for record in matched.records] == [330, 660, 330, 660]
    # The first sample of each was drawn by the run beside it, and came from the cache.
    assert (tmp_path / "majority-single" / "summary.json").exists()
    assert matched.usage.calls == 18 - 4
    assert len(engine.requests) == 18


def test_tokens_are_rounded_to_whole_samples(debate_run):
    _, run = debate_run

    def priced_at(tokens):
        records = [
            record.model_copy(
                update={
                    "full_usage": record.full_usage.model_copy(update={"prompt_tokens": tokens, "completion_tokens": 0})
                }
            )
            for record in run.records
        ]
        return type(run)(run.folder, run.info, records, run.summary)

    match = match_cost(run, per="tokens", single=priced_at(200))  # 330 / 200 = 1.65, 660 / 200 = 3.3
    assert [match.samples[record.fingerprint] for record in run.records] == [2, 3, 2, 3]
    dear = match_cost(run, per="tokens", single=priced_at(100_000))
    assert set(dear.samples.values()) == {1}


def test_an_example_that_the_run_lacks_gets_the_mean(debate_run, sums):
    _, run = debate_run
    match = match_cost(run)
    stranger = sums(9).examples[8]
    assert match.samples_for(stranger) == 4
    assert str(match) == "as many calls for each example as debate (4.5 on average): 3 to 6, 4.5 on average samples"


def test_another_match_is_another_run(debate_run, adder, tmp_path):
    task, run = debate_run
    lm, _ = adder()
    evaluate_matched(program(task, "majority"), task, run, lm=lm, out=tmp_path / "majority")
    with pytest.raises(InputError, match=r"match\.spread"):
        evaluate_matched(program(task, "majority"), task, run, lm=lm, out=tmp_path / "majority", spread="mean")


def test_only_a_strategy_that_draws_samples_can_be_matched(debate_run, adder, tmp_path):
    task, run = debate_run
    lm, engine = adder()
    with pytest.raises(InputError, match="strategy 'town-hall' draws no samples"):
        evaluate_matched(program(task, "town-hall"), task, run, lm=lm, out=tmp_path / "x")
    other = task_by_name("arithmetic")
    with pytest.raises(InputError, match="a run of task 'sums', not 'arithmetic'"):
        evaluate_matched(program(other, "majority"), other, run, lm=lm, out=tmp_path / "x")
    assert not engine.requests


def test_matching_tokens_needs_to_know_a_sample(debate_run):
    _, run = debate_run
    with pytest.raises(InputError, match="needs a run with one sample"):
        match_cost(run, per="tokens")


def test_a_run_that_has_only_failures_matches_nothing(debate_run):
    _, run = debate_run
    failed = [record.model_copy(update={"error": "gone"}) for record in run.records]
    with pytest.raises(InputError, match="no example with known calls"):
        match_cost(type(run)(run.folder, run.info, failed, run.summary))


def test_examples_come_from_the_same_data(debate_run, sums, adder, tmp_path):
    _, run = debate_run
    shorter = sums(2)
    lm, _ = adder()
    with pytest.raises(InputError, match="is not in"):
        evaluate_matched(program(shorter, "majority"), shorter, run, lm=lm, out=tmp_path / "x")


def test_a_match_describes_itself():
    match = Match("debate", "calls", "example", 4.5, 4, {"a": 3, "b": 6})
    assert match.describe()["target"] == 4.5
    assert match.describe() != Match("debate", "calls", "example", 4.5, 4, {"a": 3, "b": 5}).describe()
