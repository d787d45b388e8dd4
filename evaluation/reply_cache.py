"""The cache of model replies: what a killed run resumes from without paying again.

DSPy looks replies up in `dspy.cache`. Its own disk cache opens a database connection in every new thread (1.5 to 2.4 ms
of CPU a call, where agents speak in threads of their own), pickles what it stores, and leaves the server's address out
of its keys, so that two servers with one model name would answer for each other. This one keeps JSON in one SQLite file
behind one connection (0.05 ms), and counts the address.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import dspy
from dspy.clients.cache import Cache
from dspy.clients.call_result import attributes
from dspy.clients.legacy_outputs import plain

from ..errors import InputError
from ..models.folders import cache_dir

logger = logging.getLogger(__name__)

FILE = "replies.sqlite"
#: Kept out of the key: a reply does not depend on who pays.
_SECRET_ARGUMENTS = ["api_key"]
#: Marks a stored response of DSPy's LiteLLM path, which is an object there and JSON here.
_LEGACY = "_townhall_legacy"
#: Whether replies are served in this context; `fresh` runs only write.
_SERVING: ContextVar[bool] = ContextVar("townhall_serve_cached_replies", default=True)


class ReplyCache(Cache):
    """A DSPy cache that keeps replies as JSON in one SQLite file. Safe for several threads and processes.

    Args:
        folder: where the file is; made when it does not exist.

    Raises:
        InputError: when the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(enable_disk_cache=False, enable_memory_cache=False, disk_cache_dir=None)
        self.folder = folder
        #: What is not JSON (embeddings) lives as long as the process.
        self._objects: dict[str, Any] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(folder / FILE, timeout=60, isolation_level=None, check_same_thread=False)
            # A write-ahead log survives the process being killed; a power cut may cost the last replies, not the file.
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID"
            )
        except (OSError, sqlite3.Error) as error:
            raise InputError(
                f"{folder}: the cache of replies cannot be opened ({error}); set TOWNHALL_CACHE to a folder that can "
                "be written"
            ) from None

    def cache_key(self, request: dict[str, Any], ignored_args_for_cache_key: list[str] | None = None) -> str:
        """Return a request's key, the server's address included."""
        return str(super().cache_key(request, _SECRET_ARGUMENTS))

    def get(self, request: dict[str, Any], ignored_args_for_cache_key: list[str] | None = None) -> Any:
        """Return the stored reply to a request; None when there is none."""
        if not _SERVING.get():
            return None
        try:
            key = self.cache_key(request)
        except Exception:  # a request that is not JSON has no key, as in DSPy's own cache
            return None
        with self._lock:
            try:
                row = self._connection.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
            except sqlite3.Error as error:
                logger.warning("The cache of replies cannot be read: %s", error)
                row = None
            if row is None:
                return self._objects.get(key)
        value = json.loads(row[0])
        if isinstance(value, dict) and _LEGACY in value:
            response = attributes(value[_LEGACY])
            # The call was not made now: nothing is billed for it.
            response["usage"] = {}
            response["cache_hit"] = True
            return response
        return value

    def put(
        self,
        request: dict[str, Any],
        value: Any,
        ignored_args_for_cache_key: list[str] | None = None,
        enable_memory_cache: bool = True,
    ) -> None:
        """Store the reply to a request."""
        try:
            key = self.cache_key(request)
        except Exception:
            return
        try:
            text = json.dumps(value if isinstance(value, dict) else _from_legacy(value), ensure_ascii=False)
        except (TypeError, ValueError):
            with self._lock:
                self._objects[key] = value
            return
        with self._lock:
            try:
                self._connection.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, text))
            except sqlite3.Error as error:  # a full disk must not throw away a reply that was paid for
                logger.warning("The cache of replies cannot be written: %s", error)
                self._objects[key] = json.loads(text)

    def __contains__(self, key: str) -> bool:
        with self._lock:
            found = self._connection.execute("SELECT 1 FROM replies WHERE key = ?", (key,)).fetchone()
        return found is not None or key in self._objects

    def __len__(self) -> int:
        with self._lock:
            return int(self._connection.execute("SELECT count(*) FROM replies").fetchone()[0])

    def close(self) -> None:
        """Close the file. Replies that come in later are kept for as long as the process lives."""
        with self._lock:
            self._connection.close()


def _from_legacy(value: Any) -> dict[str, Any]:
    body = plain(value)
    if not isinstance(body, dict):
        raise TypeError(f"a {type(value).__name__} is not JSON")
    cost = getattr(value, "_hidden_params", {}).get("response_cost")
    return {_LEGACY: {**body, "_hidden_params": {"response_cost": cost}}}


#: One entry for each block under way, the innermost last.
_active: list[ReplyCache] = []
#: The one used last stays open: closing and opening a file takes longer than many a debate from the cache.
_kept: ReplyCache | None = None
_lock = threading.Lock()
_before: Any = None


@contextmanager
def replies(folder: Path | None = None, *, serve: bool = True) -> Iterator[ReplyCache]:
    """Keep model replies on disk while the block runs, and serve those that are there.

    `dspy.cache` is set for the whole process meanwhile and restored afterwards; blocks may be nested.

    Args:
        folder: where; the cache folder's `replies` when None.
        serve: False asks the model again for everything, and keeps its new replies.

    Raises:
        InputError: when the folder cannot be written.
    """
    cache = _enter((folder or cache_dir() / "replies").absolute())
    token = _SERVING.set(serve and _SERVING.get())
    try:
        yield cache
    finally:
        _SERVING.reset(token)
        _leave(cache)


def _enter(folder: Path) -> ReplyCache:
    global _before, _kept
    with _lock:
        known = [*_active, _kept] if _kept is not None and (_kept.folder / FILE).exists() else _active
        same = [cache for cache in known if cache.folder == folder]
        cache = same[0] if same else ReplyCache(folder)
        if not _active:
            _before = vars(dspy).get("cache")
        _active.append(cache)
        dspy.cache = cache
    return cache


def _leave(cache: ReplyCache) -> None:
    global _kept
    with _lock:
        _active.remove(cache)
        if _active:
            dspy.cache = _active[-1]
        elif _before is not None:
            dspy.cache = _before
        else:
            vars(dspy).pop("cache", None)  # DSPy builds its own when it is asked for
        if cache not in _active and cache is not _kept:
            if _kept is not None and _kept not in _active:
                _kept.close()
            _kept = cache
