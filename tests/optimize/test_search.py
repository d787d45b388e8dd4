"""Searching a shape: how many trials, on which examples, what is refused, what is found."""

from __future__ import annotations

import json
from typing import Any, Literal

import dspy
import pytest
from pydantic import Field, model_validator

from townhall.errors import InputError
from townhall.evaluation.budget import Budget
from townhall.evaluation.run_folder import load_run
from townhall.models.simulated import simulated_lm
from townhall.optimize import search as search_module
from townhall.optimize.search import SearchProgress, tune
from townhall.optimize.space import Dimension
from townhall.optimize.study import pareto_front


def shapes(study):
    return [tuple(trial.settings.values()) for trial in study.trials if trial.state in ("complete", "pruned")]


# -- how many --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", ["gp", "tpe", "random", "nsga2", "cmaes"])
def test_the_number_of_trials_is_the_number_in_all(fast_tune, sampler):
    assert len(fast_tune(trials=4, sampler=sampler).finished) == 4
    study = fast_tune(trials=9, sampler=sampler)
    assert len(study.finished) == 9
    assert len(set(shapes(study))) == 9
    # There are so many already: nothing is done.
    assert [trial.number for trial in fast_tune(trials=9, sampler=sampler).trials] == [
        trial.number for trial in study.trials
    ]


def test_repetitions_do_not_count_and_cost_nothing(fast_tune):
    study = fast_tune(trials=12, sampler="random", personas="4:6", rounds="1:4")
    states = [trial.state for trial in study.trials]
    assert states.count("complete") + states.count("pruned") == 12
    assert len(set(shapes(study))) == 12
    assert "duplicate" in states  # twelve points, drawn at random: some came twice
    for trial in study.trials:
        if trial.state == "duplicate":
            assert (trial.calls, trial.cached, trial.n) == (0, 0, 0)


def test_a_search_ends_when_the_whole_space_was_tried(fast_tune):
    study = fast_tune(trials=30, personas="4:5", rounds="2:3")
    assert sorted(shapes(study)) == [(4, 2), (4, 3), (5, 2), (5, 3)]
    assert study.stopped == "every point of the search space was tried"
    assert all(trial.state != "waiting" for trial in study.trials)


def test_the_grid_tries_every_point_once_in_a_shuffled_order(fast_tune):
    study = fast_tune(trials=100, sampler="grid", pruner="none", personas="2:6", rounds="1:2")
    assert len(study.trials) == 10
    assert len(set(shapes(study))) == 10
    assert shapes(study) != sorted(shapes(study))


def test_a_grid_is_continued_with_what_is_left(fast_tune):
    first = fast_tune(trials=4, sampler="grid", personas="2:6", rounds="1:2")
    assert len(first.finished) == 4
    second = fast_tune(trials=10, sampler="grid", personas="2:6", rounds="1:2")
    assert len(second.trials) == 10
    assert len(set(shapes(second))) == 10


def test_fewer_trials_than_there_are_waiting_ends_earlier(fast_tune, monkeypatch):
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    class Stop(SearchProgress):
        def finished(self, result, best):
            if result.number == 1:
                monkeypatch.setattr(search_module, "evaluate", interrupted)

    with pytest.raises(KeyboardInterrupt):
        fast_tune(trials=9, progress=Stop())
    study = fast_tune(trials=5)
    assert len(study.finished) == 5
    assert [trial.state for trial in study.trials].count("failed") == 1


# -- what is tried ---------------------------------------------------------------------------------------------------


def test_the_strategy_as_it_comes_is_tried_first(fast_tune, surface):
    assert fast_tune(trials=1).trials[0].settings == {"personas": 3, "rounds": 2}
    clipped = fast_tune(trials=1, name="clipped", personas="5:8")
    assert clipped.trials[0].settings == {"personas": 5, "rounds": 2}
    own = fast_tune(trials=1, name="own", strategy=surface.SurfaceSociety(personas=7, rounds=4))
    assert own.trials[0].settings == {"personas": 7, "rounds": 4}


def test_all_trials_answer_the_same_examples_in_the_same_order(fast_tune, surface, surface_task, monkeypatch):
    seen = []

    class Noting(surface.StandIn):
        def __call__(self, program, task, *, examples, **settings):
            seen.append([example.fingerprint for example in examples])
            return super().__call__(program, task, examples=examples, **settings)

    monkeypatch.setattr(surface, "StandIn", Noting)
    fast_tune(trials=3, limit=12, seed=4)
    expected = [example.fingerprint for example in surface_task.split("dev", limit=12, seed=4)]
    assert seen == [expected] * 3


