from __future__ import annotations

import json

import pytest

ARITHMETIC = ("--task", "arithmetic", "-T", "count=60")


@pytest.fixture
def model(townhall):
    """A simulated model that is right about arithmetic seven times of ten."""
    townhall("generate", "arithmetic", "--count", "60", "--out", "answers.jsonl")
    return ("--lm", "simulated?accuracy=0.7&answers=answers.jsonl")


@pytest.fixture
def compiled(townhall, model):
    """The folder of a compiled society."""
    outcome = townhall(
        "compile", *ARITHMETIC, *model, "--strategy", "society", "--agents", "2", "--rounds", "1", "-S", "train=4",
        "--no-test", "--json",
    )  # fmt: skip
    assert outcome.code == 0, outcome
    return outcome.json["artifact"]


def test_compile_saves_an_artifact_and_judges_it_held_out(townhall, model, folder):
    outcome = townhall(
        "compile", *ARITHMETIC, *model, "--strategy", "society", "--agents", "2", "--rounds", "1", "-S", "train=4",
        "--test-limit", "4", "--json",
    )  # fmt: skip
    assert outcome.code == 0, outcome
    report = outcome.json
    assert report["artifact"] == "artifacts/arithmetic-society-bootstrap"
    assert report["compilation"]["sizes"]["train"] == 4
    assert [row["name"] for row in report["held_out"]["rows"]] == ["tuned", "untuned", "single", "majority"]
    assert report["held_out"]["n"] == 4
    saved = json.loads((folder / report["artifact"] / "artifact.json").read_text())
    assert saved["held_out"]["n"] == 4


def test_compile_shows_what_became_of_each_role(townhall, model):
    outcome = townhall(
        "compile",
        *ARITHMETIC,
        *model,
        "--strategy",
        "single",
        "--teleprompter",
        "labeled",
        "-S",
        "train=4",
        "--no-test",
    )
    assert outcome.code == 0, outcome
    assert "arithmetic · single · labeled" in outcome.out
    assert "instructions" in outcome.out
    assert "artifact written to artifacts/arithmetic-single-labeled" in outcome.err


def test_compile_refuses_another_programs_folder_before_any_call(refused, compiled, model):
    text = refused(
        "compile", *ARITHMETIC, *model, "--strategy", "society", "--teleprompter", "labeled", "--out", compiled
    )
    assert "holds another program's artifact; name another --out, or add --overwrite" in text


def test_budget_ends_a_compilation_with_code_3(townhall, model):
    outcome = townhall(
        "compile", *ARITHMETIC, *model, "--strategy", "society", "-S", "train=4", "--max-calls", "6", "--no-test"
    )
    assert outcome.code == 3
    assert outcome.err.splitlines()[-1].startswith("townhall: stopped: ")


def test_artifacts_program_can_be_evaluated_with_other_settings(townhall, compiled, model):
    report = townhall(
        "evaluate", *ARITHMETIC, *model, "--artifact", compiled, "--agents", "3", "--limit", "2", "--json"
    ).json
    assert report["strategy"] == "society"
    assert report["settings"]["agents"] == 3
    assert report["settings"]["rounds"] == 1


def test_artifacts_strategy_cannot_be_another(refused, compiled, model):
    text = refused("evaluate", *ARITHMETIC, *model, "--artifact", compiled, "--strategy", "town-hall")
    assert "--strategy is 'town-hall', and the artifact's is 'society'" in text
    assert "--agents is 1" in refused("evaluate", *ARITHMETIC, *model, "--artifact", compiled, "--agents", "1")
    assert "answer is Grid; the artifact's answers are int" in refused(
        "evaluate", "--task", "zebra-grid", "-T", "count=4", *model, "--artifact", compiled
    )
    assert "gone" in refused("evaluate", *ARITHMETIC, *model, "--artifact", "gone")


def test_artifact_debates_a_question_of_ones_own(townhall, compiled, model):
    assert townhall("debate", "What is 2 + 2?", "--artifact", compiled, *model, "--json").json["strategy"] == "society"


def test_export_writes_files_and_names_them(townhall, compiled, folder):
    outcome = townhall("export", compiled, "--format", "messages", "--out", "messages")
    files = outcome.out.split()
    assert outcome.code == 0
    assert files
    assert all((folder / file).exists() for file in files)
    assert townhall("export", compiled, "--format", "python", "--out", "debate.py", "--json").json["files"] == [
        "debate.py"
    ]
    compile((folder / "debate.py").read_text(), "debate.py", "exec")


