"""Stages: in a world whose prompts and shapes have known effects, what is kept, put back, searched and paid for.

The world (a society of 3 agents and 2 rounds to begin with, 10 dev questions, all agents alike): a question below the
first answer's level is answered rightly, and stays right; the revision also gets those below its own level right, which
depends on how many others are read. A role's new prompt says MARK, its name, and the number of agents it was made for.

    first answer   4, marked 6, marked for 4 agents 8
    revision       4; of 4 agents 7; marked, question 0 is wrong
    hence          4/10; `solve` marked 6/10; `revise` marked too 5/10; 4 agents 7/10; marked again there 8/10
"""

from __future__ import annotations

from typing import ClassVar

import pytest

from townhall.errors import BudgetExceededError, InputError
from townhall.evaluation.budget import Budget
from townhall.models.simulated import simulated_lm
from townhall.optimize.artifact import load, load_info
from townhall.optimize.freezing import roles_of
from townhall.optimize.held_out import hold_out
from townhall.optimize.stage_bench import portion
from townhall.optimize.staged import StagesProgress, optimise_in_stages
from townhall.optimize.teleprompters.base import TELEPROMPTERS, Teleprompter

#: Calls that measuring takes in the shape of the beginning: 10 questions, 3 agents, 2 rounds.
MEASURING = 60


class Marking(Teleprompter):
    """Writes the role's name, and the shape where it is to, into the instructions; it calls no model."""

    name: ClassVar[str] = "marking"
    summary: ClassVar[str] = "for tests"
    shape = True
    dull: ClassVar[tuple[str, ...]] = ()

    def most_debates(self, sizes, *, roles, train, dev):
        return 0

    def run(self, work):
        for role, predictor in roles_of(work.program).items():
            if role not in self.dull:
                made_for = f" for {work.program.config.agents}" if self.shape else ""
                predictor.signature = predictor.signature.with_instructions(f"MARK {role}{made_for}.")
        return work.program


@pytest.fixture
def marking(monkeypatch):
    """The teleprompter, registered."""
    TELEPROMPTERS.names()
    monkeypatch.setitem(TELEPROMPTERS._items, "marking", Marking)
    return monkeypatch


@pytest.fixture
def splits(arithmetic):
    return hold_out(arithmetic, train_limit=6, dev_limit=10, test_limit=10)


@pytest.fixture
def model(splits):
    """Return `make(name) -> lm`, a model of the world; `lm.asked` has the questions."""
    known = {example.question: (number, example.gold) for number, example in enumerate(splits.dev)}
    known |= {example.question: (0, example.gold) for example in splits.train}

    def make(name="simulated", **settings):
        asked = set()

        def reply(call):
            asked.add(call.question)
            number, gold = known[call.question]
            solved = 4 + 2 * ("MARK solve" in call.text) + 2 * ("MARK solve for 4" in call.text)
            if "own_answer" not in call.inputs:
                right = number < solved
            else:
                others = call.inputs["other_answers"].count("Another agent")
                right = str(gold) in call.inputs["own_answer"].split() or number < (7 if others == 3 else 4)
                right = right and not ("MARK revise" in call.text and number == 0)
            return {"reasoning": "as told", "answer": gold if right else gold + 1}

        lm = simulated_lm(reply, name=name, temperature=0.7, **{"cache": False, **settings})
        lm.asked = asked
        return lm

    return make


@pytest.fixture
def run(arithmetic, splits, tmp_path, marking):
    """Return `run(lm, **settings) -> Staged`."""

    def go(lm, **settings):
        wanted = {
            "teleprompter": "marking",
            "splits": splits,
            "agents": "2:5",
            "rounds": "2:2",
            "sampler": "grid",
            "pruner": "none",
            "trials": 4,
            "folder": tmp_path / "studies",
            "concurrency": 1,
        }
        return optimise_in_stages(arithmetic, "society", lm=lm, **{**wanted, **settings})

    return go


def outcomes(staged):
    return {step.name: (step.outcome, step.gain and round(step.gain.estimate, 6)) for _, step in staged.rows}


