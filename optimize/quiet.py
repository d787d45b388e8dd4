"""Keeping teleprompters from printing, logging and drawing from Python's shared random numbers."""

from __future__ import annotations

import io
import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

logger = logging.getLogger(__name__)


class Printed(io.TextIOBase):
    """A stream whose lines go to our log, at the level of details.

    Attributes:
        problems: lines in which a teleprompter says that it goes on without something.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []

    def write(self, text: str) -> int:
        """Log the text's lines."""
        for line in text.splitlines():
            if line.strip():
                logger.debug("%s", line.rstrip())
            if line.startswith("Error getting"):
                self.problems.append(line.strip())
        return len(text)


@contextmanager
def quiet() -> Iterator[Printed]:
    """Send what DSPy's teleprompters print to our log, and silence their loggers, for the whole process meanwhile.

    Standard output belongs to a command's result. What goes wrong is reported by ourselves.
    """
    printed = Printed()
    dspy_logger = logging.getLogger("dspy")
    level = dspy_logger.level
    dspy_logger.setLevel(logging.CRITICAL)
    try:
        with redirect_stdout(printed):
            yield printed
    finally:
        dspy_logger.setLevel(level)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed Python's and NumPy's shared random numbers while the block runs, and restore them afterwards."""
    import numpy

    python, arrays = random.getstate(), numpy.random.get_state()
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    try:
        yield
    finally:
        random.setstate(python)
        numpy.random.set_state(arrays)