def test_export_refuses_unknown_formats_and_folders(refused, compiled):
    assert "unknown export format 'pyton'. Did you mean 'python'?" in refused(
        "export", compiled, "--format", "pyton", "--out", "x"
    )
    assert "gone" in refused("export", "gone", "--format", "python", "--out", "x")


def test_tune_searches_saves_the_best_and_judges_it(townhall, model, folder):
    command = (
        "tune", *ARITHMETIC, *model, "--strategy", "society", "--agents", "2:3", "--rounds", "1:1", "--trials", "2",
        "--limit", "4", "--test-limit", "3",
    )  # fmt: skip
    outcome = townhall(*command, "--json")
    assert outcome.code == 0, outcome
    report = outcome.json
    assert report["states"]["complete"] == 2
    assert {trial["settings"]["agents"] for trial in report["trials"] if trial["state"] == "complete"} == {2, 3}
    assert report["artifact"] == "artifacts/arithmetic-society"
    assert report["held_out"]["rows"][0]["name"] == "tuned"
    saved = json.loads((folder / report["artifact"] / "artifact.json").read_text())
    assert saved["tuning"]["settings"] == report["best"]["settings"]
    shown = townhall("study", "arithmetic-society")
    assert "agents in 2..3" in shown.out
    assert "Pareto front" in shown.out
    assert townhall("study", "studies/arithmetic-society", "--json").json["best"] == report["best"]


def test_tuned_settings_can_be_fixed(townhall, model):
    report = townhall(
        "tune", *ARITHMETIC, *model, "--strategy", "society", "--agents", "2:2", "--fix", "rounds=1",
        "--fix", "prompt-style=short", "--trials", "1", "--limit", "2", "--no-test", "--json",
    ).json  # fmt: skip
    assert report["description"]["fixed"] == {"rounds": 1, "prompt_style": "short"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--agents", "1:9"], "agents=1:9: outside what the strategy allows, 2..9"),
        (["--agents", "few"], "agents=few: give bounds as LOW:HIGH"),
        (["--agent", "2:3"], "no option '--agent'. Did you mean '--agents'?"),
        (["--fix", "agents=1"], "--agents is '1': one agent has nobody to read"),
        (["--fix", "agnets=3"], "no setting 'agnets'. Did you mean 'agents'?"),
        (["--sampler", "tep"], "unknown sampler 'tep'. Did you mean 'tpe'?"),
        (["--objectives", "score,beauty"], "unknown objective 'beauty'"),
        (["--trials", "0"], "--trials: 0 is out of range; it must be at least 1"),
        (["--role-lm", "revise=simulated"], "name at least two models to choose from"),
        (["--split", "test"], "--split: 'test' is not one of 'dev', 'train'"),
    ],
)
def test_bad_searches_are_refused(refused, folder, arguments, problem):
    assert problem in refused("tune", *ARITHMETIC, "--lm", "simulated", "--strategy", "society", *arguments)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--teleprompter", "bootstrp"], "unknown teleprompter 'bootstrp'. Did you mean 'bootstrap'?"),
        (["-S", "demo=2"], "has no size 'demo'. Did you mean 'demos'?"),
        (["-S", "demos=0"], "demos is '0'"),
        (["--only", "vot"], "vot"),
        (["--teleprompter", "gepa"], "gepa needs a reflection model: give --reflection-lm NAME"),
    ],
)
def test_bad_compilations_are_refused(refused, folder, arguments, problem):
    assert problem in refused("compile", *ARITHMETIC, "--lm", "simulated", *arguments)


def test_unknown_studies_list_the_known_ones(refused, folder):
    assert "no study 'x' here or in studies" in refused("study", "x")
    (folder / "studies" / "arithmetic-society").mkdir(parents=True)
    (folder / "studies" / "arithmetic-society" / "study.json").write_text("{")
    assert "Did you mean 'arithmetic-society'?" in refused("study", "arithmetic-societ")
    assert "study.json: damaged" in refused("study", "arithmetic-society")


def test_help_lists_sizes_and_ranges(townhall):
    assert "Sizes of miprov2" in townhall("compile", "--teleprompter", "miprov2", "--help").out
    tuned = townhall("tune", "--strategy", "society", "--help").out
    assert "--agents LOW:HIGH" in tuned
    assert "It can be 2:9." in tuned