def test_what_gains_is_kept_and_what_does_not_is_put_back(run, model):
    staged = run(model())
    assert staged.baseline == 0.4
    assert outcomes(staged) == {
        "prompts": ("kept", 0.2),
        "solve": ("kept", 0.2),
        "revise": ("did not pay", -0.1),
        "summarise": ("not tried", None),  # nobody sums up: other words of that role change nothing
        "shape": ("kept", 0.1),
        "prompts again": ("kept", 0.1),
    }
    assert [round(stage.score, 6) for stage in staged.stages] == [0.6, 0.7, 0.8]
    told = {role: predictor.signature.instructions for role, predictor in staged.best.named_predictors()}
    assert told["solve"] == "MARK solve for 4."
    assert "MARK" not in told["revise"] + told["summarise"]
    assert staged.best.config.agents == 4


def test_gains_have_paired_intervals_that_say_how_sure_they_are(run, model):
    solve = run(model()).stages[0].roles[0]
    # 10 questions of which 2 became right and none wrong: far too few to be sure (exact McNemar: 2 * 1/4 = 0.5).
    assert (solve.gain.n, solve.gain.p_value, solve.gain.test) == (10, 0.5, "exact McNemar")
    assert solve.gain.low < 0 < solve.gain.estimate < solve.gain.high
    assert not solve.certain


def test_calls_are_counted_by_stage_and_role(run, model):
    lm = model()
    staged = run(lm)
    assert [step.usage.calls for step in staged.stages[0].roles] == [MEASURING, MEASURING, 0]
    # With the measurement of the beginning; shapes of 2 to 5 agents; 4 agents.
    assert [stage.usage.calls for stage in staged.stages] == [3 * MEASURING, 20 * (2 + 3 + 4 + 5), 80]
    assert staged.used.calls == lm.engine.calls == 540
    assert staged.used.tokens > 0


def test_test_questions_are_never_asked(run, model, arithmetic, splits):
    lm = model()
    run(lm)
    assert lm.asked == {example.question for example in splits.dev}
    assert len(splits.test) == 10


def test_prompts_that_stay_as_they_were_are_no_gain_and_cost_no_measurement(run, model, marking):
    marking.setattr(Marking, "shape", False)
    again = run(model()).stages[2]
    assert (again.outcome, again.gain.estimate, again.usage.calls) == ("did not pay", 0.0, 0)
    assert again.note == "the prompts stayed as they were"


def test_without_any_gain_the_program_stays_and_nothing_is_compiled_again(run, model, marking):
    marking.setattr(Marking, "dull", ("solve",))
    staged = run(model(), agents="2:3", trials=2)
    assert [stage.outcome for stage in staged.stages] == ["did not pay", "did not pay", "not tried"]
    assert staged.stages[0].gain.estimate == staged.stages[1].gain.estimate == 0
    assert staged.stages[2].note == "no role gained from new prompts in the first stage"
    assert staged.report is None
    assert staged.best is staged.before


def test_a_shape_of_the_same_score_is_not_kept_however_cheap(run, model, marking):
    marking.setattr(Marking, "dull", ("solve",))
    staged = run(model(), agents="2:3", trials=2)
    assert staged.study.best_trial.settings["agents"] == 2
    assert staged.best.config.agents == 3


def test_only_models_of_roles_that_gained_are_searched(run, model):
    lm, other = model("simulated/one"), model("simulated/two")
    staged = run(
        lm, role_lms={"solve": [lm, other], "revise": [lm, other]}, agents="3:3", trials=2, demos=1, sampler="random"
    )
    assert set(staged.study.description.dimensions) == {"agents", "rounds", "demos", "model.solve"}
    assert staged.stages[1].note == "not searched, for the prompts gained nothing there: model.revise"


def test_without_a_gain_the_number_of_demonstrations_is_not_searched(run, model, marking):
    marking.setattr(Marking, "dull", ("solve",))
    staged = run(model(), agents="2:3", demos=2, trials=2)
    assert set(staged.study.description.dimensions) == {"agents", "rounds"}
    assert staged.stages[1].note.startswith("not searched, for the prompts gained nothing there: demos")


def test_where_nothing_is_left_to_search_the_shape_stays(arithmetic, splits, model, marking, tmp_path):
    """A single agent has no counts; its demonstrations alone are searched, and without a gain not even these."""
    marking.setattr(Marking, "dull", ("solve",))
    staged = optimise_in_stages(
        arithmetic, "single", teleprompter="marking", lm=model(), splits=splits, demos=2, trials=2, folder=tmp_path
    )
    assert (staged.stages[1].outcome, staged.study) == ("not tried", None)
    assert staged.stages[1].usage.calls == 0


