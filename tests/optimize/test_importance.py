"""How much each dimension mattered."""

from __future__ import annotations

import itertools

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, IntDistribution

from townhall.optimize.importance import importances

SPACE = {"rounds": IntDistribution(1, 4), "style": CategoricalDistribution(["a", "b"])}


def study_of(score, *, attrs=lambda rounds, style: {}):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize")
    for rounds, style in itertools.product(range(1, 5), "ab"):
        study.add_trial(
            optuna.create_trial(
                params={"rounds": rounds, "style": style},
                distributions=SPACE,
                value=score(rounds, style),
                user_attrs=attrs(rounds, style),
            )
        )
    return study


def test_what_decides_about_the_score_has_the_greatest_share():
    shares = importances(study_of(lambda rounds, style: rounds / 4))
    assert next(iter(shares)) == "rounds"
    assert shares["rounds"] > 0.9
    assert sum(shares.values()) == pytest.approx(1)
    assert next(iter(importances(study_of(lambda rounds, style: float(style == "b"))))) == "style"


def test_repetitions_are_left_out():
    def again(rounds, style):
        return {"duplicate_of": 0} if rounds > 1 else {}

    assert importances(study_of(lambda rounds, style: rounds / 4, attrs=again)) == {}


def test_nothing_is_said_where_nothing_differs():
    assert importances(study_of(lambda rounds, style: 0.5)) == {}
    assert importances(optuna.create_study()) == {}


def test_the_score_is_what_counts_where_there_are_costs():
    study = optuna.create_study(directions=["maximize", "minimize"])
    for rounds, style in itertools.product(range(1, 5), "ab"):
        study.add_trial(
            optuna.create_trial(
                params={"rounds": rounds, "style": style},
                distributions=SPACE,
                values=[float(style == "b"), float(rounds)],
            )
        )
    assert next(iter(importances(study))) == "style"
