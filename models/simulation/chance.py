"""Chance without state: what is drawn depends on what is named, and on nothing else."""

from __future__ import annotations

import hashlib
import json


def draw(*parts: object) -> int:
    """Return a number of 64 bits that depends on the parts only."""
    content = json.dumps([str(part) for part in parts], ensure_ascii=False)
    return int.from_bytes(hashlib.sha256(content.encode("utf-8", "replace")).digest()[:8], "big")


def chance(*parts: object) -> float:
    """Return a number in [0, 1) that depends on the parts only."""
    return draw(*parts) / 2**64
