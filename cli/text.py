"""Text that others wrote (models, files, servers), made safe for a terminal."""

from __future__ import annotations

import re

#: Terminal escape sequences: colours, cursor movements, titles, links.
_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[@-_])")
#: Control characters other than line feed and tab, characters that reorder or hide text, and halves of characters.
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
)


def clean(text: object) -> str:
    """Return a text without terminal escape sequences, control characters and characters that reorder text."""
    return _CONTROLS.sub("", _SEQUENCES.sub("", str(text).replace("\r\n", "\n"))).replace("\t", "    ")


def one_line(text: object) -> str:
    """Return a text as one clean line."""
    return " ".join(clean(text).split())
