"""Keeping what took the solver time: one small JSON file each, in the user's cache folder.

The cache is a convenience: what cannot be written is not kept, and what cannot be read is made anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import InputError


def cache_folder() -> Path:
    """Return where puzzles are kept: `zebra` in the folder `TOWNHALL_CACHE`, else in the user's cache folder."""
    import platformdirs

    named = os.environ.get("TOWNHALL_CACHE")
    return (Path(named).expanduser() if named else Path(platformdirs.user_cache_dir("townhall"))) / "zebra"


def kept(name: str, make: Callable[[], Any], valid: Callable[[Any], bool]) -> Any:
    """Return the JSON data kept under a name; make and keep it when there is none, or none that is valid.

    Args:
        name: a relative path, without the ending.
        make: makes the data.
        valid: whether data that was read can be used; TypeError, LookupError, ValueError and InputError mean "no".
    """
    path = cache_folder() / f"{name}.json"
    with contextlib.suppress(OSError, TypeError, LookupError, ValueError, InputError):
        data = json.loads(path.read_text(encoding="utf-8"))
        if valid(data):
            return data
    data = make()
    with contextlib.suppress(OSError):
        _write(path, data)
    return data


def _write(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Written beside its place and moved: a reader, or a kill, never sees half a file.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file, ensure_ascii=False)
        os.replace(temporary, path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
