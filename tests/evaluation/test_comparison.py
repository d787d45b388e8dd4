"""Comparisons whose values were worked out by hand."""

from __future__ import annotations

import json

import pytest

from townhall.errors import InputError
from townhall.evaluation.assembly import program
from townhall.evaluation.comparison import compare
from townhall.evaluation.run import Budget, evaluate


@pytest.fixture
def run_with(sums, adder, tmp_path):
    """Return `make(name, wrong, count=10)`: a run over sums 0..count-1 in which those of `wrong` are wrong."""

    def make(name, wrong=(), count=10, strategy="single", folder=None, **settings):
        task = settings.pop("task", None) or sums(count)
        lm, _ = adder(lambda a, b: -1 if a in wrong else a + b)
        made = program(task, strategy, **settings.pop("shape", {}))
        out = (folder or tmp_path) / name
        return evaluate(made, task, split="all", order="file", lm=lm, out=out, **settings)

    return make


def test_right_and_wrong_are_compared_by_mcnemar(run_with):
    """Of 10 examples run A has 0..4 right, run B all but 9: 5 right in both, 4 in B only, 1 in neither.

    The difference is 0.9 - 0.5 = 0.4; the exact p-value is 2 * (1/2)^4 = 0.125.
    """
    a = run_with("a", wrong=range(5, 10))
    b = run_with("b", wrong=[9])
    [pair] = compare(a, b).pairs
    found = pair.result
    assert (found.both, found.only_first, found.only_second, found.neither) == (5, 0, 4, 1)
    assert found.difference.estimate == pytest.approx(0.4)
    assert found.p_value == pytest.approx(0.125)
    assert found.test == "exact McNemar"
    assert found.difference.low < 0.4 < found.difference.high
    # Connor: (1.959964 * sqrt(.4) + .841621 * sqrt(.4 - .16))^2 / .16 = 17.03, so 18 examples.
    assert found.needed == 18
    assert str(pair).startswith("b - a: +40.0 points [")
    assert "18 examples" in str(pair)


def test_what_each_run_takes_is_beside_its_score(run_with):
    a = run_with("a", count=4)
    b = run_with("b", count=4, strategy="majority", shape={"samples": 3})
    sides = compare(a, b).sides
    assert [(side.name, side.calls, side.tokens, side.score) for side in sides] == [
        ("a", 1.0, 110.0, 1.0),
        ("b", 3.0, 330.0, 1.0),
    ]
    assert [side.cost for side in sides] == [None, None]


def test_the_cost_does_not_depend_on_what_the_cache_held(sums, adder, tmp_path):
    task = sums(3)
    lm, _ = adder(cache=True)
    one = evaluate(program(task, "single"), task, split="all", lm=lm, out=tmp_path / "one")
    three = evaluate(program(task, "majority", samples=3), task, split="all", lm=lm, out=tmp_path / "three")
    assert three.usage.calls == 6  # the first sample of each came from the run before
    assert [side.calls for side in compare(one, three).sides] == [1.0, 3.0]


def test_several_runs_are_compared_with_the_first_and_corrected_by_holm(run_with):
    a = run_with("a", wrong=range(10))
    b = run_with("b", wrong=range(5, 10))  # 5 more right: p = 2/32 = 0.0625
    c = run_with("c")  # 10 more right: p = 2/1024
    found = compare(a, b, c)
    assert [(pair.first, pair.second) for pair in found.pairs] == [("a", "b"), ("a", "c")]
    assert [pair.result.p_value for pair in found.pairs] == [pytest.approx(2 / 32), pytest.approx(2 / 1024)]
    assert [pair.p_adjusted for pair in found.pairs] == [pytest.approx(2 / 32), pytest.approx(2 * 2 / 1024)]


def test_only_common_examples_are_compared_and_the_others_counted(run_with):
    a = run_with("a", wrong=[0], count=6)
    b = run_with("b", count=8)
    found = compare(a, b)
    [pair] = found.pairs
    assert pair.result.n == 6
    assert (pair.only_first, pair.only_second) == (0, 2)
    assert pair.result.difference.estimate == pytest.approx(1 / 6)
    assert any("6 examples are common" in remark for remark in found.remarks)