def test_only_some_roles_are_compiled(run, model):
    staged = run(model(), only=["revise"])
    assert [step.name for step in staged.stages[0].roles] == ["revise"]
    assert "MARK" not in staged.best.solve.signature.instructions


def test_the_search_begins_with_the_shape_nearest_to_the_strategys_own(run, model):
    staged = run(model(), agents="4:5", trials=2)
    assert staged.before.config.agents == 4
    assert staged.baseline == 0.7


# -- budgets ----------------------------------------------------------------------------------------------------------


def test_a_portion_is_rounded_down_and_never_nothing():
    assert portion(Budget(calls=10, tokens=99, cost=2.0), 0.35) == Budget(calls=3, tokens=34, cost=0.7)
    assert portion(Budget(calls=300), 0.1 + 0.2) == Budget(calls=90)
    assert portion(Budget(), 0.5) == Budget()
    with pytest.raises(BudgetExceededError, match="less than one call"):
        portion(Budget(calls=2), 0.4)


def test_what_a_stage_leaves_goes_to_the_next(run, model):
    # 540 calls in all. 224 suffice for the first stage, which uses 180; its own 256 do not for the second's 280.
    lm = model()
    staged = run(lm, budget=Budget(calls=640), shares=(0.35, 0.4, 0.25))
    assert [stage.outcome for stage in staged.stages] == ["kept", "kept", "kept"]
    assert lm.engine.calls == 540


def test_roles_share_what_the_first_stage_has(run, model):
    # 60 calls measure the beginning; a role needs more than 60 for its measurement. 122 / 2 = 61.
    staged = run(model(), budget=Budget(calls=1000), shares=(0.182, 0.5, 0.318))
    assert [step.outcome for step in staged.stages[0].roles] == ["kept", "did not pay", "not tried"]


def test_a_role_whose_part_does_not_pay_for_its_measurement_leaves_it_to_the_others(run, model):
    # 121 / 2 = 60: too little. The next has all 121.
    staged = run(model(), budget=Budget(calls=1000), shares=(0.181, 0.5, 0.319))
    solve, revise, summarise = staged.stages[0].roles
    assert (solve.outcome, solve.usage.calls) == ("not tried", 0)
    assert "the budget of 60 calls is used up" in solve.note
    assert [revise.outcome, summarise.outcome] == ["did not pay", "not tried"]


def test_a_small_budget_ends_stages_early_and_is_never_exceeded(run, model):
    lm = model()
    staged = run(lm, budget=Budget(calls=200), shares=(0.5, 0.25, 0.25), agents="2:3")
    # 100 calls: 60 for the beginning, 40 for roles that need 60. 150 calls: 90 left; all of it for trials.
    assert [step.outcome for step in staged.stages[0].roles] == ["not tried"] * 3
    assert staged.stages[0].outcome == "not tried"
    assert [stage.usage.calls for stage in staged.stages] == [60, 90, 0]
    assert "budget" in staged.stages[1].note
    assert lm.engine.calls == 150
    assert staged.best is staged.before


def test_where_not_even_the_beginning_can_be_measured_nothing_is_tried(run, model):
    lm = model()
    staged = run(lm, budget=Budget(calls=30))
    assert [stage.outcome for stage in staged.stages] == ["not tried"] * 3
    assert all("could not be measured" in stage.note for stage in staged.stages)
    assert (lm.engine.calls, staged.used.calls, staged.baseline) == (30, 30, None)


# -- again ------------------------------------------------------------------------------------------------------------


def test_the_same_call_again_asks_nothing_and_finds_the_same(run, model):
    lm = model()
    first = run(lm)
    second = run(lm)
    assert lm.engine.calls == 540
    assert [stage.model_dump(exclude={"note"}) for stage in second.stages] == [
        stage.model_dump(exclude={"note"}) for stage in first.stages
    ]
    assert second.best.config == first.best.config


@pytest.mark.parametrize("last", ["solve", "summarise", "shape"])
def test_a_search_that_was_broken_off_goes_on_without_paying_twice(run, model, last):
    class Breaks(StagesProgress):
        def finished(self, step):
            if step.name == last:
                raise KeyboardInterrupt

    lm = model()
    with pytest.raises(KeyboardInterrupt):
        run(lm, progress=Breaks())
    assert 0 < lm.engine.calls < 540
    staged = run(lm)
    assert lm.engine.calls == staged.used.calls == 540
    assert [stage.outcome for stage in staged.stages] == ["kept", "kept", "kept"]


