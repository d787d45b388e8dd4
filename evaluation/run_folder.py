"""The folder of a run: `run.json`, `records.jsonl`, `usage.jsonl`, `summary.json`.

Records and paid calls are appended one line each. A process that is killed in the middle of a line leaves a torn line
behind: it is dropped when the run is resumed, and that example is done again from the cache of replies.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout
from pydantic import BaseModel, ValidationError

from ..errors import InputError, RunError
from ..signatures.transcript import Usage
from .records import FORMAT_VERSION, Record, RunInfo, Summary

RUN, RECORDS, USAGE, SUMMARY, LOCK = "run.json", "records.jsonl", "usage.jsonl", "summary.json", ".lock"

Model = TypeVar("Model", bound=BaseModel)


class PaidCall(BaseModel):
    """One line of `usage.jsonl`: a model call, written down as soon as its reply is in.

    Attributes:
        example: fingerprint of the example it was made for.
        role: the predictor that asked.
        usage: what it took.
    """

    example: str
    role: str
    usage: Usage


@dataclass(frozen=True, repr=False)
class Run:
    """A run: one program over one split.

    Attributes:
        folder: where it is kept.
        info: what it is.
        records: one an example that was finished, in the order of the examples.
        summary: what it came to.
    """

    folder: Path
    info: RunInfo
    records: list[Record]
    summary: Summary

    def __repr__(self) -> str:
        """Short: the records of a run can be megabytes of transcripts."""
        found = self.summary
        score = "n/a" if self.score is None else f"{self.score:.3f}"
        return f"<Run {self.folder}: {found.primary} {score}, {found.n} of {found.total} examples, {found.status}>"

    @property
    def scores(self) -> dict[str, float | None]:
        """The corpus scores by name, fractions in [0, 1]; None for "n/a"."""
        return self.summary.scores

    @property
    def usage(self) -> Usage:
        """All that the run paid for and was served from the cache."""
        return self.summary.usage

    @property
    def score(self) -> float | None:
        """The task's main score."""
        return self.summary.scores.get(self.summary.primary)

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name


class RunFolder:
    """A run folder that is written to, by one process at a time.

    Args:
        path: the folder; it is made when it does not exist.

    Raises:
        InputError: when it cannot be written, is a file, or belongs to another run.
        RunError: when another process is writing to it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._files: dict[str, Any] = {}
        self._guard = lock_folder(path, "run")

    def open(self, info: RunInfo, *, fresh: bool = False) -> RunInfo | None:
        """Check that a run may be kept here, and make what is there ready to be continued.

        Args:
            info: of the run.
            fresh: set what is there aside, in the subfolder `previous`.

        Returns:
            what is written down of the run already; None when it is a new one.

        Raises:
            InputError: when the folder holds another run (the text says what differs) or files of something else.
        """
        if fresh:
            self._set_aside()
        if not (self.path / RUN).exists():
            others = sorted(item.name for item in self.path.iterdir() if item.name not in (LOCK, "previous"))
            if others:
                raise InputError(f"{self.path}: has files but is no run folder ('{others[0]}'); name another --out")
            return None
        known = read_info(self.path)
        if different := info.differences(known):
            more = f" (and {len(different) - 3} more)" if len(different) > 3 else ""
            raise InputError(
                f"{self.path} holds a run with other settings: {'; '.join(different[:3])}{more}. Name another --out, "
                "or start over there with --fresh"
            )
        for name in (RECORDS, USAGE):
            _drop_torn_line(self.path / name)
        return known

    def begin(self, info: RunInfo, known: RunInfo | None) -> RunInfo:
        """Write `run.json` with the new session, and return it."""
        if known is not None:
            info = info.model_copy(update={"sessions": [*known.sessions, *info.sessions]})
        self.write_info(info)
        return info

    def _set_aside(self) -> None:
        there = [self.path / name for name in (RUN, RECORDS, USAGE, SUMMARY) if (self.path / name).exists()]
        if not there:
            return
        aside = self.path / "previous" / datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        aside.mkdir(parents=True)
        for file in there:
            file.rename(aside / file.name)

    def write_info(self, info: RunInfo) -> None:
        """Write `run.json`."""
        write_model(self.path / RUN, info, sync=True)

    def write_summary(self, summary: Summary) -> None:
        """Write `summary.json`."""
        write_model(self.path / SUMMARY, summary, sync=False)  # it can be made again from the records

    def forget_summary(self) -> None:
        """Remove `summary.json`, which new records would make wrong."""
        (self.path / SUMMARY).unlink(missing_ok=True)

    def append(self, record: Record) -> None:
        """Write a record down for good: it is on the disk when this returns.

        Raises:
            RunError: when the disk is full or gone.
        """
        self._append(RECORDS, record.model_dump_json(exclude_defaults=True), sync=True)

    def append_call(self, call: PaidCall) -> None:
        """Write a paid call down: it survives the process being killed.

        Raises:
            RunError: when the disk is full or gone.
        """
        self._append(USAGE, call.model_dump_json(exclude_defaults=True), sync=False)

    def _append(self, name: str, line: str, *, sync: bool) -> None:
        data = line.encode("utf-8") + b"\n"
        try:
            with self._lock:
                file = self._files.get(name)
                if file is None:
                    file = self._files[name] = (self.path / name).open("ab", buffering=0)
                file.write(data)
            if sync:
                os.fsync(file.fileno())
        except OSError as error:
            raise RunError(f"{self.path / name}: cannot be written ({error.strerror or error})") from None

    def records(self) -> list[Record]:
        """Return the last record of each example, in the order of the examples."""
        return read_records(self.path)

    def calls(self) -> Iterator[PaidCall]:
        """Yield the paid calls so far."""
        return read_calls(self.path)

    def close(self) -> None:
        """Close the files and let other processes in."""
        with self._lock:
            for file in self._files.values():
                file.close()
            self._files.clear()
        self._guard.release()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def lock_folder(path: Path, what: str) -> FileLock:
    """Make a folder if need be, and keep other processes out of it until the lock is released.

    Args:
        path: the folder.
        what: what it holds, for error texts ("run").

    Raises:
        InputError: when it cannot be written, or is a file.
        RunError: when another process has it.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        guard = FileLock(path / LOCK, timeout=0)
        guard.acquire()
    except FileExistsError:
        raise InputError(f"{path}: is a file; --out must name a folder") from None
    except Timeout:
        raise RunError(f"{path}: another process is writing this {what}; wait for it or use another --out") from None
    except OSError as error:
        raise InputError(f"{path}: the {what} folder cannot be written ({error.strerror or error})") from None
    return guard


