"""Reading rows from a file, from the Hugging Face hub, or from a task's own generator."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError

if TYPE_CHECKING:
    from .base import HubSource, Task

Row = tuple[Mapping[str, Any], str]


def rows_of(task: Task) -> Iterable[Row]:
    """Yield (row, where) for a task, from its `data` or its default source (its generator, else the hub).

    Raises:
        InputError: for a source that is missing, broken or empty.
    """
    kind, detail = _kind(task)
    if kind == "generated":
        rows = task.generate()
        if rows is None:
            raise InputError(f"task '{task.name}' has no generator; use --data FILE or --data hub")
        return ((row, f"generated puzzle {number}") for number, row in enumerate(rows, start=1))
    if kind == "hub":
        source = task.hub
        if detail:
            from .base import HubSource

            source = HubSource(detail)
        if source is None:
            raise InputError(f"task '{task.name}' has no data set on the hub; use --data FILE")
        return read_hub(source)
    return read_file(Path(detail))


def _kind(task: Task) -> tuple[str, str]:
    data = task.data
    if data is None:
        # A subclass with a generator of its own needs no network: that is the default.
        from .base import Task as Base

        return ("generated", "") if type(task).generate is not Base.generate else ("hub", "")
    text = str(data)
    if text == "generated":
        return "generated", ""
    if text == "hub" or text.startswith("hub:"):
        return "hub", text[4:]
    return "file", text


def describe_source(task: Task) -> str:
    """Return where a task's examples come from, for people."""
    kind, detail = _kind(task)
    if kind == "hub":
        return f"hub {detail or (task.hub.repo if task.hub else '?')}"
    return "generated" if kind == "generated" else detail


def read_file(path: Path) -> Iterator[Row]:
    """Yield (row, where) from a JSONL, JSON, CSV or Parquet file, by its ending (JSONL when it has another one).

    Raises:
        InputError: when the file is missing, unreadable, empty or broken; the text names file and line.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a JSONL, JSON, CSV or Parquet file")
    readers = {".csv": _read_csv, ".parquet": _read_parquet, ".json": _read_json}
    count = 0
    try:
        for row in readers.get(path.suffix.lower(), _read_jsonl)(path):
            count += 1
            yield row
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    if not count:
        raise InputError(f"{path}: the file is empty")


def _read_jsonl(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield _object(line, f"{path}, line {number}"), f"{path}, line {number}"


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(text)
    except ValueError as error:
        raise InputError(f"{where}: not JSON ({error}); each line must be one JSON object") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: a JSON {type(row).__name__}, not an object; each line must be one JSON object")
    return row


def _read_json(path: Path) -> Iterator[Row]:
    text = path.read_text(encoding="utf-8-sig")
    if not text.strip():
        return
    try:
        rows = json.loads(text)
    except ValueError as error:
        if text.lstrip().startswith("{") and "\n" in text.strip():
            yield from _read_jsonl(path)  # JSON Lines under the ending .json
            return
        raise InputError(f"{path}: not JSON ({error})") from None
    if isinstance(rows, dict):
        rows = next((value for value in rows.values() if isinstance(value, list)), [rows])
    if not isinstance(rows, list):
        raise InputError(f"{path}: must hold a JSON array of objects")
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise InputError(f"{path}, item {number}: not a JSON object")
        yield row, f"{path}, item {number}"


def _read_csv(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.DictReader(lines)
        for row in reader:
            if None in row:
                raise InputError(f"{path}, line {reader.line_num}: more cells than the header has columns")
            yield dict(row), f"{path}, line {reader.line_num}"


def _read_parquet(path: Path) -> Iterator[Row]:
    import pyarrow.parquet

    try:
        rows = pyarrow.parquet.read_table(path).to_pylist()
    except (ValueError, OSError) as error:
        raise InputError(f"{path}: not a Parquet file ({str(error).splitlines()[0]})") from None
    for number, row in enumerate(rows, start=1):
        yield row, f"{path}, row {number}"


def read_hub(source: HubSource) -> Iterator[Row]:
    """Yield (row, where) from the Hugging Face hub, through `datasets`.

    Raises:
        InputError: when the hub or the data set cannot be reached.
    """
    import datasets

    try:
        rows = datasets.load_dataset(source.repo, source.config, split=source.split)
    except Exception as error:  # datasets raises a dozen unrelated types; the user needs one line
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"hub {source.repo}: cannot be loaded ({first}). Without a connection to the hub, use --data FILE"
        ) from None
    for number, row in enumerate(rows):
        yield row, f"hub {source.repo}, row {number}"
