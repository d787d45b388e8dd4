"""Published experiments: their figures, and ours beside them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pydantic import ValidationError

from townhall.errors import InputError
from townhall.evaluation.assembly import program
from townhall.evaluation.budget import Budget
from townhall.evaluation.reproduction import (
    Experiment,
    default_folder,
    experiment,
    papers,
    read_reproduction,
    reproduce,
    slug,
)
from townhall.metrics.factuality import lm_judge
from townhall.models.simulated import simulated_lm
from townhall.tasks.base import TASKS

EXPERIMENTS = [f"{paper}/{one}" for paper, found in papers().items() for one in found.experiments]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_arm_is_a_program_of_its_task(name):
    _, found = experiment(name)
    for arm in found.arms.values():
        task = TASKS.get(found.task)(None, **{**found.task_options, **arm.task_options})
        made = program(task, arm.strategy, **arm.settings)
        for setting, value in arm.settings.items():
            held = getattr(made.config, setting)
            assert held == value or setting == "persona_list"
    assert len({slug(arm) for arm in found.arms}) == len(found.arms)


@pytest.mark.parametrize(
    ("name", "model_", "arm", "score", "value", "spread"),
    [
        ("society/arithmetic", "gpt-3.5-turbo-0301", "debate", "accuracy", 0.818, 0.023),
        ("society/chess-move", "gpt-3.5-turbo-0301", "debate", "pawn_score", 1.229, 0.076),
        ("society/mmlu", "gpt-3.5-turbo-0301", "debate-experts", "accuracy", 0.742, None),
        ("town-hall/grid", "gpt-4o", "town-hall-prompt", "cell", 0.49, None),
        ("town-hall/grid", "claude-3.5-sonnet", "chain-of-thought", "hard", 0.109, None),
        ("alignment/normad", "mean of 21 pairs", "debate-only", "accuracy", 0.763, None),
        ("alignment/normad", "mean of 21 pairs", "debate-only", "parity", 0.972, None),
    ],
)
def test_published_figures_are_in_the_units_of_runs(name, model_, arm, score, value, spread):
    rows = read_reproduction(name, "nowhere").rows
    (row,) = [row for row in rows if (row.model, row.arm, row.score) == (model_, arm, score)]
    assert row.published == pytest.approx(value)
    assert row.spread == (pytest.approx(spread) if spread is not None else None)
    assert row.ours is None


def test_a_published_gain_is_no_score():
    rows = [row for row in read_reproduction("town-hall/mcq", "nowhere").rows if row.over is not None]
    assert {(row.model, row.over, row.published) for row in rows} == {
        ("gpt-4o-mini", "chain-of-thought", 0.035),
        ("gpt-4o", "chain-of-thought", 0.04),
        ("claude-3.5-sonnet", "chain-of-thought", 0.08),
    }


def test_what_was_read_off_a_plot_is_marked():
    assert all(row.approximate for row in read_reproduction("society/agents", "nowhere").rows)
    assert not any(row.approximate for row in read_reproduction("society/gsm8k", "nowhere").rows)


def test_a_figure_of_an_arm_that_is_not_there_is_refused():
    with pytest.raises(ValidationError, match="a figure is of the arm 'other'"):
        Experiment(title="t", where="w", task="arithmetic", arms={"one": {"strategy": "single"}},
                   figures=[{"model": "m", "arm": "other", "percent": {"accuracy": 1}}])  # fmt: skip


def test_ours_stand_beside_the_published_ones_and_nothing_is_asked_twice(tmp_path):
    lm = simulated_lm(name="simulated/reproduction", record=True, cache=False)
    found = reproduce("society/arithmetic", lm=lm, limit=4, out=tmp_path / "runs")
    assert list(found.runs) == ["single", "reflection", "majority", "debate"]
    for row in found.rows:
        assert row.n == 4
        assert row.ours == found.runs[row.arm].score
        assert row.low <= row.ours <= row.high
    # One call, two more to reflect, three samples, three agents in two rounds: for each of four questions.
    assert {arm: run.usage.calls for arm, run in found.runs.items()} == {
        "single": 4, "reflection": 12, "majority": 12, "debate": 24
    }  # fmt: skip
    assert found.usage.calls == lm.engine.calls == 52
    assert found.simulated
    again = reproduce("society/arithmetic", lm=lm, limit=4, out=tmp_path / "runs")
    assert lm.engine.calls == 52
    assert again.rows == found.rows == read_reproduction("society/arithmetic", tmp_path / "runs").rows


def test_arms_can_be_run_one_by_one(tmp_path):
    lm = simulated_lm(name="simulated/reproduction", cache=False)
    found = reproduce("society/arithmetic", lm=lm, limit=3, arms=["majority"], out=tmp_path)
    assert list(found.runs) == ["majority"]
    assert [row.arm for row in found.rows if row.ours is not None] == ["majority"]
    assert list(reproduce("society/arithmetic", lm=lm, limit=3, arms=["single"], out=tmp_path).runs) == [
        "single", "majority"
    ]  # fmt: skip


def test_an_arm_without_a_published_figure_is_shown_too(tmp_path):
    lm = simulated_lm(name="simulated/reproduction", cache=False)
    found = reproduce("town-hall/grid", lm=lm, limit=2, data="generated", task_options={"sizes": "2x2", "count": 4},
                      settings={"personas": 2, "rounds": 1}, arms=["town-hall"], out=tmp_path)  # fmt: skip
    (row,) = [row for row in found.rows if row.ours is not None]
    assert (row.arm, row.score, row.published, row.model) == ("town-hall", "puzzle", None, "")


def test_a_gain_is_paired_over_the_examples_of_both(tmp_path):
    lm = simulated_lm(name="simulated/reproduction", cache=False)
    found = reproduce("town-hall/mcq", lm=lm, limit=3, data="generated", task_options={"sizes": "2x2", "count": 6},
                      arms=["chain-of-thought", "town-hall-prompt"], out=tmp_path)  # fmt: skip
    base, hall = (
        {record.id: record.score for record in found.runs[arm].records}
        for arm in ("chain-of-thought", "town-hall-prompt")
    )
    gain = sum(hall[key] - base[key] for key in base) / 3
    rows = [row for row in found.rows if row.over is not None]
    assert [row.ours for row in rows] == [pytest.approx(gain)] * 3
    assert all(row.n == 3 for row in rows)


def test_a_budget_holds_for_all_arms_together(tmp_path):
    lm = simulated_lm(name="simulated/reproduction", cache=False)
    found = reproduce("society/arithmetic", lm=lm, limit=4, budget=Budget(calls=10), out=tmp_path)
    assert {arm: run.summary.status for arm, run in found.runs.items()} == {
        "single": "complete", "reflection": "stopped"
    }  # fmt: skip
    assert found.usage.calls <= 10
    assert found.stopped == "the budget of 10 calls is used up"
    exact = reproduce("society/arithmetic", lm=lm, limit=4, budget=Budget(calls=4), out=tmp_path / "exact")
    assert list(exact.runs) == ["single"]
    assert exact.stopped is not None
    more = reproduce("society/arithmetic", lm=lm, limit=4, budget=Budget(calls=100), out=tmp_path)
    assert more.stopped is None
    assert all(run.summary.status == "complete" for run in more.runs.values())


@pytest.mark.parametrize(
    ("name", "arms", "text"),
    [
        ("society/gsm", [], "no experiment 'society/gsm'. Did you mean 'society/gsm8k'?"),
        ("society/arithmetic", ["debat"], "has no arm 'debat'. Did you mean 'debate'? Its arms: single; reflection"),
    ],
)
def test_what_is_not_there_gives_the_nearest(name, arms, text, tmp_path):
    with pytest.raises(InputError) as caught:
        reproduce(name, arms=arms, out=tmp_path)
    assert text in str(caught.value)


def test_runs_are_in_a_folder_of_the_experiments_name():
    assert str(default_folder("society/gsm8k")) == "runs/reproduce/society-gsm8k"
    assert slug("single, country only") == "single-country-only"


#: Where the experiments that are not generated find examples among the private data.
DATA = {
    "gsm8k": "gsm8k/test.jsonl",
    "mmlu": "mmlu/mmlu_redux_399.jsonl",
    "normad": "normad/normad_eti.jsonl",
    "chess-move": "chess/next_move_60.jsonl",
    "zebra-grid": "zebra/extra_grid_200.jsonl",
    "zebra-mcq": "zebra/extra_mcq_200.jsonl",
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_published_score_is_one_that_its_runs_have(name, shared, tmp_path):
    _, found = experiment(name)
    if found.task == "chess-move":
        pytest.importorskip("chess")
        if shutil.which("stockfish") is None and not Path("/usr/games/stockfish").exists():
            pytest.skip("Stockfish is not installed")
    lm = simulated_lm(name="simulated/reproduction")
    data = str(shared / "data" / DATA[found.task]) if found.task in DATA else None
    quick = {"depth": 2} if found.task == "chess-move" else {}
    done = reproduce(name, lm=lm, limit=1, data=data, task_options=quick, out=tmp_path,
                     ready=lambda task: judged(task, lm))  # fmt: skip
    assert done.stopped is None
    for figure in found.figures:
        if figure.over is None:
            assert set(figure.scores) <= set(done.runs[figure.arm].scores), figure


def judged(task, lm):
    if "judge" in vars(task):
        vars(task)["judge"] = lm_judge(lm)
    task.check_scoring()
