"""Reading a task's options: typed values from Python, or texts from the command line ("count=50")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InputError
from ..registry import nearest


def integer_option(
    options: Mapping[str, Any], name: str, default: int, *, minimum: int | None = None, maximum: int | None = None
) -> int:
    """Return a whole-number option.

    Args:
        options: the task's options.
        name: which one.
        default: its value when it is not given.
        minimum: least allowed value.
        maximum: greatest allowed value.

    Raises:
        InputError: when it is not a whole number, or out of its range.
    """
    value = options.get(name)
    if value is None:
        return default
    try:
        number = int(value) if isinstance(value, str) else value
    except ValueError:
        number = None
    if not isinstance(number, int) or isinstance(number, bool):
        raise InputError(f"option {name} is {value!r}; it must be a whole number")
    if minimum is not None and number < minimum:
        raise InputError(f"option {name} is {number}; it must be at least {minimum}")
    if maximum is not None and number > maximum:
        raise InputError(f"option {name} is {number}; it must be at most {maximum}")
    return number


def choice_option(options: Mapping[str, Any], name: str, default: str, known: Sequence[str]) -> str:
    """Return an option that is one of a few names.

    Raises:
        InputError: for another name; the text gives the nearest one and lists all.
    """
    value = options.get(name)
    return default if value is None else known_name(value, known, f"option {name}")


def names_option(options: Mapping[str, Any], name: str, known: Sequence[str]) -> tuple[str, ...] | None:
    """Return an option that is one or several names ("anatomy,virology" or a list); None when it is not given.

    Raises:
        InputError: for a name that does not exist, or no name at all.
    """
    value = options.get(name)
    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")] if isinstance(value, str) else list(value)
    names = tuple(known_name(part, known, f"option {name}") for part in parts if part != "")
    if not names:
        raise InputError(f"option {name} is empty. Known: {', '.join(known)}")
    return names


def known_name(value: object, known: Sequence[str], what: str) -> str:
    """Return the known name that `value` means, whatever its case and whether words are joined by "_", "-" or " ".

    Raises:
        InputError: when there is none; the text gives the nearest one and lists all.
    """
    if value in known:
        return str(value)
    by_key = {name_key(name): name for name in known}
    found = by_key.get(name_key(value))
    if found is None:
        raise InputError(f"{what}: unknown '{value}'.{nearest(str(value), list(known))} Known: {', '.join(known)}")
    return found


def name_key(name: object) -> str:
    """Return the key under which names of subjects, countries and the like are compared."""
    return "_".join(str(name).casefold().replace("-", " ").replace("_", " ").split())
