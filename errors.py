"""The errors townhall raises on purpose, and the exit code each has on the command line."""

from __future__ import annotations


class TownhallError(Exception):
    """Base of all errors raised on purpose. Its text is one line that a user can act on."""

    exit_code = 1


class InputError(TownhallError):
    """Bad input or usage: says what is wrong, where (file, line, field), and what would be right."""

    exit_code = 2


class MissingDependencyError(InputError):
    """An optional package or program is not installed; the text says how to install it."""


class BudgetExceededError(TownhallError):
    """A limit on calls, tokens or cost was reached; what was finished is kept."""

    exit_code = 3


class RunError(TownhallError):
    """Something failed while running (a server, a disk); what was recorded is kept."""

    exit_code = 1
