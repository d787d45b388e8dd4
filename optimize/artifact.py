"""Artifacts: a tuned program as a folder of plain files.

    artifact.json   what was tuned, on which data, with which models, and how it scored
    program.json    the roles' instructions and demonstrations, as DSPy saves them; no model and no secret
    prompts/        each role as Markdown, as chat messages with placeholders, and the JSON schema of its reply

Loading reads data and nothing but data: every field is checked, no name in the files is imported or used as a path, and
nothing of them reaches a model's settings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import dspy
from dspy.adapters.utils import serialize_for_json
from dspy.primitives.module import set_attribute_by_name
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ..errors import InputError, RunError
from ..evaluation.provenance import describe, models_of, versions
from ..programs.base import STRATEGIES, Strategy, build_config
from ..tasks.base import Task
from .answer_types import AnswerSpec, spec_of, type_of
from .compile import CompileReport
from .ensemble import Ensemble, EnsembleConfig
from .held_out import LEDGER, HeldOutReport, fingerprint_of
from .nearest_demos import NearestDemos
from .plain_files import to_json, write_text
from .prompt_markdown import role_markdown
from .templates import output_schema, role_id, template

ARTIFACT, PROGRAM, PROMPTS = "artifact.json", "program.json", "prompts"
FORMAT_VERSION = 1
#: What stands in an artifact's folder, the runs of its final evaluation included.
_OURS = {PROGRAM, PROMPTS, "held-out", LEDGER, f"{LEDGER}.lock"}
#: Larger files are refused: no program has that much to say.
_LARGEST_FILE = 64 << 20

#: From an older version to a step that rewrites its `artifact.json` for the next one.
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}


class RoleFields(BaseModel):
    """The fields of a role, by which a program is recognised as the one that was tuned."""

    model_config = ConfigDict(extra="forbid")

    inputs: list[str]
    outputs: list[str]
    nearest: int | None = Field(default=None, ge=1, le=1000)


class Member(BaseModel):
    """One program of an ensemble."""

    model_config = ConfigDict(extra="forbid")

    strategy: str
    settings: dict[str, Any] = Field(default_factory=dict)


class TaskInfo(BaseModel):
    """The task that a program was tuned on."""

    model_config = ConfigDict(extra="forbid")

    name: str
    version: int = 1
    options: dict[str, Any] = Field(default_factory=dict)
    fingerprint: str | None = None


class ArtifactInfo(BaseModel):
    """What `artifact.json` holds.

    Attributes:
        format: marks the file.
        format_version: of the folder.
        strategy: the strategy's name.
        settings: its config.
        answer: the type of its answers, as data.
        members: the programs of an ensemble, in order; empty otherwise.
        roles: the fields of each role.
        task: what it was tuned on; None for a program of no task.
        models: the agents' models when it was saved, described; loading gives none back.
        role_models: models set for single roles, described.
        adapter: which writes the prompts.
        compilation: how its prompts were tuned; None where they were not.
        tuning: how its shape was tuned, as data of whoever did it; empty where it was not.
        held_out: its final evaluation; None before that.
        program_fingerprint: hash of the program when it was saved. Prompts may be edited by hand: it tells.
        created: UTC time, ISO 8601.
        versions: of townhall, DSPy and Python.
    """

    model_config = ConfigDict(extra="forbid")

    format: Literal["townhall-artifact"] = "townhall-artifact"
    format_version: int = FORMAT_VERSION
    strategy: str
    settings: dict[str, Any] = Field(default_factory=dict)
    answer: AnswerSpec
    members: list[Member] = Field(default_factory=list)
    roles: dict[str, RoleFields]
    task: TaskInfo | None = None
    models: list[dict[str, Any]] = Field(default_factory=list)
    role_models: dict[str, dict[str, Any]] = Field(default_factory=dict)
    adapter: str = "DebateAdapter"
    compilation: CompileReport | None = None
    tuning: dict[str, Any] = Field(default_factory=dict)
    held_out: HeldOutReport | None = None
    program_fingerprint: str = ""
    created: str = ""
    versions: dict[str, str] = Field(default_factory=dict)


class _FieldState(BaseModel):
    model_config = ConfigDict(extra="forbid")

    prefix: str
    description: str


class _SignatureState(BaseModel):
    model_config = ConfigDict(extra="forbid")

    instructions: str
    fields: list[_FieldState]


class _RoleState(BaseModel):
    """A predictor's state as DSPy saves it, with nothing in it but prompts."""

    model_config = ConfigDict(extra="forbid")

    traces: list[Any] = Field(default_factory=list, max_length=0)
    train: list[Any] = Field(default_factory=list, max_length=0)
    demos: list[dict[str, Any]]
    signature: _SignatureState
    lm: None = None


