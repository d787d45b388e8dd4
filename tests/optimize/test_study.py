"""A study's record: fronts, estimates, what the cache saved, and what counts as another study."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from townhall.errors import InputError
from townhall.optimize.space import Dimension
from townhall.optimize.study import (
    StudyDescription,
    StudyResult,
    TrialResult,
    paired_score,
    pareto_front,
    sampling_variance,
)

DESCRIPTION = StudyDescription(
    task="sums",
    task_version=1,
    task_fingerprint="a" * 64,
    split="dev",
    examples="b" * 64,
    n=4,
    strategy="town-hall",
    program="c" * 64,
    space=[Dimension("personas", "int", 1, 9, default=5)],
    fixed={},
    objectives=["score"],
    models=["some/model"],
)


def trial(number, score=None, calls=1.0, *, state="complete", personas=None, scores=None, paid=0, cached=0, **costs):
    scores = dict(enumerate(scores)) if scores is not None else {}
    return TrialResult(
        number=number,
        state=state,
        settings={"personas": personas or number + 1},
        score=score if score is not None or not scores else sum(scores.values()) / len(scores),
        n=len(scores),
        costs={"calls": calls, **costs},
        calls=paid,
        cached=cached,
        scores=scores,
    )


def result(*trials, objectives=("score",), n=4):
    description = DESCRIPTION.model_copy(update={"objectives": list(objectives), "n": n})
    return StudyResult("s", Path("s"), "study.db", description, list(trials), lambda settings: settings)


def test_the_front_has_what_nothing_beats_in_both():
    trials = [
        trial(0, 0.50, calls=2),
        trial(1, 0.70, calls=6),
        trial(2, 0.60, calls=6),  # as dear as 1, worse
        trial(3, 0.80, calls=15),
        trial(4, 0.78, calls=20),  # dearer than 3, worse
        trial(5, 0.50, calls=3),  # dearer than 0, no better
        trial(6, 0.70, calls=6),  # the same point as 1
        trial(7, 0.99, calls=1, state="pruned"),
        trial(8, 0.99, calls=1, state="failed"),
    ]
    assert [item.number for item in pareto_front(trials, ["score", "calls"])] == [0, 1, 6, 3]


def test_the_front_of_three_objectives():
    trials = [
        trial(0, 0.5, calls=2, tokens=900),
        trial(1, 0.5, calls=4, tokens=500),
        trial(2, 0.5, calls=4, tokens=900),
        trial(3, 0.9, calls=9, tokens=2000),
    ]
    assert [item.number for item in pareto_front(trials, ["score", "calls", "tokens"])] == [0, 1, 3]


def test_an_unknown_price_is_the_dearest():
    trials = [trial(0, 0.5, cost=None), trial(1, 0.5, cost=0.2), trial(2, 0.6, cost=None)]
    assert [item.number for item in pareto_front(trials, ["score", "cost"])] == [1, 2]


def test_calls_are_the_cost_where_the_score_is_the_only_objective():
    assert [item.number for item in result(trial(0, 0.5, 3), trial(1, 0.5, 2), trial(2, 0.9, 9)).front] == [1, 2]


def test_few_trials_are_ranked_by_score_then_calls_then_number():
    found = result(trial(0, scores=[1, 0], calls=9), trial(1, scores=[1, 0], calls=4), trial(2, scores=[0, 0], calls=1))
    assert found.estimates == {}
    assert found.best_trial.number == 1
    assert found.best == {"personas": 2}


def test_the_luckiest_of_many_trials_is_not_chosen_over_its_better_neighbours():
    """Two personas have the highest score of all, far above their neighbours; the plateau is at 5 to 7."""
    shares = {1: 20, 2: 31, 3: 22, 4: 27, 5: 30, 6: 30, 7: 30, 8: 28, 9: 26}
    trials = [
        trial(number, scores=[1] * right + [0] * (40 - right), personas=personas)
        for number, (personas, right) in enumerate(shares.items())
    ]
    found = result(*trials, n=40)
    assert max(found.whole, key=lambda item: item.score).settings == {"personas": 2}
    assert found.best_trial.settings["personas"] in (5, 6, 7)
    assert found.estimates[1] < 31 / 40
    assert all(0 <= score <= 1 for score in found.estimates.values())


def test_a_study_without_a_whole_trial_has_no_best_one():
    with pytest.raises(InputError, match="study 's' has no finished trial yet"):
        _ = result(trial(0, scores=[1], state="pruned")).best_trial


def test_the_share_that_the_cache_saved():
    assert result(trial(0, 0.5, paid=30, cached=10), trial(1, 0.5, paid=10, cached=30)).saved == 0.5
    assert result().saved == 0


def test_a_trial_done_again_in_the_same_run_is_paid_once():
    """The run of trial 3 goes on with that of trial 1: its usage holds the earlier calls."""
    again = dataclasses.replace(trial(3, 0.5, paid=30, cached=10), run=1)
    found = result(trial(0, 0.5, paid=20), trial(1, paid=12, state="failed"), again)
    assert (found.used.calls, found.used.cached) == (50, 10)


def test_a_stopped_trial_is_judged_by_the_examples_it_met():
    """The whole trials had 0.25 on the two examples it answered and 0.5 on all four: they were hard ones."""
    whole = [dict(enumerate([0, 0, 1, 1])), dict(enumerate([1, 0, 1, 0]))]
    assert paired_score({0: 0, 1: 1}, whole) == pytest.approx(0.5 + 0.5 - 0.25)
    assert paired_score(dict(enumerate([1, 1, 1, 0])), whole) == 0.75
    assert paired_score({0: 1, 1: 1}, whole) == 1  # never above
    assert paired_score({0: 1, 1: 0}, []) == 0.5
    assert paired_score({0: 1, 9: 0}, whole) == 0.5  # nobody else answered example 9


def test_the_sampling_variance_is_that_within_trials():
    assert sampling_variance([{0: 0.0, 1: 1.0}, {0: 0.0, 1: 1.0}]) == pytest.approx(0.25)
    assert sampling_variance([{0: 1.0, 1: 1.0}]) == pytest.approx(1e-4)
    assert sampling_variance([]) == 0.25


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"task": "others"}, "exists with another task: sums, not others"),
        ({"strategy": "society"}, "exists with another strategy: town-hall, not society"),
        ({"n": 9}, "exists with another n: 4, not 9"),
        ({"objectives": ["score", "calls"]}, "exists with another objectives"),
        (
            {"space": [Dimension("personas", "int", 2, 9)]},
            "exists with another space: personas in 1..9, not personas in 2..9",
        ),
        ({"program": "d" * 64}, "exists with another program: cccccccccccccccc..., not dddddddddddddddd..."),
        ({"judge": "judge/model"}, "exists with another judge"),
        ({"adapter": "ChatAdapter"}, "exists with another adapter"),
    ],
)
def test_another_search_under_the_same_name_is_refused(change, problem):
    stored = DESCRIPTION.model_dump(mode="json")
    DESCRIPTION.check_same(stored, "s")
    with pytest.raises(InputError) as refused:
        DESCRIPTION.model_copy(update=change).check_same(stored, "s")
    assert problem in str(refused.value)
    assert "Use another --name" in str(refused.value)


def test_a_description_of_another_format_or_damaged_is_refused():
    stored = DESCRIPTION.model_dump(mode="json")
    with pytest.raises(InputError, match="study 's' has format 2; this townhall reads format 1"):
        DESCRIPTION.check_same({**stored, "format": 2}, "s")
    with pytest.raises(InputError, match="has format None"):
        DESCRIPTION.check_same("nonsense", "s")
    with pytest.raises(InputError, match="its description is damaged"):
        DESCRIPTION.check_same({**stored, "n": "many"}, "s")


def test_a_description_survives_being_written_down():
    space = [
        Dimension("summarise", "choice", choices=(False, True), default=False),
        Dimension("temperature", "float", 0.0, 1.0, 0.1),
    ]
    described = DESCRIPTION.model_copy(update={"space": space})
    assert StudyDescription.model_validate_json(described.model_dump_json()) == described