def test_the_default_search_finds_the_peak_of_a_known_surface(fast_tune):
    study = fast_tune(trials=10, limit=100)
    assert study.best_trial.settings["rounds"] == 3
    assert study.best_trial.settings["personas"] in (4, 5, 6)
    assert study.best.config.personas == study.best_trial.settings["personas"]
    assert sum(trial.calls for trial in study.trials) <= 0.35 * 450 * 100


def test_a_resumed_search_chooses_as_an_unbroken_one(fast_tune):
    fast_tune(trials=4, name="broken")
    fast_tune(trials=7, name="broken")
    assert shapes(fast_tune(trials=10, name="broken")) == shapes(fast_tune(trials=10, name="unbroken"))


def test_a_trial_that_will_not_win_is_stopped_early_and_never_chosen(fast_tune):
    study = fast_tune(trials=12, limit=100)
    stopped = [trial for trial in study.trials if trial.state == "pruned"]
    assert stopped
    assert all(trial.n < 100 and trial.n % 3 == 0 for trial in stopped)
    assert study.best_trial.n == 100
    assert all(trial.state != "pruned" for trial in fast_tune(trials=12, pruner="none", name="all").trials)


# -- objectives ------------------------------------------------------------------------------------------------------


def test_costs_among_the_objectives_make_a_pareto_front(fast_tune, surface):
    study = fast_tune(trials=36, sampler="grid", pruner="none", limit=100, objectives=["score", "calls"])
    assert [trial.costs["calls"] for trial in study.front] == sorted({trial.costs["calls"] for trial in study.front})
    scores = [trial.score for trial in study.front]
    assert scores == sorted(scores)
    assert study.front == pareto_front(study.trials, ["score", "calls"])
    # Of the true front every point is found, or one that is as good within the examples' resolution.
    assert surface.covered(study, tolerance=0.02) == 1


@pytest.mark.parametrize("sampler", ["gp", "tpe", "nsga2", "nsga3"])
@pytest.mark.parametrize("pruner", ["wilcoxon", "halving"])
def test_every_multi_objective_sampler_runs_with_every_pruner(fast_tune, sampler, pruner):
    study = fast_tune(trials=6, sampler=sampler, pruner=pruner, objectives=["score", "calls", "seconds"])
    assert len(study.finished) == 6
    assert study.description.objectives == ["score", "calls", "seconds"]


def test_an_unknown_price_cannot_be_an_objective(fast_tune, surface, monkeypatch):
    class Priceless(surface.StandIn):
        def __call__(self, *arguments, on_record, **settings):
            def without_price(record):
                record.full_usage = record.full_usage.model_copy(update={"cost": None})
                return on_record(record)

            return super().__call__(*arguments, on_record=without_price, **settings)

    monkeypatch.setattr(surface, "StandIn", Priceless)
    with pytest.raises(InputError, match="the objective 'cost' is unknown for these models"):
        fast_tune(trials=2, objectives=["score", "cost"])


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"split": "test"}, "tuning never reads the test split"),
        ({"trials": 0}, "trials is 0; it must be at least 1"),
        ({"personas": "1:12"}, "personas=1:12: outside what the strategy allows, 1..9"),
        ({"objectives": ["beauty"]}, "unknown objective 'beauty'. Known: score, calls, tokens, cost, seconds"),
        ({"sampler": "tep"}, "unknown sampler 'tep'. Did you mean 'tpe'?"),
        ({"pruner": "axe"}, "unknown pruner 'axe'"),
        ({"name": "../elsewhere"}, "the study's name is '../elsewhere'; it names a folder"),
        ({"name": ""}, "the study's name is ''"),
        ({"storage": "study.db"}, "give a database URL"),
        ({"examples": []}, "there are no examples to tune on"),
        ({"role_lms": {"shout": []}}, "has no role 'shout'. Its roles: speak"),
    ],
)
def test_bad_searches_are_refused_before_anything_is_spent(fast_tune, tmp_path, settings, problem):
    if "role_lms" in settings:
        settings = {"role_lms": {"shout": [simulated_lm(name="simulated-a"), simulated_lm(name="simulated-b")]}}
    with pytest.raises(InputError) as refused:
        fast_tune(**settings)
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "elsewhere").exists()


