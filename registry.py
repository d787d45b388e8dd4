"""Registries of named things (strategies, tasks, decision rules): one file and one registration each."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from .errors import InputError

T = TypeVar("T")


def nearest(name: str, known: list[str]) -> str:
    """Return " Did you mean 'x'?" for the known name nearest to `name`, or an empty text."""
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    return f" Did you mean '{close[0]}'?" if close else ""


class Registry(Generic[T]):
    """A mapping from names to things, filled by decorators in the modules of one package.

    Args:
        kind: what is registered, in the singular ("strategy"); used in error texts.
        package: dotted name of the package whose modules register; they are imported on first use.
    """

    def __init__(self, kind: str, package: str | None = None) -> None:
        self.kind = kind
        self._package = package
        self._items: dict[str, T] = {}
        self._loaded = package is None

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that registers its argument under `name`.

        Raises:
            ValueError: when another thing already has the name.
        """

        def decorate(item: T) -> T:
            if name in self._items and self._items[name] is not item:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._items[name] = item
            return item

        return decorate

    def _load(self) -> None:
        if self._loaded or self._package is None:
            return
        self._loaded = True
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{self._package}.{module.name}")

    def get(self, name: str) -> T:
        """Return what is registered under `name`.

        Raises:
            InputError: for an unknown name; the text gives the nearest one and lists all.
        """
        self._load()
        try:
            return self._items[name]
        except KeyError:
            known = self.names()
            raise InputError(f"unknown {self.kind} '{name}'.{nearest(name, known)} Known: {', '.join(known)}") from None

    def names(self) -> list[str]:
        """Return all registered names, sorted."""
        self._load()
        return sorted(self._items)

    def __iter__(self) -> Iterator[tuple[str, T]]:
        self._load()
        return iter(sorted(self._items.items()))