def load_run(path: Path | str) -> Run:
    """Read a run from its folder. A run without a summary (still running, or killed) gets one made from its records.

    Raises:
        InputError: when there is no run, or a file is damaged; the text names file and line.
    """
    folder = Path(path)
    info = read_info(folder)
    records = read_records(folder)
    file = folder / SUMMARY
    if file.exists():
        return Run(folder, info, records, read_model(file, Summary))
    from .summary import summarise

    calls = list(read_calls(folder))
    reason = "the run has not ended; start it again to finish it"
    return Run(folder, info, records, summarise(info, records, calls, status="interrupted", reason=reason))


def read_info(folder: Path) -> RunInfo:
    """Read `run.json`.

    Raises:
        InputError: when it is missing, damaged or of a later version.
    """
    file = folder / RUN
    if not file.exists():
        what = "no such folder" if not folder.exists() else "not a run folder (it has no run.json)"
        raise InputError(f"{folder}: {what}")
    info = read_model(file, RunInfo)
    if info.format_version > FORMAT_VERSION:
        raise InputError(
            f"{file}: format version {info.format_version} is later than this townhall's {FORMAT_VERSION}; update it"
        )
    return info


def read_records(folder: Path) -> list[Record]:
    """Return the last record of each example, in the order of the examples.

    Raises:
        InputError: for a damaged line that is not the last one.
    """
    latest: dict[str, Record] = {}
    for record in _lines(folder / RECORDS, Record):
        latest[record.fingerprint] = record
    return sorted(latest.values(), key=lambda record: record.index)


def read_calls(folder: Path) -> Iterator[PaidCall]:
    """Yield the paid calls.

    Raises:
        InputError: for a damaged line that is not the last one.
    """
    return _lines(folder / USAGE, PaidCall)


def _lines(file: Path, kind: type[Model]) -> Iterator[Model]:
    if not file.exists():
        return
    lines = file.read_bytes().split(b"\n")
    last = max((number for number, line in enumerate(lines) if line.strip(b"\0 \r")), default=-1)
    for number, line in enumerate(lines):
        if not line.strip(b"\0 \r"):
            continue
        try:
            yield kind.model_validate_json(line)
        except ValidationError as error:
            if number == last:
                return  # torn by a kill; the run is still being written, or will drop it when it is resumed
            problem = error.errors()[0]["msg"]
            raise InputError(
                f"{file}, line {number + 1}: damaged ({problem}); remove the line, and resuming the run does it again"
            ) from None


def _drop_torn_line(file: Path) -> None:
    """Cut off a last line that was not written to its end (or that a power cut filled with zeros)."""
    if not file.exists():
        return
    data = file.read_bytes()
    keep = data.rfind(b"\n") + 1
    while keep and not _is_json(data[data.rfind(b"\n", 0, keep - 1) + 1 : keep]):
        keep = data.rfind(b"\n", 0, keep - 1) + 1
    if keep < len(data):
        with file.open("r+b") as handle:
            handle.truncate(keep)


def _is_json(line: bytes) -> bool:
    if not line.strip():
        return True
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def read_model(file: Path, kind: type[Model]) -> Model:
    """Read a JSON file that a run or a study wrote.

    Raises:
        InputError: when it cannot be read or is damaged; the text names the file and the field.
    """
    try:
        return kind.model_validate_json(file.read_bytes())
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise InputError(f"{file}{f', field {where}' if where else ''}: damaged ({problem['msg']})") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror or error})") from None


def write_model(file: Path, content: BaseModel, *, sync: bool) -> None:
    """Replace a file in one step, so that no reader and no kill ever meets half of it.

    Args:
        file: where to.
        content: written as JSON.
        sync: wait until it is on the disk for good.

    Raises:
        RunError: when it cannot be written.
    """
    text = json.dumps(content.model_dump(mode="json"), ensure_ascii=False, indent=1) + "\n"
    part = file.with_name(f"{file.name}.part")
    try:
        with part.open("w", encoding="utf-8") as handle:
            handle.write(text)
            handle.flush()
            if sync:
                os.fsync(handle.fileno())
        part.replace(file)
    except OSError as error:
        raise RunError(f"{file}: cannot be written ({error.strerror or error})") from None


def total(usages: Iterable[Usage]) -> Usage:
    """Return the sum of several usages."""
    return sum(usages, Usage())