def test_test_examples_are_refused_however_they_come(fast_tune, surface_task):
    given = [*surface_task.split("dev", limit=3), *surface_task.split("test", limit=1)]
    with pytest.raises(InputError, match="is of the test split, which tuning never reads"):
        fast_tune(examples=given)
    assert fast_tune(examples=given[:3], trials=1).description.n == 3


def test_a_study_of_something_else_under_the_same_name_is_refused(fast_tune, surface, tmp_path):
    class Louder(surface.SurfaceSociety):
        name = "louder"

    fast_tune(trials=1, name="mine")
    for settings, what in [
        ({"strategy": Louder()}, "another strategy: surface-society, not louder"),
        ({"personas": "2:5"}, "another space: personas in 1..9; rounds in 1..4, not personas in 2..5; rounds in 1..4"),
        ({"limit": 20}, "another examples"),
        ({"objectives": ["score", "calls"]}, "another objectives"),
        ({"lm": simulated_lm(name="simulated-other")}, 'another models: ["simulated-surface"], not'),
    ]:
        with pytest.raises(InputError) as refused:
            fast_tune(trials=1, **{"name": "mine", **settings})
        assert what in str(refused.value)
    assert len(fast_tune(trials=1, name="mine").trials) == 1


def test_a_study_that_others_made_is_refused(fast_tune, tmp_path):
    import optuna

    url = f"sqlite:///{tmp_path}/theirs.db"
    optuna.create_study(study_name="theirs", storage=url, direction="maximize").add_trial(
        optuna.create_trial(params={}, distributions={}, value=1.0)
    )
    with pytest.raises(InputError, match=r"study 'theirs' in .* was not made by townhall"):
        fast_tune(trials=1, name="theirs", storage=url)


def test_a_worker_needs_a_study_to_help_with(fast_tune, monkeypatch):
    monkeypatch.setattr(search_module, "PATIENCE", 0.0)
    with pytest.raises(InputError, match=r"there is no study 'surface-surface-society' in study\.db to help with"):
        fast_tune(worker=True)
    fast_tune(trials=2)
    study = fast_tune(worker=True, trials=50)  # its own number means nothing
    assert len(study.trials) == 2


# -- settings that the strategy refuses ------------------------------------------------------------------------------


def test_settings_that_the_strategy_refuses_do_not_count(fast_tune, surface):
    class Manners(surface.SurfaceConfig):
        manner: Literal["calm", "loud"] = "calm"

        @model_validator(mode="after")
        def _check(self) -> Any:
            if self.manner == "loud" and self.personas > 4:
                raise ValueError("more than four cannot be loud")
            return self

    class Mannered(surface.SurfaceSociety):
        name = "mannered"
        Config: Any = Manners

    study = fast_tune(strategy=Mannered(), trials=12, search=["manner"], sampler="random", personas="3:6")
    assert len(study.finished) == 12
    refused = [trial for trial in study.trials if trial.invalid]
    assert refused
    assert all(trial.settings["manner"] == "loud" and trial.settings["personas"] > 4 for trial in refused)
    assert all("more than four cannot be loud" in trial.problem for trial in refused)


def test_a_search_of_nothing_but_refused_settings_ends_with_the_reason(fast_tune, surface, monkeypatch):
    class Volumes(surface.SurfaceConfig):
        volume: int = Field(default=0, ge=0, le=99)

        @model_validator(mode="after")
        def _check(self) -> Any:
            if self.volume:
                raise ValueError("too loud")
            return self

    class Loud(surface.SurfaceSociety):
        name = "loud"
        Config: Any = Volumes

    with pytest.raises(InputError, match=r"the strategy refuses what is searched: .*too loud"):
        fast_tune(strategy=Loud(), trials=5, search=["volume"], personas="3:3", rounds="2:2")


# -- budgets ---------------------------------------------------------------------------------------------------------


