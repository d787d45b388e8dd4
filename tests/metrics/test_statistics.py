"""Intervals, paired comparisons and sample sizes, against worked values and statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from townhall.errors import InputError
from townhall.metrics.statistics import (
    compare_paired,
    examples_needed,
    examples_needed_for_mean,
    holm,
    interval,
    is_binary,
    paired_share_difference,
    share_interval,
)


@pytest.mark.parametrize(("successes", "n"), [(0, 8), (1, 2), (3, 4), (8, 8), (50, 100), (1319, 1320), (1, 10_000)])
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_shares_have_the_wilson_interval_of_statsmodels(successes: int, n: int, level: float) -> None:
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(successes, n, alpha=1 - level, method="wilson")
    found = share_interval(successes, n, level=level)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    assert (found.estimate, found.method, found.n, found.level) == (successes / n, "wilson", n, level)
    assert found.low <= found.estimate <= found.high


def test_wilson_by_hand() -> None:
    # z = 1.96, 5 of 10: centre 0.5, half width 1.96 sqrt(1/40 + 1.96^2/400) / (1 + 1.96^2/10) = 0.2634
    found = share_interval(5, 10)
    assert found.low == pytest.approx(0.2366, abs=1e-4)
    assert found.high == pytest.approx(0.7634, abs=1e-4)


def test_right_and_wrong_scores_get_wilson_and_others_a_seeded_bootstrap() -> None:
    assert interval([1, 0, 1.0, True]).method == "wilson"
    values = list(np.random.default_rng(1).random(200))
    found = interval(values, seed=3)
    assert found.method == "bca bootstrap"
    assert found == interval(values, seed=3)
    assert found != interval(values, seed=4)
    error = np.std(values, ddof=1) / math.sqrt(200)
    assert found.low == pytest.approx(np.mean(values) - 1.96 * error, abs=0.2 * error)
    assert found.high == pytest.approx(np.mean(values) + 1.96 * error, abs=0.2 * error)


def test_equal_scores_have_no_width() -> None:
    found = interval([0.4, 0.4, 0.4])
    assert (found.low, found.high) == pytest.approx((0.4, 0.4))
    assert found.method == "percentile bootstrap"
    assert interval([0.7]).n == 1


def test_a_bootstrap_interval_covers_the_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for turn in range(100):
        found = interval(list(rng.beta(2, 3, size=60)), seed=turn, resamples=400)
        covered += found.low <= 0.4 <= found.high
    assert 87 <= covered <= 100


@pytest.mark.parametrize("call", [lambda: interval([]), lambda: share_interval(0, 0), lambda: share_interval(3, 2)])
def test_no_examples_is_an_error(call: object) -> None:
    with pytest.raises(InputError):
        call()


def test_levels_out_of_range_are_an_error() -> None:
    with pytest.raises(InputError, match=r"between 0 and 1, such as 0\.95"):
        share_interval(1, 2, level=95)


def scores(both: int, only_first: int, only_second: int, neither: int) -> tuple[list[int], list[int]]:
    first = [1] * both + [1] * only_first + [0] * only_second + [0] * neither
    second = [1] * both + [0] * only_first + [1] * only_second + [0] * neither
    return first, second


@pytest.mark.parametrize("table", [(40, 5, 15, 40), (0, 3, 9, 0), (10, 0, 6, 4), (36, 12, 2, 0), (5, 1, 1, 5)])
def test_right_and_wrong_scores_are_compared_by_the_exact_mcnemar_test_of_statsmodels(table: tuple) -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    both, only_first, only_second, neither = table
    found = compare_paired(*scores(*table))
    assert (found.both, found.only_first, found.only_second, found.neither) == table
    assert found.p_value == pytest.approx(mcnemar([[both, only_first], [only_second, neither]], exact=True).pvalue)
    assert found.test == "exact McNemar"
    assert found.difference.estimate == pytest.approx((only_second - only_first) / sum(table))
    assert found.second - found.first == pytest.approx(found.difference.estimate)
    assert found.difference.low <= found.difference.estimate <= found.difference.high


def test_mcnemar_by_hand() -> None:
    # 1 against 5 discordant examples: 2 (C(6,0) + C(6,1)) / 2^6 = 14/64
    assert compare_paired(*scores(10, 1, 5, 4)).p_value == pytest.approx(14 / 64)


def test_newcombes_interval_by_hand() -> None:
    # 2 x 2 table 4, 1, 3, 2: shares 0.5 and 0.7 of 10, Wilson [.2366, .7634] and [.3968, .8922].
    # ad - bc = 8 - 3 = 5, minus n/2 = 5, so phi = 0: the squares are added without correlation.
    found = paired_share_difference(4, 1, 3, 2)
    assert found.estimate == pytest.approx(0.2)
    assert found.low == pytest.approx(0.2 - math.sqrt((0.7 - 0.3968) ** 2 + (0.7634 - 0.5) ** 2), abs=2e-4)
    assert found.high == pytest.approx(0.2 + math.sqrt((0.8922 - 0.7) ** 2 + (0.5 - 0.2366) ** 2), abs=2e-4)
    # Negative correlation is not corrected: 1, 4, 4, 1 has ad - bc = -15 and margins 5 5 5 5, so phi = -0.6.
    found = paired_share_difference(1, 4, 4, 1)
    half = math.sqrt(0.2634**2 * (1 + 1.2 + 1))
    assert (found.low, found.high) == pytest.approx((-half, half), abs=2e-4)


def test_the_paired_interval_is_symmetric_and_stays_within_bounds() -> None:
    forth, back = paired_share_difference(30, 4, 9, 7), paired_share_difference(30, 9, 4, 7)
    assert (forth.low, forth.high) == pytest.approx((-back.high, -back.low))
    assert paired_share_difference(0, 0, 20, 0).high == 1
    assert paired_share_difference(10, 0, 0, 0).estimate == 0


def test_the_paired_interval_covers_a_true_difference_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(300):
        table = rng.multinomial(80, [0.5, 0.1, 0.2, 0.2])
        found = paired_share_difference(*map(int, table))
        covered += found.low <= 0.1 <= found.high
    assert 0.91 <= covered / 300 <= 0.995


def test_other_scores_get_a_paired_bootstrap_interval_and_a_permutation_test() -> None:
    rng = np.random.default_rng(2)
    first = rng.random(150)
    second = np.clip(first + rng.normal(0.05, 0.1, size=150), 0, 1)
    found = compare_paired(list(first), list(second), seed=1)
    assert found.test == "paired permutation"
    assert found.difference.method == "bca bootstrap"
    assert found.both is None
    assert found.difference.low > 0
    assert found.p_value < 0.01
    assert found == compare_paired(list(first), list(second), seed=1)
    # Unpaired, the same difference would drown in the spread of the scores.
    unpaired = interval(list(second)).low - interval(list(first)).high
    assert unpaired < 0


def test_the_permutation_test_by_hand_and_against_scipy() -> None:
    # Differences .3, .1: of the four sign patterns two are as far from zero as the observed one.
    assert compare_paired([0.1, 0.2], [0.4, 0.3]).p_value == pytest.approx(0.5)
    from scipy.stats import permutation_test

    rng = np.random.default_rng(7)
    differences = list(rng.normal(0.1, 0.3, size=12))
    exact = permutation_test(
        (differences,), lambda x, axis: np.mean(x, axis=axis), permutation_type="samples", n_resamples=np.inf
    )
    found = compare_paired([0.0] * 12, differences)
    assert found.p_value == pytest.approx(exact.pvalue, abs=1e-9)


def test_no_difference_is_not_found_and_needs_no_number() -> None:
    same = compare_paired([1, 0, 1], [1, 0, 1])
    assert (same.p_value, same.difference.estimate, same.needed) == (1, 0, None)
    assert compare_paired([0.5, 0.2], [0.5, 0.2]).p_value == 1


def test_runs_of_different_length_are_an_error() -> None:
    with pytest.raises(InputError, match="2 and 1 scores"):
        compare_paired([1, 0], [1])
    with pytest.raises(InputError, match="at least one"):
        compare_paired([], [])


def test_examples_needed_by_hand() -> None:
    # (1.959964 sqrt(.2) + .841621 sqrt(.19))^2 / .01 = (.876523 + .366853)^2 / .01 = 154.6
    assert examples_needed(0.1, 0.2) == 155
    assert examples_needed(-0.1, 0.2) == 155
    # All discordant examples go one way: (1.959964 sqrt(.1) + .841621 * .3)^2 / .01 = 76.1
    assert examples_needed(0.1, 0.1) == 77
    assert examples_needed(0, 0.2) is None
    # (1.959964 + .841621)^2 * (.5 / .1)^2 = 7.8489 * 25 = 196.2
    assert examples_needed_for_mean(0.1, 0.5) == 197
    assert examples_needed_for_mean(0, 0.5) is None


def test_as_many_examples_as_needed_find_the_difference_about_four_times_in_five() -> None:
    needed = examples_needed(0.15, 0.25)
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(400):
        table = rng.multinomial(needed, [0.5, 0.05, 0.2, 0.25])
        found += compare_paired(*scores(*table)).p_value < 0.05
    assert 0.68 <= found / 400 <= 0.86  # the exact test is a little conservative


def test_a_comparison_says_how_many_examples_its_own_difference_needs() -> None:
    found = compare_paired(*scores(50, 5, 15, 30))
    assert found.needed == examples_needed(0.1, 0.2) == 155


def test_impossible_designs_are_an_error() -> None:
    with pytest.raises(InputError, match="cannot hold a difference"):
        examples_needed(0.3, 0.1)
    with pytest.raises(InputError, match="between 0 and 1"):
        examples_needed(0.1, 0.2, power=1)


def test_holm_equals_statsmodels_and_keeps_the_names() -> None:
    from statsmodels.stats.multitest import multipletests

    p_values = {"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005, "e": 0.9}
    adjusted = holm(p_values)
    assert list(adjusted) == list(p_values)
    assert list(adjusted.values()) == pytest.approx(multipletests(list(p_values.values()), method="holm")[1])
    assert adjusted["d"] == pytest.approx(0.025)
    assert holm({}) == {}


def test_binary_scores() -> None:
    assert is_binary([0, 1, True, 1.0])
    assert not is_binary([0, 0.5])
