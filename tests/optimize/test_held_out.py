"""Held-out evaluation: sealed test examples, one evaluation a program, and a ledger of who looked."""

from __future__ import annotations

import json

import dspy
import pytest

import townhall
from townhall.errors import BudgetExceededError, InputError, RunError
from townhall.evaluation.budget import Budget
from townhall.optimize.compile import compile
from townhall.optimize.held_out import (
    LEDGER,
    Ledger,
    Opening,
    Sealed,
    check_disjoint,
    evaluate_held_out,
    hold_out,
    load_report,
)
from townhall.tasks.base import Example


def example(number, question=None):
    return Example(id=f"e{number}", question=question or f"What is {number} + 0?", gold=number)


def test_splits_that_share_content_are_refused_with_both_names():
    train, dev = [example(1), example(2)], [example(3)]
    check_disjoint(train=train, dev=dev)
    twin = Example(id="twin", question="What is 2 + 0?", gold=2)
    with pytest.raises(InputError, match="example 'e2' of train and example 'twin' of test have the same content"):
        check_disjoint(train=train, dev=dev, test=[twin])


def test_test_examples_cannot_be_read_before_the_final_evaluation():
    sealed = Sealed([example(1), example(2)])
    assert len(sealed) == 2
    assert example(1).fingerprint in sealed.fingerprints
    for read in (list, lambda it: it[0], lambda it: [*it], lambda it: sorted(it)):
        with pytest.raises(RunError, match="sealed until the final evaluation"):
            read(sealed)
    assert "e1" not in repr(sealed)
    assert "What is" not in repr(sealed)


def test_holding_out_takes_the_tasks_splits_and_limits(arithmetic):
    splits = hold_out(arithmetic, train_limit=5, dev_limit=4, test_limit=3)
    assert [len(splits.train), len(splits.dev), len(splits.test)] == [5, 4, 3]
    assert splits.test.fingerprints == {item.fingerprint for item in arithmetic.split("test", limit=3)}
    assert splits.left_out == 0


def test_questions_of_the_test_split_are_left_out_of_tuning(arithmetic):
    """The same question with another gold answer is other content, but its debate would be known."""
    train = [example(1), Example(id="other", question="What is 3 + 0?", gold=33)]
    splits = hold_out(arithmetic, train=train, dev=[example(2)], test=[example(3)])
    assert [item.id for item in splits.train] == ["e1"]
    assert splits.left_out == 1


@pytest.fixture
def tuned(arithmetic, small, model_of):
    lm = model_of(arithmetic, 0.7)
    splits = hold_out(arithmetic, train_limit=6, dev_limit=3, test_limit=6)
    with dspy.context(lm=lm):
        compiled = compile(small("society", agents=3), arithmetic, "bootstrap", train=splits.train)
    return compiled.program, splits, lm


def test_the_report_has_the_tuned_the_untuned_and_both_baselines_at_equal_cost(tuned, small, tmp_path):
    program, splits, lm = tuned
    with dspy.context(lm=lm):
        report = evaluate_held_out(program, splits, tmp_path, untuned=small("society", agents=3), name="first")
    assert [row.name for row in report.rows] == ["tuned", "untuned", "single", "majority"]
    assert [row.usage.calls for row in report.rows] == [36, 36, 6, 36]
    assert all(row.status == "complete" and row.n == 6 for row in report.rows)
    assert report.simulated
    assert report.uses == 1
    for row in report.rows[1:]:
        assert row.gain.estimate == pytest.approx(report.rows[0].score - row.score)
        assert row.gain.low <= row.gain.estimate <= row.gain.high
    assert all(row.interval is not None for row in report.rows)


def test_what_a_tuning_began_with_stands_beside_the_strategy_as_it_comes(tuned, small, tmp_path):
    program, splits, lm = tuned
    with dspy.context(lm=lm):
        report = evaluate_held_out(program.reconfigured(agents=2), splits, tmp_path / "one", before=program)
        same = evaluate_held_out(program, splits, tmp_path / "two", before=program)
        # In the same folder, next to another program: a comparison of its own.
        evaluate_held_out(program, splits, tmp_path / "two", untuned=small("society", agents=2))
    # The tuned prompts in the new shape, in the shape before, and the strategy's own prompts in the shape before.
    assert [row.name for row in report.rows] == ["tuned", "before", "untuned", "single", "majority"]
    assert [row.usage.calls for row in report.rows] == [24, 36, 36, 6, 24]
    assert [row.name for row in same.rows] == ["tuned", "untuned", "single", "majority"]
    run = tmp_path / "one" / "held-out"
    [prompts] = [json.loads(file.read_text()) for file in run.glob("*/untuned/run.json")]
    assert prompts["settings"]["agents"] == 3
    [before] = [json.loads(file.read_text()) for file in run.glob("*/before/run.json")]
    assert prompts["program_fingerprint"] != before["program_fingerprint"]