def test_a_budget_holds_for_all_trials_together_and_over_restarts(surface, surface_task, tmp_path, monkeypatch):
    monkeypatch.setenv("TOWNHALL_CACHE", str(tmp_path / "cache"))
    calls = []

    def run(limit):
        return tune(
            surface_task,
            surface.SurfaceSociety(),
            trials=4,
            limit=6,
            pruner="none",
            lm=surface.model(on_call=lambda: calls.append(1)),
            folder=tmp_path,
            budget=Budget(calls=limit),
            concurrency=2,
        )

    study = run(50)
    assert len(calls) == 50
    # The first trial takes 3 personas * 2 rounds * 6 examples.
    # Others wait: the broken one, to be done again, and the one after it.
    *whole, broken = [trial for trial in study.trials if trial.state != "waiting"]
    assert (whole[0].state, whole[0].calls) == ("complete", 36)
    assert (broken.state, broken.calls) == ("failed", 50 - sum(trial.calls for trial in whole))
    assert study.stopped == f"the budget of {broken.calls} calls is used up"
    assert study.used.calls == 50
    again = run(50)
    assert again.stopped
    assert len(calls) == again.used.calls == 50
    study = run(100_000)
    assert len(study.whole) == 4
    assert study.stopped is None
    # No call was made twice, and none is missing in the account.
    alone = [personas * rounds * 6 for personas, rounds in shapes(study)]
    assert len(calls) == study.used.calls == sum(alone) - study.used.cached


# -- with the engine -------------------------------------------------------------------------------------------------


def test_trials_leave_runs_and_overlapping_ones_cost_only_what_is_new(surface, surface_task, tmp_path, monkeypatch):
    """Rounds 1 and 2 of the three-round debate are those of the two-round one with as many personas."""
    calls = []
    study = tune(
        surface_task,
        surface.SurfaceSociety(),
        trials=3,
        sampler="grid",
        pruner="none",
        limit=5,
        personas="4:4",
        rounds="1:3",
        lm=surface.model(on_call=lambda: calls.append(1)),
        folder=tmp_path,
        name="overlap",
    )
    assert len(study.whole) == 3
    assert len(calls) == 4 * 3 * 5
    replies = 4 * (1 + 2 + 3) * 5
    assert study.saved == pytest.approx((replies - len(calls)) / replies)
    assert study.used.calls == len(calls)
    assert study.used.cached == replies - len(calls)
    for trial in study.whole:
        run = load_run(tmp_path / "overlap" / "trials" / f"{trial.number:04d}")
        assert run.summary.status == "complete"
        assert run.info.settings["rounds"] == trial.settings["rounds"]
        assert trial.costs["calls"] == 4 * trial.settings["rounds"]
        assert trial.score == run.score
    written = json.loads((tmp_path / "overlap" / "study.json").read_text())
    assert written["name"] == "overlap"
    assert written["storage"] == "study.db"


def test_demonstrations_and_models_of_roles_are_searched(arithmetic, small, model_of, tmp_path):
    good, bad = model_of(arithmetic, 1.0), model_of(arithmetic, 0.0)
    good.model, bad.model = "simulated/good", "simulated/bad"
    program = small("society")
    shown = [dspy.Example(question="1 + 1", answer=2), dspy.Example(question="2 + 2", answer=4)]
    roles = [name for name, _ in program.named_predictors()]
    for _, predictor in program.named_predictors():
        predictor.demos = list(shown)
    study = tune(
        arithmetic,
        program,
        trials=12,
        sampler="grid",
        pruner="none",
        limit=3,
        agents="2:2",
        rounds="1:1",
        demos=2,
        role_lms={roles[0]: [good, bad]},
        lm=good,
        folder=tmp_path,
    )
    assert {trial.settings["demos"] for trial in study.whole} == {0, 1, 2}
    best = study.best_trial
    assert best.settings[f"model.{roles[0]}"] == "simulated/good"
    assert {trial.score for trial in study.whole if trial.settings[f"model.{roles[0]}"] == "simulated/bad"} == {0.0}
    built = dict(study.best.named_predictors())[roles[0]]
    assert built.lm is good
    assert len(built.demos) == best.settings["demos"]
    with pytest.raises(InputError, match="models are searched by role or given by agent, not both"):
        tune(arithmetic, program, trials=1, limit=2, lms=[good, bad], role_lms={roles[0]: [good, bad]}, folder=tmp_path)


def test_a_name_makes_the_strategy_with_the_tasks_demonstrations(arithmetic, model_of, tmp_path):
    study = tune(
        arithmetic, "society", trials=2, limit=3, agents="2:3", rounds="1:1", lm=model_of(arithmetic), folder=tmp_path
    )
    assert study.name == "arithmetic-society"
    assert study.description.space == [
        Dimension("agents", "int", 2, 3, default=study.description.space[0].default),
        Dimension("rounds", "int", 1, 1, default=study.description.space[1].default),
    ]
    assert len(study.finished) == 2
