"""Accuracy by group, parity, its change, and how models complete each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

from townhall.errors import InputError
from townhall.metrics.parity import complementarity, group_report, oracle, parity_change, unanimous_wrong
from townhall.metrics.statistics import share_interval


def right(k: int, n: int) -> list[int]:
    return [1] * k + [0] * (n - k)


def test_the_table_worked_by_hand() -> None:
    report = group_report({"X": right(1, 2), "Y": right(0, 8), "Z": right(3, 4)})
    accuracy = {name: group.accuracy for name, group in report.groups.items()}
    assert accuracy == {"X": 0.5, "Y": 0, "Z": 0.75}
    parity = {name: group.parity for name, group in report.groups.items()}
    assert parity == pytest.approx({"X": 2 / 3, "Y": 0, "Z": 1})
    assert report.mean_parity == pytest.approx((2 / 3 + 0 + 1) / 3)
    assert round(report.mean_parity, 3) == 0.556
    assert report.min_parity == 0
    assert report.best == ("Z",)
    assert report.spread == 0.75
    mean = 1.25 / 3
    assert report.deviation == pytest.approx(math.sqrt(((0.5 - mean) ** 2 + mean**2 + (0.75 - mean) ** 2) / 3))
    assert {name: (group.numerator, group.n) for name, group in report.groups.items()} == {
        "X": (1, 2),
        "Y": (0, 8),
        "Z": (3, 4),
    }
    assert report.groups["X"].interval == share_interval(1, 2)


def test_tiny_and_zero_groups_are_flagged() -> None:
    report = group_report({"X": right(1, 2), "Y": right(0, 8), "Z": right(0, 3), "W": right(5, 5)})
    flags = {name: group.flags for name, group in report.groups.items()}
    assert flags == {"X": ("tiny",), "Y": ("zero",), "Z": ("tiny", "zero"), "W": ()}
    assert group_report({"X": right(1, 2)}, tiny=2).groups["X"].flags == ()


def test_nothing_right_anywhere_has_no_parity_and_divides_by_nothing() -> None:
    report = group_report({"X": right(0, 3), "Y": right(0, 9)})
    assert [group.parity for group in report.groups.values()] == [None, None]
    assert (report.mean_parity, report.min_parity, report.best) == (None, None, ())
    assert (report.spread, report.deviation) == (0, 0)


def test_an_empty_group_is_flagged_and_counts_for_nothing() -> None:
    report = group_report({"X": right(3, 6), "Y": []})
    assert report.groups["Y"].flags == ("empty",)
    assert (report.groups["Y"].accuracy, report.groups["Y"].interval, report.groups["Y"].parity) == (None, None, None)
    assert (report.mean_parity, report.spread) == (1, 0)


def test_no_groups_at_all() -> None:
    report = group_report({})
    assert (report.groups, report.mean_parity, report.spread, report.deviation) == ({}, None, None, None)


def test_scores_between_0_and_1_are_averaged() -> None:
    report = group_report({"X": [0.5, 0.25], "Y": [1.0, 0.5]})
    assert report.groups["X"].accuracy == 0.375
    assert report.groups["X"].parity == 0.5
    assert report.groups["X"].interval.method != "wilson"


def test_several_best_groups_all_have_parity_one() -> None:
    report = group_report({"X": right(1, 2), "Y": right(2, 4), "Z": right(1, 4)})
    assert report.best == ("X", "Y")
    assert report.mean_parity == pytest.approx((1 + 1 + 0.5) / 3)


def test_a_change_of_parity_is_printed_with_its_interval() -> None:
    before = {"African-Islamic": right(84, 150), "Catholic Europe": right(100, 150)}
    after = {"African-Islamic": right(92, 150), "Catholic Europe": right(100, 150)}
    change = parity_change(before, after, "African-Islamic", seed=1)
    assert change.before.estimate == pytest.approx(0.84)
    assert change.after.estimate == pytest.approx(0.92)
    assert change.change.estimate == pytest.approx(0.08)
    assert change.change.low < 0.08 < change.change.high
    assert str(change).startswith("African-Islamic 0.84 -> 0.92 (+0.08, 95 % interval +0.0")
    assert change == parity_change(before, after, "African-Islamic", seed=1)


def test_a_parity_change_is_paired() -> None:
    rng = np.random.default_rng(0)
    one = list(rng.integers(0, 2, 400))
    best = right(380, 400)
    better = [max(score, int(rng.random() < 0.1)) for score in one]
    change = parity_change({"g": one, "best": best}, {"g": better, "best": best}, "g")
    assert change.change.low > 0
    # Each parity by itself is less certain than their change.
    assert change.change.high - change.change.low < change.before.high - change.before.low


def test_the_interval_of_a_change_agrees_with_the_normal_approximation() -> None:
    # The best group is never wrong, so parity is accuracy; 30 of 300 examples change from wrong to right.
    before = {"g": right(150, 300), "best": right(50, 50)}
    after = {"g": right(180, 300), "best": right(50, 50)}
    change = parity_change(before, after, "g", resamples=4000)
    half = 1.96 * math.sqrt(0.1 * 0.9 / 300)
    assert change.change.low == pytest.approx(0.1 - half, abs=0.006)
    assert change.change.high == pytest.approx(0.1 + half, abs=0.006)


@pytest.mark.parametrize(
    ("before", "after", "group", "message"),
    [
        ({"g": [1]}, {"g": [1]}, "h", "no group 'h' with examples. Groups: g"),
        ({"g": [1]}, {"g": [1, 0]}, "g", "group 'g' has 1 examples before and 2 after"),
        ({"g": [1]}, {"g": [0]}, "g", "the second run has nothing right"),
    ],
)
def test_bad_changes_are_named(before: dict, after: dict, group: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parity_change(before, after, group)


MODELS = {"a": [1, 1, 0, 0, 0], "b": [1, 0, 1, 0, 0], "c": [1, 0, 0, 0, 1]}


def test_complementarity_by_hand() -> None:
    found = complementarity(MODELS)
    assert found.n == 5
    assert found.accuracy == {"a": 0.4, "b": 0.4, "c": 0.4}
    assert found.best == "a"
    assert found.oracle == oracle(MODELS) == 0.8
    assert found.exactly_one == 0.6
    assert found.all_right == 0.2
    assert found.none_right == 0.2
    # a or b is right on three of five, 0.2 more than either alone
    assert found.pair_gains == pytest.approx({("a", "b"): 0.2, ("a", "c"): 0.2, ("b", "c"): 0.2})


def test_a_model_adds_nothing_to_itself() -> None:
    found = complementarity({"a": [1, 0], "again": [1, 0]})
    assert found.pair_gains == {("a", "again"): 0}
    assert found.oracle == 0.5


def test_unanimous_wrong_counts_one_shared_wrong_answer_only() -> None:
    answers = {"a": ["x", "x", "y", None, "g"], "b": ["x", "y", "y", None, "g"]}
    assert unanimous_wrong(answers, ["g", "g", "y", "g", "g"]) == 0.2


@pytest.mark.parametrize("models", [{}, {"a": []}, {"a": [1], "b": [1, 0]}])
def test_models_must_have_the_same_examples(models: dict) -> None:
    with pytest.raises(InputError):
        complementarity(models)
    with pytest.raises(InputError):
        unanimous_wrong({name: ["x"] * len(column) for name, column in models.items()}, ["x"] if models else [])