def test_a_larger_budget_goes_on_from_where_a_smaller_one_ended(run, model):
    lm = model()
    # Stages end at 12, 18 and 30 calls: no question is left half answered.
    run(lm, budget=Budget(calls=30), shares=(0.4, 0.2, 0.4))
    assert lm.engine.calls == 30
    staged = run(lm, budget=Budget(calls=1000))
    assert [stage.outcome for stage in staged.stages] == ["kept", "kept", "kept"]
    assert lm.engine.calls == staged.used.calls == 540


# -- with a teleprompter that calls models ----------------------------------------------------------------------------


def test_debates_that_make_demonstrations_are_paid_once_and_counted(run, model, tmp_path):
    lm = model(cache=True)
    settings = {"teleprompter": "bootstrap", "sizes": {"demos": 1, "train": 3}, "agents": "3:3", "trials": 1}
    staged = run(lm, **settings)
    # Demonstrations teach this world nothing. The first debate of each role is won: 3 agents, 2 rounds.
    solve, revise, summarise = staged.stages[0].roles
    assert (solve.outcome, solve.gain.estimate) == ("did not pay", 0.0)
    # The first answers are new then, and the revisions, being right and wrong as before, come from the cache.
    assert (solve.usage.calls, solve.usage.cached) == (6 + MEASURING // 2, MEASURING // 2)
    # The same debate makes the demonstrations of the revision, before which the first answers are the same.
    assert (revise.usage.calls, revise.usage.cached) == (MEASURING // 2, 6 + MEASURING // 2)
    # Nobody ever sums up: nothing is spent on how it is done.
    assert (summarise.outcome, summarise.gain, summarise.usage.calls) == ("not tried", None, 0)
    assert summarise.note == "no dev example asks it in this shape"
    assert staged.used.calls == lm.engine.calls
    assert [len(predictor.demos) for _, predictor in staged.best.named_predictors()] == [
        len(predictor.demos) for _, predictor in staged.before.named_predictors()
    ]
    paid = lm.engine.calls
    assert run(lm, **settings).used == staged.used
    assert lm.engine.calls == paid


# -- saving and bad input ---------------------------------------------------------------------------------------------


def test_the_artifact_records_the_stages(run, model, tmp_path):
    staged = run(model())
    staged.save(tmp_path / "artifact")
    info = load_info(tmp_path / "artifact")
    assert [stage["name"] for stage in info.tuning["stages"]] == ["prompts", "shape", "prompts again"]
    assert info.tuning["stages"][0]["roles"][1]["outcome"] == "did not pay"
    assert info.tuning["best_shape"]["agents"] == 4
    assert info.tuning["calls"] == 540
    assert info.compilation.only == ["solve"]
    assert [model["name"] for model in info.models] == ["simulated"]
    assert load(tmp_path / "artifact").solve.signature.instructions == "MARK solve for 4."


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"shares": (0.5, 0.5)}, "give three above 0 that add up to 1"),
        ({"shares": (0.5, 0.6, 0.1)}, "give three above 0 that add up to 1"),
        ({"shares": (1.0, 0.2, -0.2)}, "give three above 0 that add up to 1"),
        ({"teleprompter": "ensemble"}, "which have no shape to search"),
        ({"teleprompter": "markng"}, "Did you mean 'marking'"),
        ({"teleprompter": "gepa"}, "gepa needs a reflection model"),
        ({"sizes": {"demos": 3}}, "has no size 'demos'"),
        ({"trials": 0}, "trials is 0"),
        ({"agents": "1:3"}, "outside what the strategy allows"),
        ({"only": ["vote"]}, "has no role 'vote'"),
        ({"name": "a/b"}, "names a folder"),
    ],
)
def test_bad_input_is_refused_before_any_call(run, model, settings, problem):
    lm = model()
    with pytest.raises(InputError, match=problem):
        run(lm, **settings)
    assert lm.engine.calls == 0


def test_models_of_roles_exclude_models_of_agents(run, model):
    lm = model()
    with pytest.raises(InputError, match="by role or given by agent"):
        run(lm, lms=[lm, lm], role_lms={"solve": [lm, lm]})
    with pytest.raises(InputError, match="has no role 'vote'"):
        run(lm, role_lms={"vote": [lm, lm]})
