"""Getting a task by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .base import TASKS, Task


def task(name: str, data: str | Path | None = None, **options: Any) -> Task:
    """Return a task, ready to give its examples.

    Args:
        name: a registered name, such as "gsm8k".
        data: a JSONL, JSON, CSV or Parquet file; "hub" or "hub:REPO"; "generated"; None for the task's default.
        **options: the task's own options, typed or as the command line has them (`count=50` or `count="50"`);
            `option_help` of the task's class lists them.

    Raises:
        InputError: for an unknown task or option, or an option's bad value.

    Example:
        >>> arithmetic = task("arithmetic", count=2, seed=7)
        >>> len(arithmetic.examples)
        2
    """
    return TASKS.get(name)(data, **options)