# -- saving -----------------------------------------------------------------------------------------------------------


def save_artifact(
    program: Strategy,
    task: Task | TaskInfo | None,
    folder: Path | str,
    *,
    report: CompileReport | None = None,
    tuning: Mapping[str, Any] | None = None,
    held_out: HeldOutReport | None = None,
    overwrite: bool = False,
) -> ArtifactInfo:
    """Save a program as an artifact folder.

    Args:
        program: a strategy, or an ensemble of strategies.
        task: what it was tuned on, or what another artifact says of it; None for a program of no task.
        folder: made when it does not exist.
        report: how its prompts were tuned.
        tuning: how its shape was tuned: JSON data.
        held_out: its final evaluation.
        overwrite: replace another program's artifact that is there.

    Raises:
        InputError: for an answer type that data cannot describe, or a folder that holds something else.
        RunError: when the folder cannot be written.
    """
    info = describe_artifact(program, task, report=report, tuning=tuning, held_out=held_out)
    folder = Path(folder)
    _check_folder(folder, info, overwrite)
    try:
        (folder / PROMPTS).mkdir(parents=True, exist_ok=True)
        for stale in (folder / PROMPTS).iterdir():
            if stale.is_file() and stale.name.endswith((".md", ".messages.json", ".schema.json")):
                stale.unlink()
        write_text(folder / PROGRAM, to_json(program_state(program)))
        for name, predictor in program.named_predictors():
            identity = role_id(name)
            write_text(folder / PROMPTS / f"{identity}.md", role_markdown(name, predictor))
            write_text(folder / PROMPTS / f"{identity}.messages.json", to_json(template(predictor)))
            write_text(folder / PROMPTS / f"{identity}.schema.json", to_json(output_schema(predictor.signature)))
        # Last: a folder with an artifact.json is complete.
        write_text(folder / ARTIFACT, to_json(info.model_dump(mode="json")))
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror or error}") from None
    return info


def describe_artifact(
    program: Strategy,
    task: Task | TaskInfo | None,
    *,
    report: CompileReport | None = None,
    tuning: Mapping[str, Any] | None = None,
    held_out: HeldOutReport | None = None,
) -> ArtifactInfo:
    """Return what an artifact says of a program; see `save_artifact`."""
    members = program.members if isinstance(program, Ensemble) else []
    about = task if isinstance(task, TaskInfo) else None
    if isinstance(task, Task):
        options = json.loads(json.dumps(task.options, default=str))
        about = TaskInfo(name=task.name, version=task.version, options=options, fingerprint=task.fingerprint)
    report = _without_addresses(report)
    if report is not None:
        models = report.models
    else:
        try:
            models = [_described(model) for model in models_of(program, None)]
        except InputError:
            models = []  # a program may be saved where no model is configured
    return ArtifactInfo(
        strategy=program.name,
        settings=program.config.model_dump(mode="json"),
        answer=spec_of(program.answer_type),
        members=[Member(strategy=member.name, settings=member.config.model_dump(mode="json")) for member in members],
        roles={name: _fields(predictor) for name, predictor in program.named_predictors()},
        task=about,
        models=models,
        role_models={
            name: _described(predictor.lm) for name, predictor in program.named_predictors() if predictor.lm is not None
        },
        compilation=report,
        tuning=dict(tuning or {}),
        held_out=held_out,
        program_fingerprint=fingerprint_of(program),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
    )


def update_artifact(folder: Path | str, **changes: Any) -> ArtifactInfo:
    """Change fields of a folder's `artifact.json`, such as `held_out`.

    Raises:
        InputError: when the folder is no artifact.
    """
    info = load_info(folder).model_copy(update=changes)
    write_text(_folder_of(folder) / ARTIFACT, to_json(info.model_dump(mode="json")))
    return info