def test_the_same_program_is_evaluated_once(tuned, small, tmp_path):
    program, splits, lm = tuned
    with dspy.context(lm=lm):
        first = evaluate_held_out(program, splits, tmp_path, untuned=small("society", agents=3))
        calls = lm.engine.calls
        again = evaluate_held_out(program, splits, tmp_path, untuned=small("society", agents=3))
    assert lm.engine.calls == calls
    assert again == first
    assert len((tmp_path / LEDGER).read_text().splitlines()) == 1


def test_another_tuning_that_looks_at_the_same_test_examples_is_reported(tuned, arithmetic, small, tmp_path):
    program, splits, lm = tuned
    overlapping = hold_out(arithmetic, train_limit=6, dev_limit=3, test_limit=2)
    with dspy.context(lm=lm):
        evaluate_held_out(program, splits, tmp_path / "one", ledger=tmp_path / LEDGER)
        second = evaluate_held_out(small("single"), overlapping, tmp_path / "two", ledger=tmp_path / LEDGER, name="two")
    assert second.uses == 2
    assert [opening.name for opening in Ledger(tmp_path / LEDGER).openings()] == ["", "two"]


def test_a_look_is_written_down_before_the_first_call(tuned, tmp_path):
    program, splits, lm = tuned
    lm.engine.complete = lambda request: (_ for _ in ()).throw(dspy.lm15.AuthError("wrong key", status=401))
    with dspy.context(lm=lm), pytest.raises(RunError):
        evaluate_held_out(program, splits, tmp_path)
    assert len(Ledger(tmp_path / LEDGER).openings()) == 1


def test_a_torn_line_of_the_ledger_is_skipped_and_the_next_one_whole(tmp_path):
    book = Ledger(tmp_path / LEDGER)
    book.append(Opening(program="a", test="t", examples=["x"]))
    with book.path.open("a") as lines:
        lines.write('{"program": "b", "te')
    book.append(Opening(program="c", test="t", examples=["x"]))
    assert [opening.program for opening in book.openings()] == ["a", "c"]
    assert book.uses(["x"]) == 2


def test_a_budget_for_all_runs_together_keeps_what_is_done(tuned, small, tmp_path):
    program, splits, lm = tuned
    before = lm.engine.calls
    with dspy.context(lm=lm), pytest.raises(BudgetExceededError):
        evaluate_held_out(program, splits, tmp_path, untuned=small("society"), budget=Budget(calls=36))
    assert lm.engine.calls - before == 36
    with dspy.context(lm=lm):
        report = evaluate_held_out(program, splits, tmp_path, untuned=small("society"))
    assert len(report.rows) == 4


def test_each_of_several_models_is_a_baseline_of_its_own(tuned, arithmetic, small, model_of, tmp_path):
    _program, splits, lm = tuned
    other = model_of(arithmetic, 0.2)
    other.model = "simulated/other"
    with dspy.context(lm=lm):
        report = evaluate_held_out(small("debate-only").with_models([lm, other]), splits, tmp_path)
    assert [row.name for row in report.rows] == ["tuned", "untuned", "single-1", "single-2", "majority"]
    assert report.notes[:2] == ["single-1 is simulated/known", "single-2 is simulated/other"]


def test_the_report_is_a_file_that_can_be_read_again(tuned, tmp_path):
    program, splits, lm = tuned
    with dspy.context(lm=lm):
        report = evaluate_held_out(program, splits, tmp_path)
    [path] = tmp_path.glob("held-out/*/report.json")
    assert load_report(path) == report
    path.write_text(json.dumps({"task": 3}))
    with pytest.raises(InputError, match="no report"):
        load_report(path)


def test_an_artifact_records_its_final_evaluation(tuned, small, tmp_path, arithmetic):
    from townhall.optimize.artifact import load_info, save_artifact, update_artifact

    program, splits, lm = tuned
    folder = tmp_path / "artifact"
    save_artifact(program, arithmetic, folder)
    with dspy.context(lm=lm):
        report = evaluate_held_out(townhall.load(folder), splits, folder)
    update_artifact(folder, held_out=report)
    assert load_info(folder).held_out == report
    # Saved again, the artifact keeps its place beside the runs.
    save_artifact(program, arithmetic, folder, held_out=report)
