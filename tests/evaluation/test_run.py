from __future__ import annotations

import json
import threading
import time

import dspy
import pytest
from dspy import lm15

from townhall.errors import InputError, RunError
from townhall.evaluation.assembly import program
from townhall.evaluation.run import Budget, evaluate, load_run
from townhall.models.resolve import Origin
from townhall.programs.base import Strategy
from townhall.programs.observer import OBSERVER, Observer


def single(task, **settings):
    return program(task, "chain-of-thought", shots=0, **settings)


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_run_leaves_a_record_an_example_and_a_summary(sums, adder, tmp_path):
    task = sums(4)
    lm, engine = adder()
    run = evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run", order="file")
    assert [record.answer for record in run.records] == [1, 3, 5, 7]
    assert [record.split for record in run.records] == task.assign_splits(task.examples)
    assert [record.question for record in run.records] == [example.question for example in task.examples]
    assert run.scores == {"accuracy": 1.0, "blank": 0.0}
    assert run.summary.status == "complete"
    assert run.usage.calls == len(engine.requests) == 4
    assert (run.usage.prompt_tokens, run.usage.completion_tokens) == (400, 40)
    assert run.records[0].usage.calls == 1
    assert set(run.summary.usage_by_role) == {"solve"}
    assert run.records[2].transcript.turns[0].answer == 5
    assert run.records[1].parts == {"off": 0}
    assert load_run(tmp_path / "run").scores == run.scores


def test_records_are_written_as_they_finish_and_returned_in_the_order_of_the_examples(sums, adder, tmp_path):
    task = sums(2)
    second_done = threading.Event()

    def slow_first(a, b):
        if a == 0:
            second_done.wait(10)
        return a + b

    lm, _ = adder(slow_first)

    def seen(record):
        if record.index == 1:
            second_done.set()

    run = evaluate(
        single(task), task, split="all", order="file", lm=lm, out=tmp_path / "run", concurrency=2, on_record=seen
    )
    assert [line["index"] for line in lines(tmp_path / "run" / "records.jsonl")] == [1, 0]
    assert [record.index for record in run.records] == [0, 1]


def test_the_shuffle_is_fixed_and_a_limit_takes_its_beginning(sums, adder, tmp_path):
    task = sums(9)
    lm, _ = adder()
    whole = evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "whole")
    part = evaluate(single(task), task, split="all", limit=4, lm=lm, out=tmp_path / "part")
    assert [record.id for record in part.records] == [record.id for record in whole.records][:4]
    assert [record.id for record in whole.records] != [example.id for example in task.examples]
    other = evaluate(single(task), task, split="all", limit=4, seed=1, lm=lm, out=tmp_path / "other")
    assert [record.id for record in other.records] != [record.id for record in part.records]


def test_a_finished_run_is_shown_without_a_call(sums, adder, tmp_path):
    task = sums(3)
    lm, engine = adder()
    evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run")
    before = (tmp_path / "run" / "run.json").read_bytes()
    again = evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run")
    assert len(engine.requests) == 3
    assert again.summary.status == "complete"
    assert again.usage.calls == 3
    assert (tmp_path / "run" / "run.json").read_bytes() == before