def test_scores_between_0_and_1_are_compared_by_permutation(sums, sums_task, adder, tmp_path):
    """Differences of four examples: .5, .5, .5, .5. Of the 16 sign patterns 2 are as extreme: p = 1/8."""

    class Graded(sums_task):
        def score(self, answer, example):
            found = super().score(answer, example)
            return type(found)(0.75 if found.value else 0.25)

    task = Graded(sums(4).data)
    runs = []
    for name, shift in (("low", 1), ("high", 0)):
        lm, _ = adder(lambda a, b, shift=shift: a + b + shift)
        runs.append(evaluate(program(task, "single"), task, split="all", lm=lm, out=tmp_path / name))
    [pair] = compare(*runs).pairs
    assert pair.result.test == "paired permutation"
    assert pair.result.difference.estimate == pytest.approx(0.5)
    assert pair.result.p_value == pytest.approx(1 / 8)


def test_runs_of_one_name_are_told_apart_by_their_folders(run_with, tmp_path):
    a = run_with("run", folder=tmp_path / "before")
    b = run_with("run", folder=tmp_path / "after")
    assert [side.name for side in compare(a, b).sides] == ["before/run", "after/run"]


def test_partial_runs_and_failures_are_remarked_on(run_with, tmp_path):
    a = run_with("a")
    b = run_with("b", budget=Budget(calls=7), concurrency=1)
    found = compare(a.folder, b.folder)
    assert "b is stopped: 7 of 10 examples" in found.remarks


def test_runs_that_do_not_compare_are_refused(run_with, sums_task, tmp_path):
    a = run_with("a")

    class Other(sums_task):
        name = "other-sums"

    class Later(sums_task):
        version = 2

    data = tmp_path / "sums-10.jsonl"
    with pytest.raises(InputError, match="a run of task 'other-sums'"):
        compare(a, run_with("b", task=Other(data)))
    with pytest.raises(InputError, match="scored by version 2 of task 'sums'"):
        compare(a, run_with("c", task=Later(data)))
    with pytest.raises(InputError, match="named twice"):
        compare(a, a.folder)
    with pytest.raises(InputError, match="no such folder"):
        compare(a, tmp_path / "nothing")
    few = tmp_path / "few.jsonl"
    few.write_text('{"a": 70, "b": 71}\n')
    with pytest.raises(InputError, match="no example in common"):
        compare(a, run_with("d", task=sums_task(few)))


def test_a_comparison_is_json_and_says_when_it_is_simulated(sums, tmp_path):
    from townhall.models.simulated import simulated_lm

    task = sums(3)
    runs = [
        evaluate(program(task, strategy), task, split="all", lm=simulated_lm(), out=tmp_path / strategy)
        for strategy in ("single", "self-reflection")
    ]
    found = compare(*runs)
    assert found.simulated
    data = json.loads(json.dumps(found.as_json()))
    assert data["simulated"]
    assert data["sides"][0]["paid"]["calls"] == 3
    assert data["pairs"][0]["result"]["difference"]["n"] == 3


def test_parity_of_each_group_is_compared_where_runs_are_grouped(run_with):
    """Sums from 10 on are "large". Run A has 5 of 10 small and 4 of 4 large ones, run B 8 of 10 and 4 of 4."""
    a = run_with("a", wrong=range(5), count=14, by="size")
    b = run_with("b", wrong=range(2), count=14, by="size")
    found = compare(a, b)
    assert found.by == "size"
    assert [(side.parity, side.parity_min) for side in found.sides] == [(0.75, 0.5), (0.9, 0.8)]
    large, small = found.pairs[0].parity
    assert (large.group, large.before.estimate, large.after.estimate, large.change.estimate) == ("large", 1, 1, 0)
    assert str(small).startswith("small 0.50 -> 0.80 (+0.30, 95 % interval +0.")
    assert small.change.low < 0.3 < small.change.high
    assert json.loads(json.dumps(found.as_json()))["pairs"][0]["parity"][1]["change"]["n"] == 10


def test_runs_that_are_not_grouped_alike_have_no_parity_to_compare(run_with):
    grouped, plain = run_with("a", count=14, by="size"), run_with("b", count=14)
    found = compare(grouped, plain)
    assert (found.by, found.pairs[0].parity, found.sides[1].parity) == (None, [], None)
    nothing = run_with("c", wrong=range(14), count=14, by="size")
    assert compare(grouped, nothing).pairs[0].parity == []
