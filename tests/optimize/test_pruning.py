"""Stopping trials early: the paired test against Optuna's, the rival's cost, halving."""

from __future__ import annotations

import itertools

import numpy as np
import optuna
import pytest
from scipy import stats

from townhall.errors import InputError
from townhall.optimize.pruning import (
    HalvingPruner,
    NeverPrune,
    Rival,
    WilcoxonPruner,
    make_pruner,
    signed_rank_p,
)


def numbered(*scores):
    return dict(enumerate(scores))


def test_the_p_value_is_the_share_of_sign_patterns_as_far_down():
    # Four losses and two ties: all four signs must be negative, 1 of 16.
    assert signed_rank_p([-1, -1, -1, -1, 0, 0]) == pytest.approx(1 / 16)
    # Three losses and a win of equal size: no win or one of the four, 5 of 16.
    assert signed_rank_p([-1, -1, -1, 1]) == pytest.approx(5 / 16)
    assert signed_rank_p([0, 0, 0]) == 1
    assert signed_rank_p([1, 1, 1]) == 1


@pytest.mark.parametrize("seed", range(20))
def test_the_p_value_equals_that_of_an_enumeration(seed):
    rng = np.random.default_rng(seed)
    differences = rng.choice([-1, -0.5, 0, 0, 0.25, 1], size=9)
    ranks = stats.rankdata(np.abs(differences))[differences != 0]
    observed = ranks[differences[differences != 0] > 0].sum()
    patterns = list(itertools.product([0, 1], repeat=len(ranks)))
    expected = sum(np.dot(pattern, ranks) <= observed + 1e-9 for pattern in patterns) / len(patterns)
    assert signed_rank_p(differences) == pytest.approx(expected)


def test_the_normal_distribution_takes_over_where_many_differ():
    rng = np.random.default_rng(0)
    differences = rng.normal(-0.1, 1, size=90)
    exact = stats.wilcoxon(differences, alternative="less", method="exact").pvalue
    assert signed_rank_p(differences) == pytest.approx(exact, abs=0.002)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_trial_stops_where_optunas_pruner_stops_it():
    """On scores without ties, where SciPy's exact distribution is quick."""
    stopped = set()
    for seed in range(6):
        rng = np.random.default_rng(seed)
        best, trial = rng.normal(0.6, 0.2, 20), rng.normal(0.52, 0.2, 20)
        pruner = optuna.pruners.WilcoxonPruner(p_threshold=0.1, n_startup_steps=6)
        study = optuna.create_study(direction="maximize", pruner=pruner)
        first = study.ask()
        for number, score in enumerate(best):
            first.report(score, number)
        study.tell(first, best.mean())
        second = study.ask()
        for number, score in enumerate(trial):
            second.report(score, number)
            scores = numbered(*trial[: number + 1])
            stop = WilcoxonPruner(every=1).hopeless(scores, [], [Rival(numbered(*best))])
            assert stop == second.should_prune(), (seed, number)
            if stop:
                stopped.add(seed)
    assert 2 <= len(stopped) < 6


def test_no_trial_stops_before_six_examples_or_while_it_is_ahead():
    best = [Rival(numbered(*[1] * 12))]
    pruner = WilcoxonPruner()
    assert not pruner.hopeless(numbered(0, 0, 0, 0, 0), [], best)
    assert pruner.hopeless(numbered(0, 0, 0, 0, 0, 0), [], best)
    ahead = [Rival(numbered(*[1] * 6, *[0] * 6))]
    assert not pruner.hopeless(numbered(1, 1, 1, 1, 1, 0), [], ahead)


def test_the_test_is_made_after_every_third_example():
    best = [Rival(numbered(*[1] * 12))]
    stops = [WilcoxonPruner().hopeless(numbered(*[0] * count), [], best) for count in range(1, 13)]
    assert [count for count, stop in enumerate(stops, start=1) if stop] == [6, 9, 12]


def test_examples_are_compared_by_their_number_not_their_place():
    rival = [Rival(dict.fromkeys(range(0, 24, 2), 1.0))]
    # Only two of the six were answered by the rival.
    assert not WilcoxonPruner().hopeless({0: 0, 1: 0, 3: 0, 5: 0, 7: 0, 2: 0}, [], rival)
    assert WilcoxonPruner().hopeless(dict.fromkeys(range(0, 12, 2), 0), [], rival)


def test_a_dearer_trial_is_no_rival():
    better = Rival(numbered(*[1] * 12), costs=(10.0, 500.0))
    bad = numbered(*[0] * 6)
    assert WilcoxonPruner().hopeless(bad, [10.0, 500.0], [better])
    assert WilcoxonPruner().hopeless(bad, [12.0, 900.0], [better])
    assert not WilcoxonPruner().hopeless(bad, [9.0, 900.0], [better])
    assert not HalvingPruner(12).hopeless(numbered(*[0] * 6), [9.0, 500.0], [better, better])


def test_halving_lets_the_better_half_go_on_at_its_rungs():
    others = [Rival(numbered(*([1] * right + [0] * (20 - right)))) for right in (2, 4, 5)]
    pruner = HalvingPruner(20)
    assert pruner.rungs == {5, 10}
    # After five examples the others have 2, 4 and 5 right: the middle one is the bar.
    assert pruner.hopeless(numbered(1, 1, 1, 0, 0), [], others)
    assert not pruner.hopeless(numbered(1, 1, 1, 1, 0), [], others)
    assert not pruner.hopeless(numbered(1, 1, 1, 0), [], others)
    assert not pruner.hopeless(numbered(0, 0, 0, 0, 0), [], others[:1])


def test_rules_by_name():
    assert isinstance(make_pruner("wilcoxon", 30), WilcoxonPruner)
    assert isinstance(make_pruner("halving", 30), HalvingPruner)
    assert not make_pruner("none", 30).hopeless(numbered(*[0] * 30), [], [Rival(numbered(*[1] * 30))])
    assert isinstance(make_pruner("none", 30), NeverPrune)
    with pytest.raises(InputError, match=r"unknown pruner 'wilcox'\. Known: wilcoxon, halving, none"):
        make_pruner("wilcox", 30)
