"""Fixtures that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of private evaluation data; the test skips where it is absent."""
    named = os.environ.get("TOWNHALL_SHARED")
    candidates = [Path(named)] if named else [Path(__file__).parents[2] / "shared", Path.cwd().parent / "shared"]
    for folder in candidates:
        if (folder / "data" / "README.md").exists():
            return folder
    pytest.skip("the private evaluation data is not here (set TOWNHALL_SHARED to its folder)")
