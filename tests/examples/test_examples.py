"""The example scripts run as they are, on the simulated model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def output(tmp_path):
    """Return `output(script) -> lines` for a script that must end well and leave nothing where it ran."""

    def run(script):
        here = tmp_path / "here"
        here.mkdir()
        done = subprocess.run(
            [sys.executable, EXAMPLES / script],
            cwd=here,
            env={**os.environ, "TOWNHALL_CACHE": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert not list(here.iterdir())
        return done.stdout.splitlines()

    return run


def test_a_strategy_of_ones_own_is_evaluated_and_compared(output):
    single, second, difference = output("custom_strategy.py")
    # Ten questions: one call each, and two each.
    assert re.fullmatch(r"single: accuracy [01]\.\d\d in 10 calls", single)
    assert re.fullmatch(r"second-opinion: accuracy [01]\.\d\d in 20 calls", second)
    assert re.match(r"difference [+-]\d\.\d\d, 95 % interval", difference)


def test_a_debate_in_python_shows_its_turns_votes_and_answer(output):
    lines = output("debate_in_python.py")
    roles = [
        match.group(1) for line in lines if (match := re.match(r"round \d.*\((\w+), simulated/(?:one|two)\)", line))
    ]
    assert roles == ["identify", *["argue"] * 3, *["rebut"] * 3, *["vote"] * 3]
    assert sum("votes for candidate" in line for line in lines) == 3
    # 12 + 15 * 21 + 0 - 3 * 27
    assert "the town hall says 246, in 10 calls" in lines
    assert lines[-1].startswith("the society says ")
