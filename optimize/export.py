"""Exporting: a tuned program as an artifact folder, or in forms that run without townhall."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError, RunError
from ..programs.base import Strategy
from ..signatures.answers import plain
from ..tasks.base import TASKS, Example, Task
from .artifact import ArtifactInfo, describe_artifact, load, load_info, save_artifact
from .compile import Compiled
from .exporters.base import EXPORTERS, Export, Question, target_path
from .plain_files import write_text
from .single_prompt import as_single_prompt as splice

#: How many questions with answers an export carries, for formats with tests.
_TESTS = 5


def export(
    source: Any,
    out: Path | str,
    *,
    format: str | None = None,
    as_single_prompt: bool = False,
    task: Task | None = None,
    examples: Sequence[Example] | None = None,
    model: str | None = None,
    answer: Any = None,
    overwrite: bool = False,
) -> list[Path]:
    """Write a program in some format.

    Args:
        source: an artifact folder; a `Compiled` program; a strategy; or the best of a study (whatever has a `program`,
            and possibly a `task` and a `report`).
        out: the folder, or the file for formats of one file ("debate.py").
        format: a registered format, see `exporters`; None for an artifact folder.
        as_single_prompt: of a town hall, write the single-prompt town hall with its tuned instructions folded in.
        task: gives test questions; the artifact's task, when it is at hand, otherwise.
        examples: test questions; when None five of the task's dev split, or its worked problems where the data would
            have to be fetched.
        model: the model's name that the files name by default.
        answer: see `artifact.load`.
        overwrite: replace files that are there.

    Returns:
        the files written; for an artifact its folder.

    Raises:
        InputError: for an unknown format, a source that cannot be exported, or files that are there already.
        RunError: when the files cannot be written.
    """
    program, info, task = _source(source, task, answer)
    out = Path(out)
    exporter = EXPORTERS.get(format)() if format is not None else None
    if as_single_prompt:
        origin = {"single_prompt_of": info.program_fingerprint}
        program = splice(program, task)
        info = describe_artifact(program, info.task, tuning=origin)
    if exporter is None:
        save_artifact(
            program,
            info.task,
            out,
            report=info.compilation,
            tuning=info.tuning,
            held_out=info.held_out,
            overwrite=overwrite,
        )
        return [out]
    bundle = Export(program, info, _questions(task, examples), model or "gpt-4o-mini")
    files = exporter.files(bundle)
    if exporter.file is not None:
        paths = {target_path(out, exporter.file): files[exporter.file]}
    else:
        if out.exists() and not out.is_dir():
            raise InputError(f"{out}: is a file; the format '{exporter.name}' writes a folder")
        paths = {out / name: text for name, text in files.items()}
    return _write(paths, overwrite)


def _write(paths: dict[Path, str], overwrite: bool) -> list[Path]:
    for path, text in paths.items():
        if path.exists() and not overwrite and path.read_text(encoding="utf-8", errors="replace") != text:
            raise InputError(f"{path}: is there already, with other content; choose another place, or overwrite it")
    for path, text in paths.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, text)
            if text.startswith("#!"):
                path.chmod(0o755)
        except OSError as error:
            raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None
    return list(paths)


def _source(source: Any, task: Task | None, answer: Any) -> tuple[Strategy, ArtifactInfo, Task | None]:
    if isinstance(source, str | Path):
        info = load_info(source)
        program = load(source, answer=answer)
        return program, info, task or _task_of(info)
    if isinstance(source, Compiled):
        task = task or source.task
        return source.program, describe_artifact(source.program, task, report=source.report), task
    if isinstance(source, Strategy):
        return source, describe_artifact(source, task), task
    best = getattr(source, "program", None)
    if isinstance(best, Strategy):
        task = task or getattr(source, "task", None)
        report, tuning = getattr(source, "report", None), getattr(source, "tuning", None)
        return best, describe_artifact(best, task, report=report, tuning=tuning), task
    raise InputError(f"a {type(source).__name__} cannot be exported; give an artifact folder or a program")


def _task_of(info: ArtifactInfo) -> Task | None:
    """Return an artifact's task where it needs nothing but its name; None otherwise."""
    if info.task is None or info.task.name not in TASKS.names():
        return None
    try:
        return TASKS.get(info.task.name)(None, **info.task.options)
    except InputError:
        return TASKS.get(info.task.name)()


def _questions(task: Task | None, examples: Sequence[Example] | None) -> list[Question]:
    if examples is not None:
        return [Question(example.question, plain(example.gold)) for example in examples]
    if task is None:
        return []
    if task.data is not None or type(task).generate is not Task.generate:
        return [Question(item.question, plain(item.gold)) for item in task.split("dev", limit=_TESTS)]
    # Its data would have to be fetched first.
    return [Question(item.question, plain(item.answer)) for item in task.demonstrations()][:_TESTS]
