"""Writing texts and JSON as files that people and other programs read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def write_text(path: Path, text: str) -> None:
    """Write a file as a whole: a reader finds the old content or the new, never half of it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def to_json(data: Any) -> str:
    """Return JSON as files hold it."""
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"
