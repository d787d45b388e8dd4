"""Which output format an endpoint takes: found out once by asking, shared by all calls, remembered in a file."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any, Literal

from dspy import lm15

from .folders import cache_dir

Format = Literal["json_schema", "json_object", "none"]
#: From the most to the least that can be asked of a server.
FORMATS: tuple[Format, ...] = ("json_schema", "json_object", "none")

#: A server may have learnt since: what it did not take is tried again after so many seconds.
_FORGET_AFTER = 30 * 24 * 3600
_FORMAT_WORDS = ("response_format", "json_schema", "json_object", "structured output", "grammar", "guided")


class FormatMemory:
    """What each endpoint was found to take, kept in a JSON file; thread-safe, shared by processes.

    A file that cannot be read or written costs only the memory: the finding is made again.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._lock = threading.Lock()

    def recall(self, endpoint: str) -> Format | None:
        """Return the format that an endpoint takes; None when that is not known, or known from too long ago."""
        entry = self._read().get(endpoint)
        if not isinstance(entry, dict) or entry.get("format") not in FORMATS:
            return None
        found = entry.get("found")
        fresh = isinstance(found, int | float) and 0 <= time.time() - found < _FORGET_AFTER
        return entry["format"] if fresh else None

    def remember(self, endpoint: str, format_: Format) -> None:
        """Write down the format that an endpoint takes."""
        from filelock import FileLock, Timeout

        with self._lock:
            try:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                with FileLock(f"{self.file}.lock", timeout=5):
                    entries = self._read()
                    entries[endpoint] = {"format": format_, "found": int(time.time())}
                    part = self.file.with_suffix(f".{os.getpid()}.part")
                    part.write_text(json.dumps(entries, indent=1, sort_keys=True), encoding="utf-8")
                    os.replace(part, self.file)
            except (OSError, Timeout):
                return

    def _read(self) -> dict[str, Any]:
        try:
            entries = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return entries if isinstance(entries, dict) else {}


class Negotiation:
    """Which output format to ask an endpoint for; one for each endpoint, shared by all engines, threads and loops.

    While nothing is known, one call at a time finds out and the others wait for it, see `enter`.
    """

    def __init__(self, endpoint: str, memory: FormatMemory) -> None:
        self.endpoint = endpoint
        self.memory = memory
        self.known: Format | None = None
        self._asked_memory = False
        self._schema_works = False
        self._refused: set[str] = set()
        self._lock = threading.Lock()
        self._probe: threading.Event | None = None

    def enter(self) -> threading.Event | None:
        """Return None when the caller is the one to find out, and must `leave` when done; else what to wait for.

        Who waited goes on whatever the other found: a server that stalls must not be tried by one call after another.
        """
        with self._lock:
            if self._probe is not None:
                return self._probe
            self._probe = threading.Event()
            return None

    def leave(self) -> None:
        """Let those go on who wait."""
        with self._lock:
            probe, self._probe = self._probe, None
        if probe is not None:
            probe.set()

    def settled(self) -> bool:
        """Return whether it is known what the endpoint takes."""
        if self.known is None and not self._asked_memory:
            self.known = self.memory.recall(self.endpoint)
            self._asked_memory = True
        return self.known is not None

    def options(self, wanted: dict[str, Any]) -> list[Format]:
        """Return the formats to ask for, in order, when a caller wants `wanted`."""
        best: Format = wanted["type"]
        if self.settled() and self.known is not None:
            best = max(best, self.known, key=FORMATS.index)
        if best == "json_schema" and _digest(wanted) in self._refused:
            best = "json_object"
        return list(FORMATS[FORMATS.index(best) :])

    def learn(self, wanted: dict[str, Any], taken: Format) -> None:
        """Take in that a call that wanted `wanted` succeeded with the format `taken`."""
        if wanted["type"] != "json_schema":
            return
        if taken == "json_schema":
            self._schema_works = True
        elif self._schema_works:
            # The server takes schemas, but not this one.
            self._refused.add(_digest(wanted))
            return
        if taken != self.known:
            self.known = taken
            self.memory.remember(self.endpoint, taken)


_NEGOTIATIONS: dict[tuple[str, Path], Negotiation] = {}
_NEGOTIATING = threading.Lock()


def negotiation_for(endpoint: str) -> Negotiation:
    """Return the one negotiation of an endpoint in this process."""
    file = cache_dir() / "endpoints.json"
    with _NEGOTIATING:
        return _NEGOTIATIONS.setdefault((endpoint, file), Negotiation(endpoint, FormatMemory(file)))


def _digest(wanted: dict[str, Any]) -> str:
    return json.dumps(wanted, sort_keys=True)


def complains(error: lm15.LM15Error) -> bool:
    """Return whether an error may be about the output format: any refusal of the request, or a text that says so."""
    if isinstance(error, lm15.ContextLengthError | lm15.UnsupportedModelError):
        return False
    if isinstance(error, lm15.InvalidRequestError):
        return error.status in (400, 415, 422) and not too_long(error.message)
    return isinstance(error, lm15.ServerError) and any(word in error.message.lower() for word in _FORMAT_WORDS)


def too_long(message: str) -> bool:
    """Return whether an error's message says that the prompt does not fit into the model's context."""
    text = message.lower()
    return "context" in text and any(word in text for word in ("length", "size", "window", "exceed"))
