"""Where models keep what they fetch and find out: one cache folder, which `TOWNHALL_CACHE` moves."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_dir() -> Path:
    """Return the cache folder: `TOWNHALL_CACHE` when set, else the user's cache folder for townhall."""
    named = os.environ.get("TOWNHALL_CACHE")
    return Path(named).expanduser() if named else Path(platformdirs.user_cache_dir("townhall"))


def weights_dir() -> Path:
    """Return the folder of the embedded models' weights (it may not exist yet)."""
    return cache_dir() / "weights"
