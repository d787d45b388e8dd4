"""The benchmark on a known surface: its stand-in computes what the engine finds, and its check can fail."""

from __future__ import annotations

import argparse

import pytest

ONE = ["--seeds", "1", "--sampler", "gp", "--pruner", "wilcoxon"]


def test_the_default_search_passes_its_own_check(surface, capsys):
    assert surface.main(["--check", "--no-engine", *ONE]) == 0
    printed = capsys.readouterr().out
    assert "SIMULATED" in printed
    assert "1 of 1" in printed


def test_a_search_that_misses_the_mark_fails_the_check(surface, capsys):
    assert surface.main(["--check", "--no-engine", "--trials", "1", *ONE]) == 1
    assert "missed: fewer than 9 of 10 seeds within 1 point" in capsys.readouterr().out


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_stand_in_finds_what_the_engine_finds(surface, surface_task, noise):
    options = argparse.Namespace(noise=noise, task=surface_task, trials=5, examples=12)
    computed, made = (surface.search(options, "gp", "wilcoxon", 3, engine=engine) for engine in (False, True))
    assert (made.regret, made.highest, made.calls, made.saved) == (
        computed.regret,
        computed.highest,
        computed.calls,
        computed.saved,
    )
    assert [trial.scores for trial in made.study.trials] == [trial.scores for trial in computed.study.trials]


def test_the_surface_is_what_the_benchmark_says(surface):
    assert surface.surface(5, 3) == max(surface.surface(*shape) for shape in surface.SHAPES) == 0.80
    near = [shape for shape in surface.SHAPES if surface.surface(*shape) >= 0.79]
    assert near == [(4, 3), (5, 3), (6, 3)]
    assert surface.GRID == 450
    assert surface.GRID_CACHED == 180
    questions = [f"question {number}" for number in range(4000)]
    for noise in (0.0, 0.3):
        share = sum(surface.right(question, 5, 3, noise) for question in questions) / len(questions)
        assert share == pytest.approx(0.80, abs=0.02)


def test_the_true_front_is_cheapest_first_and_rises(surface):
    front = surface.true_front()
    assert front[0] == (1, surface.surface(1, 1))
    assert front[-1] == (15, 0.80)
    assert front == sorted(front)
    assert [score for _, score in front] == sorted(score for _, score in front)