def program_state(program: Strategy) -> dict[str, Any]:
    """Return a program's prompts as DSPy saves them, without models; `program.load` of DSPy reads it too."""
    from dspy.utils.saving import get_dependency_versions

    state: dict[str, Any] = {}
    for name, predictor in program.named_predictors():
        state[name] = {
            "traces": [],
            "train": [],
            "demos": [_demo_state(demo) for demo in predictor.demos],
            "signature": predictor.signature.dump_state(),
            "lm": None,
        }
    return {**state, "metadata": {"dependency_versions": get_dependency_versions()}}


def _demo_state(demo: Any) -> dict[str, Any]:
    return {str(name): serialize_for_json(value) for name, value in dict(demo).items()}


def _fields(predictor: dspy.Predict) -> RoleFields:
    signature = predictor.signature
    return RoleFields(
        inputs=list(signature.input_fields),
        outputs=list(signature.output_fields),
        nearest=predictor.nearest if isinstance(predictor, NearestDemos) else None,
    )


def _described(lm: dspy.LM) -> dict[str, Any]:
    """Return a model's description without its address: an artifact is handed on."""
    return {name: value for name, value in describe(lm).items() if name != "api_base"}


def _without_addresses(report: CompileReport | None) -> CompileReport | None:
    if report is None:
        return None
    models = [{name: value for name, value in model.items() if name != "api_base"} for model in report.models]
    changes: dict[str, Any] = {"models": models}
    for field in ("prompt_model", "teacher_model"):
        model = getattr(report, field)
        if model is not None:
            changes[field] = {name: value for name, value in model.items() if name != "api_base"}
    return report.model_copy(update=changes)


def _check_folder(folder: Path, info: ArtifactInfo, overwrite: bool) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder}: is a file; an artifact is a folder")
    if (folder / ARTIFACT).exists():
        if not overwrite and load_info(folder).program_fingerprint != info.program_fingerprint:
            raise InputError(f"{folder}: holds another program's artifact; choose another folder, or overwrite it")
        return
    # A folder that a killed process left half written is taken over.
    if strange := sorted({path.name for path in folder.iterdir()} - _OURS):
        raise InputError(f"{folder}: holds something else than an artifact ({strange[0]}); choose another folder")


# -- loading ----------------------------------------------------------------------------------------------------------


def load(path: Path | str, *, answer: Any = None) -> Strategy:
    """Load a program from an artifact folder: in another process, folder or machine.

    It has no models: it uses the configured one, or those of `with_models`.

    Args:
        path: the folder, or its `artifact.json`.
        answer: the class of the answers, for an artifact whose class has code of its own.

    Raises:
        InputError: for a folder that is no artifact, is of another version, or whose content is not as it should be;
            the text names file and field.
    """
    info = load_info(path)
    folder = _folder_of(path)
    where = folder / ARTIFACT
    answer_type = type_of(info.answer, answer)
    program = _empty(info, answer_type, where)
    for name, fields in info.roles.items():
        if fields.nearest is not None:
            predictor = dict(program.named_predictors()).get(name)
            if predictor is not None:
                set_attribute_by_name(program, name, NearestDemos(predictor.signature, (), fields.nearest))
    _fill(program, _read_json(folder / PROGRAM), info, folder / PROGRAM)
    return program


