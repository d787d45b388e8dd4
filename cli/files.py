"""Files that commands write: checked before work begins, there only when they are complete."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ..errors import InputError
from .screen import finite


def writable(out: str | Path) -> Path:
    """Return the path of a file that can be written.

    Raises:
        InputError: when it is a folder, or its folder is missing or closed to us.
    """
    path = Path(out)
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a file")
    if not path.parent.is_dir():
        raise InputError(f"{path}: cannot be written; there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise InputError(f"{path}: cannot be written; permission denied")
    return path


@contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """Open a text file that takes the place of `path` when the block ends well, and is removed when it does not.

    Raises:
        InputError: when its folder does not take it.
    """
    if not path.exists() or path.is_file():
        try:
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror})") from None
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
                yield stream
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        finally:
            Path(temporary).unlink(missing_ok=True)
    else:  # a device such as /dev/stdout cannot be replaced
        with path.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def json_line(data: Any) -> str:
    """Return data as one line of JSON; half characters, which UTF-8 has not, are escaped."""
    text = json.dumps(data, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = json.dumps(data)
    return f"{text}\n"


def write_json(path: Path, data: Any) -> None:
    """Write one JSON document.

    Raises:
        InputError: when the file's folder does not take it.
    """
    with replacing(path) as stream:
        stream.write(json_line(finite(data)))
