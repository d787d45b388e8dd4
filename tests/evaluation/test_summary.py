from __future__ import annotations

import pytest

from townhall.evaluation.assembly import program
from townhall.evaluation.intervals import score_intervals
from townhall.evaluation.run import evaluate, load_run
from townhall.metrics.score import Score
from townhall.metrics.statistics import share_interval
from townhall.tasks.base import Example, Scored


def test_shares_get_wilson_intervals(sums, adder, tmp_path):
    task = sums(10)
    lm, _ = adder(lambda a, b: "?" if a == 0 else a + b + (a < 4))
    run = evaluate(program(task, "single"), task, split="all", lm=lm, out=tmp_path / "run")
    assert run.scores == {"accuracy": 0.6, "blank": 0.1}
    for name, hits in (("accuracy", 6), ("blank", 1)):
        found, expected = run.summary.intervals[name], share_interval(hits, 10)
        assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
        assert (found.method, found.n) == ("wilson", 10)


class Shelf:
    """Aggregates as grids do: a share of a subset, and a ratio of sums."""

    def aggregate(self, scored):
        easy = [item.score.value for item in scored if item.score.parts["easy"]]
        return {
            "easy": sum(easy) / len(easy) if easy else None,
            "cell": sum(item.score.parts["right"] for item in scored) / sum(i.score.parts["all"] for i in scored),
            "none": None,
        }


def scored(right, total, easy):
    parts = {"right": right, "all": total, "easy": easy}
    return Scored(Example(id="x", question="q", gold=1), Score(float(right == total), parts=parts))


def test_a_subset_has_its_own_denominator_and_a_ratio_is_resampled():
    items = [scored(4, 4, True), scored(2, 4, True), scored(10, 30, False), scored(30, 30, False)] * 5
    shelf = Shelf()
    found = score_intervals(shelf, items, shelf.aggregate(items))
    assert found["easy"].n == 10
    assert found["easy"].method == "wilson"
    assert found["cell"].method == "percentile bootstrap"
    assert found["cell"].n == 20
    assert found["cell"].low < 46 / 68 < found["cell"].high
    assert 0 <= found["cell"].low < found["cell"].high <= 1
    assert "none" not in found
    assert found == score_intervals(shelf, items, shelf.aggregate(items))


def test_a_summary_groups_and_its_groups_have_parity(sums, adder, tmp_path):
    task = sums(14)  # ten small, four large
    lm, _ = adder(lambda a, b: a + b + (a in (0, 1, 2, 3, 4, 12, 13)))
    run = evaluate(program(task, "single"), task, split="all", lm=lm, out=tmp_path / "run", by="size")
    small, large = run.summary.groups["small"], run.summary.groups["large"]
    assert (small.n, large.n) == (10, 4)
    assert (small.scores["accuracy"], large.scores["accuracy"]) == (0.5, 0.5)
    assert (small.scores["parity"], run.scores["parity"], run.scores["parity_min"]) == (1.0, 1.0, 1.0)
    again = evaluate(program(task, "single"), task, split="all", lm=lm, out=tmp_path / "run")
    assert again.summary.by == "size"


def test_a_run_can_be_grouped_afterwards_without_a_call(sums, adder, tmp_path):
    task = sums(14)
    lm, engine = adder()
    evaluate(program(task, "single"), task, split="all", lm=lm, out=tmp_path / "run")
    run = evaluate(program(task, "single"), task, split="all", lm=lm, out=tmp_path / "run", by="size")
    assert set(run.summary.groups) == {"small", "large"}
    assert len(engine.requests) == 14


def test_debates_show_their_dynamics(sums, scripted_lm, asked, tmp_path):
    """Two agents, two rounds: agent 1 starts wrong on every sum and takes agent 0's answer."""
    task = sums(4)

    def script(messages, seed):
        a, b = asked(messages)
        wrong = "You are Two." in messages[-1][1] and "other_answers" not in messages[-1][1]
        return {"reasoning": "so", "answer": -1 if wrong else a + b}

    lm, _ = scripted_lm(script)
    society = program(task, "society", agents=2, rounds=2, persona_list=[{"name": "One"}, {"name": "Two"}])
    run = evaluate(society, task, split="all", lm=lm, out=tmp_path / "run")
    assert run.scores["accuracy"] == 1.0
    found = run.summary.dynamics
    assert found["debates"] == found["known"] == 4
    assert found["accuracy"] == [0.5, 1.0]
    assert found["consensus"] == [0.0, 1.0]
    assert found["flips"] == {"right -> right": [4], "wrong -> right": [4]}
    assert found["follows"] == {"1 -> 0": 4}
    assert load_run(tmp_path / "run").summary.dynamics == found


def test_one_agent_that_answers_once_has_no_dynamics(sums, adder, tmp_path):
    task = sums(2)
    lm, _ = adder()
    run = evaluate(program(task, "single"), task, split="all", lm=lm, out=tmp_path / "run")
    assert run.summary.dynamics == {}


def test_dynamics_are_grouped_as_the_scores_are(sums, adder, tmp_path):
    task = sums(12)
    lm, _ = adder()
    vote = program(task, "majority", samples=2)
    run = evaluate(vote, task, split="all", lm=lm, out=tmp_path / "run", by="size")
    assert {name: group["debates"] for name, group in run.summary.dynamics["groups"].items()} == {
        "large": 2,
        "small": 10,
    }
