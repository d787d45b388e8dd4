"""Plots as SVG texts, drawn with matplotlib (extra `viz`)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from ..errors import MissingDependencyError

#: Colours that stay apart for colour-blind readers (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")


def figure(width: float = 7.0, height: float = 3.6) -> tuple[Any, Any]:
    """Return a new matplotlib figure and its axes, sizes in inches.

    Raises:
        MissingDependencyError: when matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        raise MissingDependencyError('plots need matplotlib: pip install "townhall[viz]"') from None
    matplotlib.use("svg")
    from matplotlib import pyplot

    drawing, axes = pyplot.subplots(figsize=(width, height), layout="constrained")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    return drawing, axes


def percent_axis(axis: Any) -> None:
    """Write an axis' fractions as percentages."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))


def to_svg(drawing: Any) -> str:
    """Return a figure as an SVG element and close it. Texts stay texts, so that a page can be searched."""
    from matplotlib import pyplot, rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "townhall"}):
        drawing.savefig(buffer, format="svg", metadata={"Date": None})
    pyplot.close(drawing)
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def intervals(axes: Any, x: Sequence[float], points: Sequence[tuple[float, float, float]], **style: Any) -> None:
    """Draw (value, low, high) points joined by a line, each with its interval."""
    values = [value for value, _, _ in points]
    below = [max(0.0, value - low) for value, low, _ in points]
    above = [max(0.0, high - value) for value, _, high in points]
    axes.errorbar(x, values, yerr=[below, above], capsize=3, marker="o", linewidth=1.4, **style)
