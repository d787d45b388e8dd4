"""The growth laws that the token benchmark shows."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def tokens():
    spec = importlib.util.spec_from_file_location(
        "tokens_benchmark", Path(__file__).parents[2] / "benchmarks" / "tokens.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_concatenation_grows_with_agents_squared_and_summaries_with_agents(tokens):
    rows = tokens.measure([2, 4, 8], [1, 2, 3, 4], question_words=20, reply_words=100, summary_words=50)
    fits = {fit["variant"]: fit for fit in tokens.exponents(rows)}
    growth = {name: fit["exchanged_tokens_by_agents"] for name, fit in fits.items()}
    assert growth == pytest.approx({"all rounds": 2, "last round": 2, "summarised": 1}, abs=0.05)
    growth = {name: fit["exchanged_tokens_by_revisions"] for name, fit in fits.items()}
    assert growth == pytest.approx({"all rounds": 1.63, "last round": 1, "summarised": 1}, abs=0.05)
    dearest = {row["variant"]: row["prompt_tokens"] for row in rows if (row["agents"], row["rounds"]) == (8, 4)}
    assert dearest["summarised"] < dearest["last round"] < dearest["all rounds"]


def test_the_slope_of_a_power_law_is_its_exponent(tokens):
    assert tokens.slope([(x, 3 * x**2) for x in (1, 2, 5)]) == pytest.approx(2)
