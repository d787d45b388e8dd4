"""Ctrl-C: one line that says how to go on, and out at once, whatever a model is doing.

Python runs its own handler only between two steps of Python code in the main thread: a call into an engine can hold
it up for a minute, and so can threads that wait for a server when the program ends. A watcher hears of the signal
itself and ends the process when that takes too long. What is recorded is on disk by then: records are flushed one by
one as they are made.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

#: Seconds that calls under way have to come in, so that what is paid for is kept, and the program to end in good order.
GRACE = 5.0
#: Seconds after which it is said what is waited for.
_PATIENCE = 0.5

_hint = ""


def set_hint(text: str) -> None:
    """Say what an interrupted user can do; it stands behind "interrupted: " when it comes to that."""
    global _hint
    _hint = text


def message() -> str:
    """Return what is said on an interrupt."""
    return f"interrupted: {_hint}" if _hint else "interrupted"


def leave(code: int) -> NoReturn:
    """End the process now, without waiting for threads; what was printed is flushed."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


@contextmanager
def watched() -> Iterator[None]:
    """End the process with code 130 if it still runs some seconds after Ctrl-C, or at a second one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    threading.Thread(target=_watch, args=(reader,), name="townhall-interrupt", daemon=True).start()
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        writer.close()


def _watch(reader: socket.socket) -> None:
    while byte := reader.recv(1):
        if byte[0] != signal.SIGINT:
            continue
        if _silent(reader, _PATIENCE):
            print(
                "\ntownhall: ending; calls under way may come in (Ctrl-C again: at once)", file=sys.stderr, flush=True
            )
            _silent(reader, GRACE - _PATIENCE)
        print(f"\ntownhall: {message()}", file=sys.stderr, flush=True)
        leave(130)


def _silent(reader: socket.socket, seconds: float) -> bool:
    """Return whether neither a second signal nor the program's own end comes in so many seconds."""
    reader.settimeout(seconds)
    try:
        if not reader.recv(1):
            sys.exit()  # the program has ended in good order: so does this thread
    except TimeoutError:
        return True
    return False
