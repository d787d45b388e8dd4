"""Pages: one HTML file each, without scripts or anything from elsewhere.

What models and data say is shown as text: templates escape everything that is not our own drawing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import InputError
from ..signatures.answers import brief, display


def write_page(template: str, out: Path, **values: Any) -> Path:
    """Render a template of this folder to a file, and return the file.

    Raises:
        InputError: when `out` cannot be written.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "brief": brief,
        "display": display,
        "fraction": fraction,
        "money": money,
        "number": number,
        "percent": percent,
        "words": lambda name: str(name).replace("_", " "),
    }
    page = environment.get_template(template).render(**values)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        # Half of a surrogate pair, as a model may write it, has no encoding.
        out.write_text(page, encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror or error}") from None
    return out


def fraction(value: float | None) -> str:
    """Return a score: three digits, "n/a" where nothing is in the denominator."""
    return "n/a" if value is None else f"{value:.3f}"


def percent(value: float | None) -> str:
    """Return a fraction as a percentage."""
    return "" if value is None else f"{100 * value:.1f} %"


def number(value: float | None) -> str:
    """Return a number with at most one decimal."""
    return "" if value is None else f"{value:,.1f}".removesuffix(".0")


def money(value: float | None) -> str:
    """Return US dollars; nothing where the price is unknown."""
    return "" if value is None else "$0" if not value else f"${value:.4f}"
