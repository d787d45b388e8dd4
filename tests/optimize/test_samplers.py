"""Samplers by name, and what our own one proposes."""

from __future__ import annotations

import optuna
import pytest

from townhall.errors import InputError
from townhall.optimize.samplers import SAMPLERS, SurrogateSampler, all_points, make_sampler, random_point
from townhall.optimize.space import Dimension
from townhall.optimize.study import TrialResult

SPACE = {"personas": Dimension("personas", "int", 1, 9), "rounds": Dimension("rounds", "int", 1, 4)}
STYLES = {**SPACE, "style": Dimension("style", "choice", choices=("a", "b"))}


def accuracy(settings):
    return 0.8 - 0.008 * (settings["personas"] - 5) ** 2 - 0.03 * (settings["rounds"] - 3) ** 2


def trial(number, settings, *, state="complete", n=100, invalid=False):
    right = round(accuracy(settings) * n)
    return TrialResult(
        number=number,
        state=state,
        settings=settings,
        score=right / n,
        n=n,
        costs={"calls": float(settings["personas"] * settings["rounds"])},
        calls=0,
        cached=0,
        scores={index: float(index < right) for index in range(n)} if state != "running" else {},
        invalid=invalid,
    )


def run(count, seed=0, objectives=("score",), space=SPACE):
    trials = []
    for number in range(count):
        settings = SurrogateSampler(space, list(objectives), seed + number).propose(trials)
        trials.append(trial(number, settings))
    return trials


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_are_made_by_name(name):
    assert isinstance(make_sampler(name, 3, 20, SPACE, ["score"]), optuna.samplers.BaseSampler)


def test_samplers_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match=r"unknown sampler 'tep'\. Did you mean 'tpe'\?"):
        make_sampler("tep", 0, 10, SPACE, ["score"])
    with pytest.raises(InputError, match="'cmaes' knows one objective"):
        make_sampler("cmaes", 0, 10, SPACE, ["score", "calls"])
    with pytest.raises(InputError, match="'cmaes' searches numbers only, two of them at least"):
        make_sampler("cmaes", 0, 10, STYLES, ["score"])


@pytest.mark.parametrize("seed", range(5))
def test_the_best_shape_is_found_in_ten_of_thirty_six_trials(seed):
    trials = run(10, seed)
    best = max(trials, key=lambda item: item.score)
    assert accuracy(best.settings) >= 0.79


def test_no_point_is_proposed_twice_until_all_were():
    trials = run(36)
    assert len({tuple(item.settings.items()) for item in trials}) == 36
    assert SurrogateSampler(SPACE, ["score"], 0).propose(trials) == trials[-1].settings


def test_what_others_are_running_and_what_was_refused_is_not_proposed():
    done = run(6)
    wish = SurrogateSampler(SPACE, ["score"], 1).propose(done)
    for state, invalid in (("running", False), ("failed", True)):
        taken = trial(6, wish, state=state, invalid=invalid)
        assert SurrogateSampler(SPACE, ["score"], 1).propose([*done, taken]) != wish
    # A trial that failed for other reasons may be wished for again.
    assert SurrogateSampler(SPACE, ["score"], 1).propose([*done, trial(6, wish, state="failed")]) == wish


def test_the_same_seed_and_trials_make_the_same_choice():
    done = run(7)
    first, second = (SurrogateSampler(SPACE, ["score"], 5).propose(done) for _ in range(2))
    assert first == second


def test_fewer_rounds_of_what_was_tried_are_cheap():
    sampler = SurrogateSampler(SPACE, ["score"], 0)
    done = [
        trial(number, {"personas": personas, "rounds": rounds})
        for number, (personas, rounds) in enumerate([(5, 4), (1, 1), (9, 1), (3, 2), (7, 1)])
    ]
    candidates = [{"personas": 5, "rounds": 3}, {"personas": 6, "rounds": 3}, {"personas": 3, "rounds": 4}]
    costs = sampler._expected_costs("calls", done, sampler._encode(candidates))
    cached, fresh, longer = sampler._uncached(costs, candidates, done)
    # At least 0.15 of 5 * 3 calls; 6 * 3 calls, none of them made; half of 3 * 4. The calls are estimates.
    assert cached == pytest.approx(2.25, rel=0.5)
    assert fresh == pytest.approx(18, rel=0.5)
    assert longer == pytest.approx(6, rel=0.5)


def test_a_pareto_search_tries_the_cheap_end_too():
    trials = run(16, objectives=("score", "calls"))
    tried, plain = ({tuple(item.settings.values()) for item in found} for found in (trials, run(16)))
    front = {(1, 1), (1, 2), (1, 3), (2, 2), (3, 2), (4, 2), (3, 3), (5, 2), (4, 3), (5, 3)}
    assert len(tried & front) >= 6
    assert len(tried & front) > len(plain & front)


def test_a_space_too_large_to_weigh_is_sampled():
    space = {f"d{number}": Dimension(f"d{number}", "int", 0, 9) for number in range(6)}

    def scored(number, settings):
        good = 1 - sum((value - 6) ** 2 for value in settings.values()) / 216
        right = round(50 * good)
        scores = {index: float(index < right) for index in range(50)}
        return TrialResult(number, "complete", settings, right / 50, 50, {"calls": 1.0}, 0, 0, scores=scores)

    trials = []
    for number in range(16):
        trials.append(scored(number, SurrogateSampler(space, ["score"], number).propose(trials)))
    # Nine points spread at random first.
    assert max(item.score for item in trials[9:]) > max(item.score for item in trials[:9])


def test_points_are_listed_and_drawn():
    assert len(all_points(STYLES)) == 72
    assert all_points(SPACE)[0] == {"personas": 1, "rounds": 1}
    assert all_points(SPACE, 1) != all_points(SPACE, 2)
    assert sorted(map(str, all_points(SPACE, 1))) == sorted(map(str, all_points(SPACE)))
    assert random_point(STYLES, 4) == random_point(STYLES, 4)
    assert random_point(STYLES, 4) in all_points(STYLES)


def test_optuna_can_ask_it_for_a_dimension_it_does_not_know():
    study = optuna.create_study(direction="maximize", sampler=SurrogateSampler(SPACE, ["score"], 0))
    asked = study.ask()
    assert 1 <= asked.suggest_int("personas", 1, 9) <= 9
    assert 0 <= asked.suggest_float("another", 0, 1) <= 1
