"""The score of one answer."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Score:
    """How good one answer is.

    Attributes:
        value: the task's main score, in [0, 1].
        blank: there was no readable answer. A blank scores 0 and stays in the denominator.
        parts: further figures by name (correct_cells, total_cells, legal, ...), from which corpus scores are computed.
        feedback: what was wrong and what would be right, for people and for optimisers that read text (GEPA).
    """

    value: float
    blank: bool = False
    parts: dict[str, float | int | str | None] = field(default_factory=dict)
    feedback: str = ""
