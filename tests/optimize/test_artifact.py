"""Artifacts: what is saved comes back the same anywhere, and a file that was tampered with loads nothing but data."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Literal

import dspy
import pytest
from pydantic import BaseModel, Field, field_validator

import townhall
from townhall.errors import InputError
from townhall.optimize.answer_types import spec_of, type_of
from townhall.optimize.artifact import MIGRATIONS, load, load_info, save_artifact
from townhall.optimize.held_out import fingerprint_of
from townhall.optimize.nearest_demos import NearestDemos
from townhall.optimize.templates import output_schema, template
from townhall.programs.base import STRATEGIES
from townhall.programs.town_hall import TownHall
from townhall.signatures.answers import Grid
from townhall.signatures.transcript import Critique, Persona


class Colour(BaseModel):
    """A colour on a screen."""

    name: str = Field(description="what people call it")
    channels: list[int]
    alpha: float | None = None
    finish: Literal["matt", "gloss"] = "matt"


class Opinionated(BaseModel):
    """A model with code of its own."""

    value: str

    @field_validator("value")
    @classmethod
    def _lower(cls, value):
        return value.lower()


@pytest.fixture
def saved(small, arithmetic, tmp_path):
    """An artifact of a tuned town hall, and the program."""
    hall = small("town-hall")
    hall.argue.signature = hall.argue.signature.with_instructions("Argue.\n\nIn two steps {{really}}.")
    hall.vote.signature = hall.vote.signature.with_updated_fields("reason", desc="why, with a number")
    save_artifact(hall, arithmetic, tmp_path / "artifact")
    return hall, tmp_path / "artifact"


def edit(folder, file, change):
    path = folder / file
    data = json.loads(path.read_text())
    changed = change(data)
    path.write_text(json.dumps(data if changed is None else changed))


def prompts(program):
    return {name: template(predictor) for name, predictor in program.named_predictors()}


# -- the way back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES.names())
def test_a_loaded_program_sends_the_same_messages_and_schemas(strategy, small, arithmetic, tmp_path):
    program = small(strategy)
    save_artifact(program, arithmetic, tmp_path / "a")
    loaded = load(tmp_path / "a")
    assert prompts(loaded) == prompts(program)
    assert loaded.config == program.config
    for (_, before), (_, after) in zip(program.named_predictors(), loaded.named_predictors(), strict=True):
        assert output_schema(before.signature) == output_schema(after.signature)
    assert fingerprint_of(loaded) == fingerprint_of(program)


def test_tuned_instructions_and_field_descriptions_come_back(saved):
    hall, folder = saved
    loaded = load(folder)
    assert loaded.argue.signature.instructions == "Argue.\n\nIn two steps {{really}}."
    assert loaded.vote.signature.fields["reason"].json_schema_extra["desc"] == "why, with a number"
    assert prompts(loaded) == prompts(hall)


def test_demonstrations_with_pydantic_literal_and_grid_values_survive_typed(tmp_path):
    hall = TownHall(answer=Grid)
    grid = Grid(header=["House", "Name"], rows=[["1", "Ann"], ["2", ""]])
    hall.identify.demos = [
        dspy.Example(
            augmented=True, question="Q", count=1, guidance="g", personas=[Persona(name="Ann", stance="é\u2028")]
        )
    ]
    hall.rebut.demos = [
        dspy.Example(
            question="Q",
            discussion="d",
            persona="p",
            critiques=[Critique(target="Bob", critique='"quoted"')],
            argument="a",
            answer=grid,
        )
    ]
    labelled = TownHall(answer=Literal["yes", "no"])
    labelled.argue.demos = [dspy.Example(question="Q", persona="p", argument="a", answer="yes")]
    for program in (hall, labelled):
        folder = tmp_path / f"{program.answer_type}"[:5].replace("<", "x")
        save_artifact(program, None, folder)
        assert prompts(load(folder)) == prompts(program)
    loaded = load(tmp_path / "xclas")
    assert loaded.rebut.demos[0].answer == grid
    assert loaded.rebut.demos[0].critiques == hall.rebut.demos[0].critiques
    assert isinstance(loaded.identify.demos[0].personas[0], Persona)


def test_an_incomplete_demonstration_comes_back_as_it_was(tmp_path):
    program = TownHall(answer=float)
    program.argue.demos = [dspy.Example(question="Q", answer="not a number"), dspy.Example(question="Q", answer=3)]
    save_artifact(program, None, tmp_path / "a")
    assert prompts(load(tmp_path / "a")) == prompts(program)


def test_an_artifact_loads_in_a_new_process_another_folder_and_without_a_warning(saved, tmp_path):
    hall, folder = saved
    elsewhere = tmp_path / "moved" / "there"
    shutil.copytree(folder, elsewhere)
    shutil.rmtree(folder)
    code = (
        "import sys, json, townhall\n"
        "from townhall.optimize.templates import template\n"
        "program = townhall.load(sys.argv[1])\n"
        "print(json.dumps({name: template(p) for name, p in program.named_predictors()}))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(elsewhere)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert json.loads(done.stdout) == prompts(hall)


def test_the_folder_holds_prompts_for_people_and_for_programs(saved):
    hall, folder = saved
    assert sorted(path.name for path in (folder / "prompts").glob("vote*")) == [
        "vote.md",
        "vote.messages.json",
        "vote.schema.json",
    ]
    assert json.loads((folder / "prompts" / "argue.messages.json").read_text()) == template(hall.argue)
    assert "In two steps" in (folder / "prompts" / "argue.md").read_text()


def test_dspy_reads_the_state_as_its_own(saved):
    hall, folder = saved
    plain = TownHall(answer=int)
    plain.load(folder / "program.json")
    assert plain.argue.signature.instructions == hall.argue.signature.instructions


def test_no_key_and_no_address_is_saved(small, arithmetic, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-a-test")
    lm = townhall.lm("openai/secret-model", api_base="http://inner.example:8000/v1")
    other = dspy.LM("openai/x", api_key="sk-secret-of-a-test", api_base="http://user:word@inner.example/v1")
    program = small("debate-only").with_models([lm, other])
    program.judge.lm = other
    info = save_artifact(program, arithmetic, tmp_path / "a")
    text = "".join(path.read_text() for path in (tmp_path / "a").rglob("*") if path.is_file())
    for secret in ("sk-secret", "inner.example", "user:word"):
        assert secret not in text
    assert info.role_models["judge"]["model"] == "openai/x"
    assert load(tmp_path / "a").judge.lm is None


# -- answer types ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer", [int, float, str, bool, Literal["a", "b"], Literal[1, 2], Grid, Colour, list[str], list[Colour]]
)
def test_answer_types_come_back_from_data_with_the_same_prompt(answer, tmp_path):
    program = TownHall(answer=answer)
    save_artifact(program, None, tmp_path / "a")
    loaded = load(tmp_path / "a")
    assert prompts(loaded) == prompts(program)
    assert output_schema(loaded.argue.signature) == output_schema(program.argue.signature)


def test_a_rebuilt_model_reads_answers_as_the_original_does():
    rebuilt = type_of(spec_of(Colour))
    assert rebuilt.model_validate({"name": "red", "channels": ["255", 0, 0]}).model_dump() == {
        "name": "red",
        "channels": [255, 0, 0],
        "alpha": None,
        "finish": "matt",
    }
    with pytest.raises(ValueError, match="finish"):
        rebuilt.model_validate({"name": "red", "channels": [], "finish": "wet"})


def test_a_class_with_code_must_be_given_to_load_and_must_be_the_same(tmp_path):
    program = TownHall(answer=Opinionated)
    save_artifact(program, None, tmp_path / "a")
    with pytest.raises(
        InputError, match=r"has code of its own: load it with townhall\.load\(path, answer=Opinionated\)"
    ):
        load(tmp_path / "a")
    assert load(tmp_path / "a", answer=Opinionated).answer_type is Opinionated
    with pytest.raises(InputError, match="the artifact's answers are Opinionated"):
        load(tmp_path / "a", answer=Colour)


@pytest.mark.parametrize("answer", [dict, set, object, dict[str, int], bytes])
def test_types_that_data_cannot_describe_are_refused_when_saving(answer, tmp_path):
    with pytest.raises(InputError, match="cannot be recorded"):
        spec_of(answer)


# -- wrong and malicious files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(format_version=99), "made by a newer townhall"),
        (lambda data: data.update(format_version=0), "format 0 cannot be read by this townhall any more"),
        (lambda data: data.update(format_version="1"), "it must be a whole number"),
        (lambda data: data.update(format="pickle"), "not an artifact of townhall"),
        (lambda data: data.update(strategy="os.system"), "unknown strategy 'os.system'"),
        (lambda data: data.update(strategy="../town-hall"), "unknown strategy"),
        (lambda data: data["settings"].update(personas=10**9), "personas is 1000000000"),
        (lambda data: data["settings"].update(__class__="x"), "has no setting '__class__'"),
        (lambda data: data.update(answer={"type": "import", "path": "os.system"}), "answer"),
        (lambda data: data.update(answer={"type": "int", "module": "os"}), "answer.int.module"),
        (lambda data: data.update(answer={"type": "model", "name": "__import__('os')", "json_schema": {}}), "answer"),
        (
            lambda data: data.update(
                answer={"type": "model", "name": "X", "json_schema": {"type": "object", "properties": {"__x__": {}}}}
            ),
            "is not rebuilt",
        ),
        (lambda data: data.update(code="print(1)"), "code: extra inputs are not permitted"),
        (lambda data: data["roles"].update(extra={"inputs": [], "outputs": []}), "has the roles argue, identify"),
        (lambda data: data["roles"]["vote"].update(nearest=0), "roles.vote.nearest"),
        (lambda data: data["roles"]["vote"].update(inputs=["question"]), "was tuned with the fields question, reason"),
        (lambda data: [], "must be a JSON object"),
    ],
)
def test_an_artifact_json_that_was_tampered_with_is_refused_with_the_reason(change, message, saved):
    _, folder = saved
    edit(folder, "artifact.json", change)
    with pytest.raises(InputError) as error:
        load(folder)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


class Trap:
    """Something that must never be touched by loading."""

    sprung = False

    def __init__(self, *args, **kwargs):
        Trap.sprung = True


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data["argue"].update(lm={"_dspy_lm_class": f"{__name__}.Trap", "model": "x"}), "argue.lm"),
        (lambda data: data["argue"].update(lm={"model": "openai/x", "api_base": "http://evil/v1"}), "argue.lm"),
        (lambda data: data["argue"].update(config={"api_base": "http://evil/v1"}), "argue.config"),
        (lambda data: data["argue"].update(forward="lambda: 1"), "argue.forward"),
        (lambda data: data["argue"].update(__class__="x"), "argue.__class__"),
        (lambda data: data["argue"].update(traces=[["x"]]), "argue.traces"),
        (lambda data: data["argue"].update(demos="x"), "argue.demos"),
        (lambda data: data["argue"].update(demos=[["question", "x"]]), "argue.demos.0"),
        (lambda data: data["argue"]["signature"].update(instructions=["x"]), "argue.signature.instructions"),
        (lambda data: data["argue"]["signature"]["fields"].__delitem__(0), "was tuned with the fields"),
        (lambda data: data["argue"]["signature"]["fields"][0].update(annotation="os.system"), "annotation"),
        (lambda data: data.__delitem__("vote"), "has the roles argue, identify, rebut, vote"),
        (lambda data: data.update({"../../evil": data["vote"]}), "../../evil"),
        (lambda data: data.update({"members[0].__class__": data["vote"]}), "members[0].__class__"),
        (lambda data: "x", "must be a JSON object"),
    ],
)
def test_a_program_json_that_was_tampered_with_loads_nothing_but_data(change, message, saved):
    _, folder = saved
    edit(folder, "program.json", change)
    with pytest.raises(InputError) as error:
        load(folder)
    assert message in str(error.value)
    assert not Trap.sprung


def test_text_that_looks_like_code_stays_text(saved):
    _, folder = saved
    evil = "__import__('os').system('touch pwned') {{7*7}} {% raw %} ${HOME} \u202e"

    def change(data):
        data["argue"]["signature"]["instructions"] = evil
        data["argue"]["demos"] = [{"question": evil, "persona": evil, "argument": evil, "answer": evil}]

    edit(folder, "program.json", change)
    loaded = load(folder)
    assert loaded.argue.signature.instructions == evil
    assert loaded.argue.demos[0].answer == evil
    assert not os.path.exists("pwned")


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "nul\0l", '{"format": "townhall-artifact"'])
def test_files_that_are_no_json_are_refused_in_one_line(text, saved):
    _, folder = saved
    for file in ("artifact.json", "program.json"):
        (folder / file).write_text(text)
        with pytest.raises(InputError, match="not JSON"):
            load(folder)


def test_a_pickle_in_the_folder_is_never_read(saved):
    _, folder = saved
    (folder / "program.pkl").write_bytes(b"cos\nsystem\n(S'touch pwned'\ntR.")
    load(folder)
    assert not os.path.exists("pwned")


def test_what_is_no_artifact_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such artifact"):
        load(tmp_path)
    with pytest.raises(InputError, match="no such artifact"):
        load(tmp_path / "nowhere")
    (tmp_path / "artifact.json").mkdir()
    with pytest.raises(InputError):
        load(tmp_path)


def test_an_older_format_is_migrated_step_by_step(saved, monkeypatch):
    hall, folder = saved

    def from_zero(data):
        data["settings"] = data.pop("config")
        return data

    def age(data):
        data["format_version"] = 0
        data["config"] = data.pop("settings")

    edit(folder, "artifact.json", age)
    monkeypatch.setitem(MIGRATIONS, 0, from_zero)
    assert prompts(load(folder)) == prompts(hall)


def test_prompts_edited_by_hand_are_loaded_and_can_be_told_from_the_tuned_ones(saved):
    _, folder = saved
    edit(folder, "program.json", lambda data: data["vote"]["signature"].update(instructions="Vote as you like."))
    loaded = load(folder)
    assert loaded.vote.signature.instructions == "Vote as you like."
    assert fingerprint_of(loaded) != load_info(folder).program_fingerprint


# -- saving ---------------------------------------------------------------------------------------------------------


def test_another_programs_artifact_is_not_overwritten_unless_asked(saved, small, arithmetic):
    _, folder = saved
    with pytest.raises(InputError, match="holds another program's artifact"):
        save_artifact(small("society"), arithmetic, folder)
    save_artifact(small("society"), arithmetic, folder, overwrite=True)
    assert load(folder).name == "society"
    assert not (folder / "prompts" / "vote.md").exists()


def test_a_folder_with_something_else_in_it_is_left_alone(small, arithmetic, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"holds something else than an artifact \("):
        save_artifact(small("single"), arithmetic, tmp_path)
    with pytest.raises(InputError, match="is a file"):
        save_artifact(small("single"), arithmetic, tmp_path / "thesis.tex")


def test_a_folder_left_half_written_by_a_kill_is_taken_over(saved, small, arithmetic):
    hall, folder = saved
    (folder / "artifact.json").unlink()
    with pytest.raises(InputError, match="no such artifact"):
        load(folder)
    save_artifact(hall, arithmetic, folder)
    assert prompts(load(folder)) == prompts(hall)


def test_a_role_that_chooses_demonstrations_goes_on_doing_so(small, arithmetic, tmp_path):
    program = small("single")
    pool = [dspy.Example(question=f"Question {n} of many", reasoning="r", answer=n) for n in range(5)]
    program.solve = NearestDemos(program.solve.signature, pool, 2)
    save_artifact(program, arithmetic, tmp_path / "a")
    loaded = load(tmp_path / "a")
    assert [demo.answer for demo in loaded.solve.chosen("Question 3 of many?")] == [
        demo.answer for demo in program.solve.chosen("Question 3 of many?")
    ]
    assert len(loaded.reconfigured(seed=5).solve.chosen("Question 3 of many?")) == 2