def load_info(path: Path | str) -> ArtifactInfo:
    """Read an artifact's `artifact.json`.

    Raises:
        InputError: as `load`.
    """
    where = _folder_of(path) / ARTIFACT
    data = _read_json(where)
    if data.get("format") != "townhall-artifact":
        raise InputError(f"{where}: not an artifact of townhall (field format)")
    version = data.get("format_version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise InputError(f"{where}: format_version is {version!r}; it must be a whole number")
    if version > FORMAT_VERSION:
        raise InputError(
            f"{where}: made by a newer townhall (format {version}; this one reads up to {FORMAT_VERSION}); "
            "update townhall"
        )
    while version < FORMAT_VERSION:
        if version not in MIGRATIONS:
            raise InputError(f"{where}: format {version} cannot be read by this townhall any more")
        data = MIGRATIONS[version](data)
        version += 1
    try:
        return ArtifactInfo.model_validate(data)
    except ValidationError as error:
        raise _invalid(where, error) from None


def _empty(info: ArtifactInfo, answer: Any, where: Path) -> Strategy:
    """Return an artifact's program with its strategy's own prompts."""
    try:
        if info.strategy == Ensemble.name:
            members = [_build(member.strategy, member.settings, answer) for member in info.members]
            return Ensemble(members, build_config(EnsembleConfig, info.settings, Ensemble.name))
        return _build(info.strategy, info.settings, answer)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _build(strategy: str, settings: dict[str, Any], answer: Any) -> Strategy:
    kind = STRATEGIES.get(strategy)
    return kind(build_config(kind.Config, settings, strategy), answer=answer)


def _fill(program: Strategy, data: dict[str, Any], info: ArtifactInfo, where: Path) -> None:
    """Put saved prompts into a program, after every part was checked."""
    predictors = dict(program.named_predictors())
    roles = {name: state for name, state in data.items() if name != "metadata"}
    if set(roles) != set(predictors) or set(info.roles) != set(predictors):
        raise InputError(
            f"{where}: has prompts for {', '.join(sorted(map(str, roles))) or 'no role'}; strategy '{info.strategy}' "
            f"with these settings has the roles {', '.join(sorted(predictors))}"
        )
    states = {}
    for name, predictor in predictors.items():
        try:
            states[name] = _RoleState.model_validate(roles[name])
        except ValidationError as error:
            raise _invalid(where, error, name) from None
        _check_fields(name, predictor.signature, info.roles[name], states[name], where)
    for name, predictor in predictors.items():
        signature = predictor.signature.with_instructions(states[name].signature.instructions)
        for field, saved in zip(signature.fields, states[name].signature.fields, strict=True):
            now = signature.fields[field].json_schema_extra
            if (now["prefix"], now["desc"]) != (saved.prefix, saved.description):
                signature = signature.with_updated_fields(field, prefix=saved.prefix, desc=saved.description)
        predictor.signature = signature
        predictor.demos = [typed_demo(signature, demo) for demo in states[name].demos]


def _check_fields(
    name: str, signature: type[dspy.Signature], fields: RoleFields, state: _RoleState, where: Path
) -> None:
    mine = [*signature.input_fields, *signature.output_fields]
    theirs = [*fields.inputs, *fields.outputs]
    if mine != theirs or len(state.signature.fields) != len(mine):
        raise InputError(
            f"{where}: the role '{name}' was tuned with the fields {', '.join(theirs)}; in this townhall it has "
            f"{', '.join(mine)}"
        )


def typed_demo(signature: type[dspy.Signature], demo: Mapping[str, Any]) -> dspy.Example:
    """Return a saved demonstration with typed values.

    A value that does not fit its field's type, or would be written differently, stays the JSON it is: prompts come out
    the same either way.
    """
    values = dict(demo)
    for name, field in signature.fields.items():
        if name in values and field.annotation is not str:
            try:
                typed = TypeAdapter(field.annotation).validate_python(values[name])
            except ValidationError:
                continue
            # Not by ==, for which 3, 3.0 and True may be one.
            if json.dumps(serialize_for_json(typed)) == json.dumps(values[name]):
                values[name] = typed
    return dspy.Example(**values)


def _folder_of(path: Path | str) -> Path:
    path = Path(path)
    return path.parent if path.name == ARTIFACT and not path.is_dir() else path


def _read_json(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise InputError(f"{path}: larger than any artifact ({path.stat().st_size} bytes)")
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        what = "no such artifact" if not path.exists() else f"cannot be read: {error.strerror or error}"
        raise InputError(f"{path}: {what}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error})") from None
    if not isinstance(data, dict):
        raise InputError(f"{path}: must be a JSON object")
    return data


def _invalid(where: Path, error: ValidationError, role: str | None = None) -> InputError:
    problem = error.errors()[0]
    path = [*([role] if role else []), *map(str, problem["loc"])]
    return InputError(f"{where}, {'.'.join(path)}: {problem['msg'][0].lower()}{problem['msg'][1:]}")