def test_the_same_configuration_finds_its_run_without_a_name(sums, adder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    task = sums(3)
    lm, engine = adder()
    first = evaluate(single(task), task, split="all", lm=lm)
    assert first.folder.parent.name == "runs"
    assert first.folder.name.startswith("sums-chain-of-thought-")
    assert evaluate(single(task), task, split="all", lm=lm).folder == first.folder
    assert len(engine.requests) == 3
    assert evaluate(single(task), task, split="all", limit=2, lm=lm).folder != first.folder


def test_one_failing_example_keeps_the_others_and_stays_in_the_denominator(sums, adder, tmp_path):
    task = sums(4)

    def fail_on_two(a, b):
        if a == 2:
            raise lm15.InvalidRequestError("this question is refused")
        return a + b

    lm, _ = adder(fail_on_two, num_retries=0)
    run = evaluate(single(task), task, split="all", order="file", lm=lm, out=tmp_path / "run")
    assert run.summary.status == "complete"
    assert run.summary.failed == 1
    assert run.scores["accuracy"] == 3 / 4
    assert "this question is refused" in run.records[2].error
    assert run.records[2].score == 0
    assert not run.records[2].blank


def test_failed_examples_are_tried_again_when_the_run_is_resumed(sums, adder, tmp_path):
    task = sums(3)
    broken = {1}

    def script(a, b):
        if a in broken:
            raise lm15.InvalidRequestError("not now")
        return a + b

    lm, engine = adder(script, num_retries=0)
    first = evaluate(single(task), task, split="all", order="file", lm=lm, out=tmp_path / "run")
    assert first.summary.failed == 1
    broken.clear()
    second = evaluate(single(task), task, split="all", order="file", lm=lm, out=tmp_path / "run")
    assert second.summary.failed == 0
    assert second.scores["accuracy"] == 1.0
    assert len(engine.requests) == 4
    assert len(lines(tmp_path / "run" / "records.jsonl")) == 4
    assert len(second.info.sessions) == 2


def test_blanks_are_counted_and_stay_in_the_denominator(sums, adder, tmp_path):
    task = sums(4)
    lm, _ = adder(lambda a, b: "I would rather not say." if a == 1 else a + b)
    run = evaluate(single(task), task, split="all", order="file", lm=lm, out=tmp_path / "run")
    assert run.summary.blank == 1
    assert run.summary.failed == 0
    assert run.scores == {"accuracy": 3 / 4, "blank": 1 / 4}
    assert run.records[1].answer is None
    assert run.records[1].error is None


def test_a_metric_that_raises_costs_one_example(sums, sums_task, adder, tmp_path):
    class Fragile(sums_task):
        def score(self, answer, example):
            if answer == 3:
                raise ZeroDivisionError("3 is too much")
            return super().score(answer, example)

    task = Fragile(sums(3).data)
    lm, _ = adder()
    run = evaluate(single(task), task, split="all", order="file", lm=lm, out=tmp_path / "run")
    assert run.summary.failed == 1
    assert run.records[1].error_kind == "ZeroDivisionError"
    assert run.records[1].answer == 3
    assert run.scores["accuracy"] == 2 / 3


def test_scoring_that_cannot_work_is_found_before_anything_is_spent(sums, sums_task, adder, tmp_path):
    class Needy(sums_task):
        def check_scoring(self):
            raise InputError("no judge")

    task = Needy(sums(3).data)
    lm, engine = adder()
    with pytest.raises(InputError, match="no judge"):
        evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run")
    assert not engine.requests


def test_a_field_to_group_by_that_does_not_exist_is_found_before_anything_is_spent(sums, adder, tmp_path):
    task = sums(3)
    lm, engine = adder()
    with pytest.raises(InputError, match=r"no field 'sise' to group by. Did you mean 'size'"):
        evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run", by="sise")
    assert not engine.requests


# -- budgets ---------------------------------------------------------------------------------------------------------


def test_a_budget_of_calls_is_never_exceeded_and_a_larger_one_goes_on(sums, adder, tmp_path):
    task = sums(8)
    lm, engine = adder()
    run = evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run", budget=Budget(calls=5), concurrency=4)
    assert run.summary.status == "stopped"
    assert "5 calls" in run.summary.reason
    assert len(engine.requests) == run.usage.calls == 5
    assert run.summary.n == 5
    assert run.summary.total == 8
    again = evaluate(
        single(task), task, split="all", lm=lm, out=tmp_path / "run", budget=Budget(calls=5), concurrency=4
    )
    assert again.summary.status == "stopped"
    assert len(engine.requests) == 5
    whole = evaluate(
        single(task), task, split="all", lm=lm, out=tmp_path / "run", budget=Budget(calls=8), concurrency=4
    )
    assert whole.summary.status == "complete"
    assert len(engine.requests) == whole.usage.calls == 8


def test_a_budget_stops_between_the_calls_of_a_debate_and_its_replies_are_not_paid_again(sums, scripted_lm, tmp_path):
    task = sums(1)
    lm, engine = scripted_lm(lambda messages, seed: {"reasoning": str(seed), "answer": 1}, cache=True)
    vote = program(task, "majority", samples=6)
    run = evaluate(vote, task, split="all", lm=lm, out=tmp_path / "run", budget=Budget(calls=4), concurrency=2)
    assert run.summary.status == "stopped"
    assert run.summary.n == 0
    assert run.usage.calls == len(engine.requests) == 4
    whole = evaluate(vote, task, split="all", lm=lm, out=tmp_path / "run", concurrency=2)
    assert whole.summary.status == "complete"
    assert len(engine.requests) == 6
    # Four replies came from the cache, but this run has paid for them: it took six calls in all, and none was saved.
    assert (whole.usage.calls, whole.usage.cached) == (6, 0)
    assert whole.records[0].usage.calls == 6
    assert whole.records[0].full_usage.calls == 6


def test_replies_from_the_cache_are_free_of_the_budget(sums, adder, tmp_path):
    task = sums(6)
    lm, engine = adder(cache=True)
    evaluate(single(task), task, split="all", limit=4, lm=lm, out=tmp_path / "first")
    run = evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run", budget=Budget(calls=2), concurrency=1)
    assert run.summary.status == "complete"
    assert (run.usage.calls, run.usage.cached) == (2, 4)
    assert run.usage.uncached().calls == 6
    assert run.usage.uncached().prompt_tokens == 600
    assert len(engine.requests) == 6


def test_a_budget_of_tokens_starts_no_call_once_it_is_used_up(sums, adder, tmp_path):
    task = sums(8)
    lm, engine = adder()  # 110 tokens a call
    run = evaluate(
        single(task), task, split="all", lm=lm, out=tmp_path / "run", budget=Budget(tokens=300), concurrency=1
    )
    assert run.summary.status == "stopped"
    assert len(engine.requests) == 3
    assert run.usage.tokens == 330


def test_a_budget_of_cost_goes_by_the_stated_prices(sums, adder, tmp_path):
    task = sums(8)
    lm, engine = adder()
    lm.townhall = Origin("dear", prompt_price=10.0, completion_price=100.0)  # 0.001 + 0.001 dollars a call
    run = evaluate(
        single(task), task, split="all", lm=lm, out=tmp_path / "run", budget=Budget(cost=0.0059), concurrency=1
    )
    assert run.summary.status == "stopped"
    assert len(engine.requests) == 3
    assert run.usage.cost == pytest.approx(0.006)
    assert run.records[0].usage.cost == pytest.approx(0.002)
    assert run.records[0].transcript.turns[0].usage.cost == pytest.approx(0.002)


def test_a_budget_of_cost_needs_a_price(sums, adder, tmp_path):
    task = sums(3)
    lm, engine = adder()
    with pytest.raises(InputError, match="no price is known for the model 'scripted'"):
        evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run", budget=Budget(cost=1), concurrency=1)
    assert len(engine.requests) == 1
    assert load_run(tmp_path / "run").summary.usage.calls == 1


@pytest.mark.parametrize("limits", [{"calls": 0}, {"tokens": -1}, {"cost": 0.0}])
def test_a_budget_must_be_above_nothing(limits):
    with pytest.raises(InputError, match="must be above 0"):
        Budget(**limits)


# -- models that cannot be used ----------------------------------------------------------------------------------------


def test_a_refused_key_ends_the_run_early_with_one_line(sums, adder, tmp_path):
    task = sums(30)

    def refuse(a, b):
        raise lm15.AuthError("the key is not accepted")

    lm, engine = adder(refuse, num_retries=0)
    with pytest.raises(RunError, match="the key is not accepted"):
        evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run", concurrency=1)
    assert len(engine.requests) == 2
    assert load_run(tmp_path / "run").summary.status == "failed"


def test_an_unreachable_server_ends_the_run_early_and_the_run_can_be_resumed(sums, adder, tmp_path):
    task = sums(30)
    down = [True]

    def script(a, b):
        if down[0]:
            raise lm15.TransportError("the server is not reached")
        return a + b

    lm, engine = adder(script, num_retries=0)
    with pytest.raises(RunError, match="not reached"):
        evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run", concurrency=1)
    assert len(engine.requests) == 3
    down[0] = False
    run = evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run")
    assert run.summary.status == "complete"
    assert run.summary.failed == 0


def test_a_server_that_stays_away_later_ends_the_run_too(sums, adder, tmp_path):
    task = sums(40)

    def script(a, b):
        if a >= 5:
            raise lm15.TransportError("gone")
        return a + b

    lm, engine = adder(script, num_retries=0)
    with pytest.raises(RunError, match="gone"):
        evaluate(single(task), task, split="all", order="file", lm=lm, out=tmp_path / "run", concurrency=1)
    assert len(engine.requests) == 5 + 10
    assert sum(record.error is None for record in load_run(tmp_path / "run").records) == 5


def test_without_a_model_there_is_one_clear_error(sums, tmp_path):
    task = sums(2)
    with dspy.context(lm=None), pytest.raises(InputError, match="no model"):
        evaluate(single(task), task, split="all", out=tmp_path / "run")


# -- folders -----------------------------------------------------------------------------------------------------------


def test_a_folder_of_another_configuration_is_refused_by_name(sums, adder, tmp_path):
    task = sums(4)
    lm, _ = adder()
    evaluate(program(task, "majority", samples=2), task, split="all", lm=lm, out=tmp_path / "run")
    with pytest.raises(InputError, match=r"settings\.samples: 3, not 2") as found:
        evaluate(program(task, "majority", samples=3), task, split="all", lm=lm, out=tmp_path / "run")
    assert "--out" in str(found.value)
    with pytest.raises(InputError, match="limit: 3, not null"):
        evaluate(program(task, "majority", samples=2), task, split="all", limit=3, lm=lm, out=tmp_path / "run")
    with pytest.raises(InputError, match="strategy"):
        evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run")
    hotter, _ = adder(temperature=1.0)
    with pytest.raises(InputError, match="models"):
        evaluate(program(task, "majority", samples=2), task, split="all", lm=hotter, out=tmp_path / "run")


def test_other_prompts_are_another_run(sums, adder, tmp_path):
    task = sums(2)
    lm, _ = adder()
    evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run")
    tuned = single(task)
    tuned.solve.signature = tuned.solve.signature.with_instructions("Add the numbers with care.")
    with pytest.raises(InputError, match="program_fingerprint"):
        evaluate(tuned, task, split="all", lm=lm, out=tmp_path / "run")


def test_fresh_sets_the_old_run_aside_and_asks_again(sums, adder, tmp_path):
    task = sums(3)
    lm, engine = adder(cache=True)
    evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run")
    again = evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run", fresh=True)
    assert len(engine.requests) == 6
    assert (again.usage.calls, again.usage.cached) == (3, 0)
    [aside] = (tmp_path / "run" / "previous").iterdir()
    assert len(load_run(aside).records) == 3


def test_a_folder_that_cannot_be_written_is_an_input_error(sums, adder, tmp_path):
    task = sums(2)
    lm, engine = adder()
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(InputError, match="is a file"):
        evaluate(single(task), task, split="all", lm=lm, out=file)
    with pytest.raises(InputError, match="cannot be written"):
        evaluate(single(task), task, split="all", lm=lm, out=file / "run")
    other = tmp_path / "photos"
    other.mkdir()
    (other / "cat.jpg").write_text("cat")
    with pytest.raises(InputError, match=r"no run folder \('cat.jpg'\)"):
        evaluate(single(task), task, split="all", lm=lm, out=other)
    assert not engine.requests
    assert file.read_text() == "mine"


def test_no_key_and_no_credential_is_written_down(sums, tmp_path, monkeypatch):
    from townhall.models.resolve import lm as model
    from townhall.models.server import SimulatedServer

    task = sums(2)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-key")
    with SimulatedServer(api_key="sk-very-secret-key") as server:
        address = server.url.replace("http://", "http://user:pass-word@")
        try:
            lm = model("simulated-x", api_base=address)
        except InputError:
            lm = model("simulated-x", api_base=server.url)
        evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run")
    for file in (tmp_path / "run").rglob("*"):
        if file.is_file():
            assert "very-secret" not in file.read_text()
            assert "pass-word" not in file.read_text()


def test_a_server_that_turns_out_to_be_simulated_marks_the_run(sums, tmp_path):
    from townhall.models.resolve import lm as model
    from townhall.models.server import SimulatedServer

    task = sums(2)
    with SimulatedServer() as server:
        run = evaluate(
            single(task), task, split="all", lm=model("some-model", api_base=server.url), out=tmp_path / "run"
        )
        assert run.summary.simulated
        assert load_run(tmp_path / "run").info.simulated
        # The mark is not part of what the run is: it can be resumed by someone who has not seen a reply yet.
        again = evaluate(
            single(task), task, split="all", lm=model("some-model", api_base=server.url), out=tmp_path / "run"
        )
        assert again.summary.status == "complete"


# -- the rest -------------------------------------------------------------------------------------------------------


def test_no_more_calls_are_in_flight_than_allowed_and_as_many_are(sums, scripted_lm, tmp_path):
    task = sums(6)
    flying, most = [0], [0]
    lock = threading.Lock()

    def script(messages, seed):
        with lock:
            flying[0] += 1
            most[0] = max(most[0], flying[0])
        time.sleep(0.02)
        with lock:
            flying[0] -= 1
        return {"reasoning": "so", "answer": 1}

    lm, engine = scripted_lm(script)
    evaluate(program(task, "majority", samples=5), task, split="all", lm=lm, out=tmp_path / "run", concurrency=4)
    assert most[0] == 4
    assert len(engine.requests) == 30


def test_an_example_starts_only_when_a_place_is_free_that_no_call_waits_for(sums, scripted_lm, asked, tmp_path):
    task = sums(5)
    order = []

    def script(messages, seed):
        order.append(asked(messages)[0])
        time.sleep(0.15)  # long enough for every agent to have asked, on a busy machine too
        return {"reasoning": "so", "answer": 1}

    lm, _ = scripted_lm(script)
    evaluate(
        program(task, "majority", samples=4),
        task,
        split="all",
        order="file",
        lm=lm,
        out=tmp_path / "run",
        concurrency=4,
    )
    firsts = list(dict.fromkeys(order))
    assert sorted(firsts[:4]) == [0, 1, 2, 3]
    # Four places, and four examples with four calls each: the fifth waits until no call of theirs does.
    assert firsts[4] == 4
    assert order.index(4) >= 12


def test_an_interrupt_keeps_the_records_and_is_raised(sums, adder, tmp_path):
    task = sums(6)
    lm, engine = adder()

    class Interrupting:
        def start(self, state):
            pass

        def update(self, state):
            if state.done:
                raise KeyboardInterrupt

        def finish(self, state):
            pass

    def slow(a, b):
        time.sleep(0.3)
        return a + b

    lm, engine = adder(slow)
    with pytest.raises(KeyboardInterrupt):
        evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run", concurrency=1, progress=Interrupting())
    kept = load_run(tmp_path / "run")
    assert kept.summary.status == "interrupted"
    assert 0 < kept.summary.n < 6
    assert len(kept.records) == len(engine.requests)
    run = evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run")
    assert run.summary.status == "complete"
    assert len(engine.requests) == 6


def test_a_fault_of_ours_ends_the_run_and_is_raised(sums, adder, tmp_path):
    task = sums(4)
    lm, _ = adder()

    def broken(record):
        raise AssertionError("a bug in a callback")

    with pytest.raises(AssertionError, match="a bug in a callback"):
        evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run", on_record=broken)
    assert load_run(tmp_path / "run").summary.status == "failed"
    assert load_run(tmp_path / "run").summary.n >= 1


def test_a_caller_may_end_a_run_and_is_told_of_earlier_records_first(sums, adder, tmp_path):
    task = sums(8)
    lm, _ = adder()
    told = []

    def watch(record):
        told.append(record.index)
        return len(told) < 3

    first = evaluate(
        single(task), task, split="all", order="file", lm=lm, out=tmp_path / "run", concurrency=1, on_record=watch
    )
    assert first.summary.status == "stopped"
    assert told == [0, 1, 2]
    told.clear()
    second = evaluate(
        single(task),
        task,
        split="all",
        order="file",
        lm=lm,
        out=tmp_path / "run",
        concurrency=1,
        on_record=lambda record: told.append(record.index) or True,
    )
    assert second.summary.status == "complete"
    assert told == list(range(8))


def test_any_dspy_module_can_be_evaluated_and_its_calls_are_counted(sums, adder, tmp_path):
    class Solver(dspy.Module):
        def __init__(self):
            super().__init__()
            self.solve = dspy.ChainOfThought("question -> answer: int")

        def forward(self, question):
            return self.solve(question=question)

    task = sums(5)
    lm, engine = adder()
    run = evaluate(Solver(), task, split="all", lm=lm, out=tmp_path / "run", adapter=dspy.JSONAdapter())
    assert run.scores["accuracy"] == 1.0
    assert run.usage.calls == len(engine.requests) == 5
    assert run.info.strategy == "Solver"
    stopped = evaluate(
        Solver(), task, split="all", lm=lm, out=tmp_path / "b", adapter=dspy.JSONAdapter(), budget=Budget(calls=2)
    )
    assert stopped.summary.status == "stopped"
    assert stopped.usage.calls == 2


def test_an_observer_outside_still_hears_every_turn(sums, adder, tmp_path):
    heard = []

    class Listener(Observer):
        def on_turn(self, turn):
            heard.append(turn.answer)

    token = OBSERVER.set(Listener())
    try:
        task = sums(3)
        lm, _ = adder()
        evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run")
    finally:
        OBSERVER.reset(token)
    assert sorted(heard) == [1, 3, 5]


def test_transcripts_can_be_left_out(sums, adder, tmp_path):
    task = sums(2)
    lm, _ = adder()
    run = evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run", keep_transcripts=False)
    assert [record.transcript for record in run.records] == [None, None]
    assert run.records[0].full_usage.calls == 1


def test_scores_do_not_depend_on_whether_feedback_is_read(sums, adder, tmp_path):
    task = sums(3)
    lm, _ = adder(lambda a, b: a + b + (a == 1))
    run = evaluate(single(task), task, split="all", order="file", lm=lm, out=tmp_path / "run")
    assert [record.score for record in run.records] == [1.0, 0.0, 1.0]
    assert [record.feedback for record in run.records] == ["right", "wrong", "right"]
    assert [task.score(record.answer, record.example).value for record in run.records] == [1.0, 0.0, 1.0]


def test_answers_on_the_way_are_scored_too(sums, sums_task, scripted_lm, tmp_path):
    class Wary(sums_task):
        def score(self, answer, example):
            if answer == 9:
                raise ValueError("nine cannot be scored")
            return super().score(answer, example)

    seen = iter([1, 5, 9, 1, 1])
    lm, _ = scripted_lm(lambda messages, seed: {"reasoning": "so", "answer": next(seen)})
    task = Wary(sums(1).data)
    vote = program(task, "majority", samples=5)
    run = evaluate(vote, task, split="all", lm=lm, out=tmp_path / "run", concurrency=1)
    assert run.records[0].answer_scores == {"1": 1.0, "5": 0.0}
    assert run.records[0].error is None
    assert run.scores["accuracy"] == 1.0


def test_a_judges_calls_while_scoring_are_counted(sums, sums_task, adder, scripted_lm, tmp_path):
    judge, judge_engine = scripted_lm(lambda messages, seed: {"verdict": "yes"}, model="judge")

    class Judged(sums_task):
        def score(self, answer, example):
            with dspy.context(lm=judge, adapter=dspy.JSONAdapter()):
                dspy.Predict("answer -> verdict")(answer=str(answer))
            return super().score(answer, example)

    task = Judged(sums(3).data)
    lm, _ = adder()
    run = evaluate(single(task), task, split="all", lm=lm, out=tmp_path / "run")
    assert len(judge_engine.requests) == 3
    assert run.usage.calls == 6
    assert run.summary.usage_by_role["score"].calls == 3
    assert run.records[0].usage_by_role["score"].calls == 1
    assert run.records[0].answer_scores == {}


def test_a_strategy_is_assembled_from_names(adder):
    import townhall

    hall = townhall.program("arithmetic", "town-hall", personas=3, rounds=2)
    assert isinstance(hall, Strategy)
    assert (hall.config.personas, hall.config.rounds) == (3, 2)
    assert hall.argue.demos
    with pytest.raises(InputError, match=r"unknown strategy 'townhall'. Did you mean 'town-hall'"):
        program("arithmetic", "townhall")
    with pytest.raises(InputError, match="unknown task 'arithmetics'"):
        program("arithmetics", "town-hall")


def test_a_run_prints_as_one_short_line(sums, adder, tmp_path):
    task = sums(3)
    lm, _ = adder()
    run = evaluate(program(task, "single"), task, split="all", lm=lm, out=tmp_path / "run")
    assert repr(run) == f"<Run {tmp_path / 'run'}: accuracy 1.000, 3 of 3 examples, complete>"
