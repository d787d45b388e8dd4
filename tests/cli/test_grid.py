"""`townhall grid` and what goes with it: named models, groups by default, dynamics of pairs, bad input."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from townhall.models.server import SimulatedServer
from townhall.models.simulation import SimulatedBehaviour, Simulation, with_fields

COUNTRIES = ["japan"] * 4 + ["egypt"] * 4 + ["chile"] * 4
LABELS = ["yes", "no", "neutral"] * 4
#: Which stories each model has right. Nobody has story 11, `gus` has none.
RIGHT = {
    "ann": {0, 1, 2, 3, 4, 5},
    "bob": {0, 1, 2, 3, 4, 5, 6, 7},
    "cid": {4, 5, 6, 7, 8, 9},
    "dee": {6, 7, 8, 9, 10},
    "eve": {0, 1, 2},
    "fay": {0, 1, 2, 3, 4, 5, 6, 7, 8},
    "gus": set(),
}
WRONG = {"yes": "no", "no": "neither", "neither": "yes"}


def label(number):
    return {"neutral": "neither"}.get(LABELS[number], LABELS[number])


def story(number, **changed):
    return {
        "id": number,
        "country": COUNTRIES[number],
        "rule_of_thumb": f"Rule {number}.",
        "story": f"Story {number} of what somebody did.",
        "gold_label": LABELS[number],
        **changed,
    }


@pytest.fixture
def norms(folder):
    """Write `norms.jsonl`, and `models.yaml` with seven simulated models that know the stories of `RIGHT`."""
    (folder / "norms.jsonl").write_text("".join(json.dumps(story(number)) + "\n" for number in range(12)))
    keys = [
        {
            "question": f"Story {number} of",
            "answer": label(number),
            "wrong": [WRONG[label(number)]],
            "right": [name for name in RIGHT if number in RIGHT[name]],
        }
        for number in range(12)
    ]
    (folder / "answers.jsonl").write_text("".join(json.dumps(key) + "\n" for key in keys))
    entries = [f"{name}:\n  model: simulated/{name}?answers=answers.jsonl\n" for name in RIGHT]
    (folder / "models.yaml").write_text("".join(entries))
    return ("--task", "normad", "--data", "norms.jsonl")


GRID = ("--strategy", "debate-only", "--judge-lm", "simulated/judge", "--order", "file")


def numbers_after(title, page, rows):
    """Return the figures of the table below a title, by row label."""
    lines = page.split(title, 1)[1].splitlines()[3 : 3 + rows]
    return {line.split()[0]: [float(cell) for cell in re.findall(r"[+-]?\d+\.\d+", line)] for line in lines}


def test_seven_models_print_the_accuracies_oracle_and_parity_of_their_overlap(townhall, norms):
    outcome = townhall("grid", *norms, "--lms", "models.yaml", *GRID)
    assert outcome.code == 0, outcome.err
    assert "28 of 28" in outcome.err
    names = dict(zip("ABCDEFG", RIGHT, strict=True))
    accuracy = numbers_after("accuracy in debate", outcome.out, 7)
    oracle = numbers_after("oracle: at least one", outcome.out, 7)
    for row, (letter, name) in enumerate(names.items()):
        assert accuracy[letter][row] == pytest.approx(len(RIGHT[name]) / 12, abs=6e-4)
        assert oracle[letter] == pytest.approx([len(RIGHT[name] | RIGHT[other]) / 12 for other in RIGHT], abs=6e-4)
    # ann: 4 of 4 in Japan, 2 of 4 in Egypt, 0 of 4 in Chile: parities 1, .5, 0.
    line = next(line for line in outcome.out.splitlines() if line.startswith("A   ann"))
    assert re.findall(r"\d\.\d{3}", line) == ["0.500", "0.254", "0.746", "0.500", "0.000"]
    assert "mean parity, by group" in outcome.out
    assert "least parity, by group" in outcome.out
    assert "all models: the best alone is fay with 0.750" in outcome.out
    assert "oracle: some model is right on 0.917 (exactly one on 0.083, all on 0.000)" in outcome.out
    assert "none is right on 0.083; all give the same wrong answer on 0.083" in outcome.out
    # ann and fay differ on 6, 7 and 8 only.
    row = next(line for line in outcome.out.splitlines() if line.startswith("A + F") and "to" in line)
    assert row.split()[8] == "3"
    assert "SIMULATED" in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 100
    # JSON has the same as matrices, and showing the grid again takes no call.
    found = townhall("grid", *norms, *GRID, "--json").json
    split = sum(len(RIGHT[one] ^ RIGHT[other]) for one in RIGHT for other in RIGHT) // 2
    assert found["judged"] == split
    assert found["usage"]["calls"] == found["planned_calls"] == 7 * 12 + 21 * 12 * 4 + split
    diagonal = [found["matrices"]["accuracy"][place][place] for place in range(7)]
    assert diagonal == pytest.approx([len(known) / 12 for known in RIGHT.values()])
    assert len(found["pairs"]) == 21
    assert found["pairs"][0]["gain_interval"]["method"] == "newcombe"
    assert set(found["pairs"][0]["groups"]) == {"African-Islamic", "Confucian", "Latin America"}
    assert townhall("show", found["grid"], "--json").json == found
    assert townhall("show", found["grid"]).out == outcome.out


@pytest.mark.parametrize("columns", [80, 120])
def test_the_page_fits_the_terminal(columns, townhall, norms, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    outcome = townhall("grid", *norms, "--lm", "ann", "--lm", "bob", "--lm", "dee", *GRID, "--limit", "3")
    assert outcome.code == 0
    assert max(map(len, outcome.out.splitlines())) <= columns


def test_many_groups_are_left_to_json(townhall, norms, folder):
    countries = ["japan", "egypt", "chile", "france", "peru", "canada", "india", "italy", "kenya", "iran", "iraq"]
    rows = [story(number, country=country) for number, country in enumerate(countries)]
    (folder / "norms.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ("grid", *norms, "--lm", "ann", "--lm", "bob", *GRID, "--by", "country")
    outcome = townhall(*command)
    assert "accuracy by country" in outcome.out
    assert "11 groups are too many for a table here; --json has them" in outcome.out
    assert len(townhall(*command, "--json").json["pairs"][0]["groups"]) == 11


def test_models_of_the_file_can_be_chosen_and_others_added(townhall, norms):
    found = townhall(
        "grid", *norms, "--lms", "models.yaml", "--lm", "fay", "--lm", "ann", "--lm", "simulated/other",
        "--judge-lm", "gus", "--order", "file", "--limit", "2", "--json",
    ).json  # fmt: skip
    assert found["models"] == ["fay", "ann", "simulated/other"]
    assert found["pairs"][0]["models"] == ["fay", "ann"]


def test_a_judge_of_the_file_is_no_debater_unless_it_is_named(townhall, norms):
    command = ("grid", *norms, "--judge-lm", "gus", "--order", "file", "--limit", "1", "--rounds", "1", "--json")
    assert townhall(*command).json["models"] == ["ann", "bob", "cid", "dee", "eve", "fay"]
    assert townhall(*command, "--lm", "ann", "--lm", "gus").json["models"] == ["ann", "gus"]


def test_a_budget_ends_with_code_3_and_a_larger_one_goes_on(townhall, norms):
    command = ("grid", *norms, "--lm", "ann", "--lm", "dee", *GRID, "--limit", "4")
    stopped = townhall(*command, "--max-calls", "6")
    assert stopped.code == 3
    assert "stopped: the budget of" in stopped.err
    assert "stopped: " in stopped.out
    # Two singles and one pair of four stories; ann and dee agree on none of them.
    whole = 2 * 4 + 4 * 4 + 4
    finished = townhall(*command, "--max-calls", str(whole), "--json")
    assert (finished.code, finished.json["status"]) == (0, "complete")
    assert finished.json["usage"]["calls"] == whole


def test_a_tuned_program_is_debated_by_the_pairs(townhall, norms, folder):
    from townhall.evaluation.assembly import program
    from townhall.optimize.artifact import save_artifact
    from townhall.tasks.access import task

    tuned = program(task("normad", "norms.jsonl"), "debate-only")
    tuned.decide.signature = tuned.decide.signature.with_instructions("Decide in one breath.")
    save_artifact(tuned, task("normad", "norms.jsonl"), folder / "tuned")
    found = townhall(
        "grid", *norms, "--lm", "ann", "--lm", "bob", "--artifact", "tuned", "--order", "file", "--limit", "2", "--json"
    ).json
    # The singles are asked in the tuned words too: their replies serve the pair.
    assert found["usage"]["calls"] == found["planned_calls"]
    assert found["usage"]["cached"] == 4


# -- interrupted -----------------------------------------------------------------------------------------------------

SCRIPT = "import sys\nfrom townhall.cli import interrupt, main\ninterrupt.GRACE = 1.0\nsys.exit(main.main())"


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_interrupted_or_killed_the_same_command_goes_on_and_repeats_no_call(how, code, townhall, norms, folder):
    names = ("ann", "bob", "dee")
    answers = SimulatedBehaviour(answers={f"Story {number} of": label(number) for number in range(12)}, latency=0.02)
    talk = {name: lambda call, name=name: f"{call.model} {name}" for name in ("reasoning", "feedback", "reason")}
    with SimulatedServer(with_fields(Simulation(answers), **talk), behaviour=answers) as server:
        entries = [f"{name}:\n  model: {name}\n  api_base: {server.url}\n" for name in (*names, "judge")]
        (folder / "models.yaml").write_text("".join(entries))
        command = ["grid", *norms, *(part for name in names for part in ("--lm", name)), "--judge-lm", "judge"]
        command += ["--order", "file", "--concurrency", "2"]
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TOWNHALL_CACHE": str(folder / "cache")},
        )
        while server.requests < 60:  # among the pairs: the singles are 36
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(how)
        _, err = process.communicate(timeout=30)
        assert process.returncode == code
        if how == signal.SIGINT:
            assert err.splitlines()[-1].endswith("the same command goes on where it stopped")
        lost = server.requests
        found = townhall(*command, "--json").json
        assert found["status"] == "complete"
        whole = found["planned_calls"]
        assert whole == 3 * 12 + 3 * 12 * 4 + found["judged"]
        # Only the two calls that were under way when it was killed may have been made twice.
        assert whole <= server.requests <= whole + (2 if how == signal.SIGKILL else 0)
        assert found["usage"]["calls"] <= whole
        assert lost < whole


# -- named models ----------------------------------------------------------------------------------------------------


def test_every_command_knows_the_models_of_the_file(townhall, norms, folder):
    shown = townhall("evaluate", *norms, "--strategy", "single", "--lm", "fay", "--order", "file", "--json").json
    assert shown["scores"]["accuracy"] == pytest.approx(9 / 12)
    assert shown["models"][0]["name"] == "fay"
    pair = ("--strategy", "debate-only", "--lm", "ann", "--lm", "bob", "--judge-lm", "gus", "--order", "file")
    assert [model["name"] for model in townhall("evaluate", *norms, *pair, "--json").json["models"]] == ["ann", "bob"]
    assert townhall("debate", *norms, "--example", "3", "--strategy", "single", "--lm", "ann", "--json").code == 0
    (folder / "models.yaml").rename(folder / "mine.yaml")
    assert townhall("evaluate", *norms, *pair, "--models-file", "mine.yaml").code == 0


def test_the_environment_may_name_the_file(townhall, norms, folder, monkeypatch):
    (folder / "models.yaml").rename(folder / "mine.yaml")
    assert townhall("grid", *norms, *GRID).code == 2
    monkeypatch.setenv("TOWNHALL_MODELS", "mine.yaml")
    found = townhall("grid", *norms, *GRID, "--limit", "1", "--json").json
    assert found["models"] == list(RIGHT)


def test_prices_of_the_file_are_added_up(townhall, norms, folder):
    with (folder / "models.yaml").open("a") as file:
        file.write("dear:\n  model: simulated/dear\n  prompt_price: 1000000\n  completion_price: 0\n")
    found = townhall("grid", *norms, "--lm", "dear", "--lm", "ann", "--order", "file", "--limit", "1", "--json").json
    dear = next(cell for cell in found["singles"] if cell["models"] == ["dear"])
    assert dear["usage"]["cost"] == pytest.approx(dear["usage"]["prompt_tokens"])
    assert found["usage"]["cost"] > dear["usage"]["cost"]


# -- options of the task ---------------------------------------------------------------------------------------------


def test_the_context_that_is_shown_is_an_option_of_its_own(townhall, norms):
    command = ("evaluate", *norms, "--strategy", "single", "--lm", "ann", "--order", "file", "--limit", "1", "--json")
    questions = {}
    for context in ("none", "country", "rot"):
        run = townhall(*command, "--context", context).json["run"]
        questions[context] = townhall("show", run, "--example", "#1", "--json").json["question"]
        assert townhall(*command, "-T", f"context={context}").json["run"] == run
    assert ["Japan" in question for question in questions.values()] == [False, True, True]
    assert ["Rule 0." in question for question in questions.values()] == [False, False, True]


def test_options_of_the_task_that_are_wrong_are_refused(refused, norms, folder):
    command = ("evaluate", *norms, "--lm", "ann")
    assert "option context: unknown 'all'" in refused(*command, "--context", "all")
    assert "the context 'value' needs the field 'value', which is missing here" in refused(
        *command, "--context", "value"
    )
    assert "no option '--contxt'. Did you mean '--context'?" in refused(*command, "--contxt", "rot")
    assert "unknown task 'nromad'. Did you mean 'normad'?" in refused(
        "evaluate", "--task", "nromad", "--context", "rot"
    )
    assert "no option '--context'" in refused("evaluate", "--task", "gsm8k", "--context", "rot")


def test_score_and_grid_take_them_too(townhall, refused, norms, folder):
    (folder / "outputs.jsonl").write_text(json.dumps({"id": 0, "output": "yes"}) + "\n")
    (folder / "groups.csv").write_text("country,group\njapan,East\nchile,West\negypt,South\n")
    found = townhall("score", *norms, "--outputs", "outputs.jsonl", "--groups", "groups.csv", "--json").json
    assert list(found["groups"]) == ["East"]
    grid = ("grid", *norms, "--lm", "ann", "--lm", "bob", "--order", "file", "--limit", "1", "--json")
    assert list(townhall(*grid, "--groups", "groups.csv").json["singles"][0]["groups"]) == ["East"]
    help_page = townhall("evaluate", "--task", "zebra-grid", "--help").out
    assert "--answer-format VALUE" in help_page
    assert "-T seed=VALUE" in help_page  # --seed is another thing


# -- groups and dynamics in other commands ---------------------------------------------------------------------------


def test_evaluate_reports_parity_between_cultural_groups_unasked(townhall, norms):
    found = townhall("evaluate", *norms, "--strategy", "single", "--lm", "ann", "--order", "file", "--json").json
    assert found["by"] == "group"
    assert {name: group["scores"]["parity"] for name, group in found["groups"].items()} == {
        "African-Islamic": 0.5,
        "Confucian": 1.0,
        "Latin America": 0.0,
    }
    assert (found["scores"]["parity"], found["scores"]["parity_min"]) == (0.5, 0.0)
    shown = townhall("show", found["run"]).out
    assert "Latin America (tiny, zero)" in shown
    assert "parity_min" in shown


def test_score_reports_parity_between_cultural_groups_unasked(townhall, norms, folder):
    outputs = [
        {"id": number, "output": label(number) if number in RIGHT["ann"] else "I do not know"} for number in range(12)
    ]
    (folder / "outputs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in outputs))
    found = townhall("score", *norms, "--outputs", "outputs.jsonl", "--json").json
    assert found["scores"] == {"accuracy": 0.5, "blank": 0.5, "parity": 0.5, "parity_min": 0.0}
    assert found["groups"]["African-Islamic"]["scores"]["parity"] == 0.5
    by_country = townhall("score", *norms, "--outputs", "outputs.jsonl", "--by", "country", "--json").json
    assert set(by_country["groups"]) == {"japan", "egypt", "chile"}


def test_show_tells_how_pairs_went_and_what_they_chose(townhall, norms):
    run = townhall(
        "evaluate", *norms, "--strategy", "reflect-or-debate", "--lm", "ann", "--lm", "dee", "--order", "file", "--json"
    ).json
    dynamics = run["dynamics"]
    assert dynamics["pairs"]["still_split"] == 11
    assert dynamics["groups"]["Confucian"]["pairs"]["still_split"] == 4
    assert (dynamics["judged"], dynamics["judge_could"]) == (11, 11)
    chosen = {name: sum(model["choices"].values()) for name, model in dynamics["models"].items()}
    assert list(chosen.values()) == [12, 12]
    shown = townhall("show", run["run"]).out
    assert re.search(r"still split +11 +4 +4 +3", shown)
    assert re.search(r"model +chose to debate +chose to reflect\n─+\nsimulated/ann.* \d+ +\d+\n", shown)
    assert "the judge was called 11 times, could be right 11 times" in shown


# -- bad input -------------------------------------------------------------------------------------------------------


def test_bad_data_is_named_before_anything_is_asked(refused, norms, folder):
    (folder / "groups.csv").write_text("country,group\njapan,East\negypt,South\n")
    command = ("grid", *norms, "--lm", "ann", "--lm", "bob")
    text = refused(*command, "-T", "groups=groups.csv")
    assert "norms.jsonl, line 9: the country 'chile' has no group in groups.csv" in text
    with (folder / "norms.jsonl").open("a") as file:
        file.write(json.dumps(story(0, id=99, gold_label="maybe")) + "\n")
    assert "norms.jsonl, line 13, field gold_label: 'maybe' is none of yes, no, neutral" in refused(*command)
    assert "the context 'value' needs the field 'value'" in refused(*command, "-T", "context=value")
    assert not (folder / "runs").exists()


def test_one_model_where_two_different_ones_are_required_is_refused(refused, norms):
    command = ("evaluate", *norms, "--strategy", "debate-only", "--require-different")
    for models in (("--lm", "ann"), ("--lm", "ann", "--lm", "ann")):
        text = refused(*command, *models)
        assert "debate-only requires two different models" in text
        assert "leave out --require-different" in text


def test_a_judge_that_names_neither_side_leaves_a_blank_and_its_reason(townhall, norms, folder):
    answers = SimulatedBehaviour(answers={f"Story {number} of": label(number) for number in range(12)}, accuracy=1)
    wrong = with_fields(Simulation(answers), answer=lambda call: WRONG[label(0)])

    def speak(call):
        if "debate" in call.inputs:
            return {"reason": "both are fine", "side": "both"}
        return wrong(call) if call.model.endswith("wrong") else Simulation(answers)(call)

    with SimulatedServer(speak) as server:
        entries = [f"{name}:\n  model: {name}\n  api_base: {server.url}\n" for name in ("good", "wrong")]
        (folder / "models.yaml").write_text("".join(entries))
        found = townhall(
            "evaluate", *norms, "--strategy", "debate-only", "--lm", "good", "--lm", "wrong", "--order", "file",
            "--limit", "1", "--json",
        ).json  # fmt: skip
    assert (found["blank"], found["scores"]["accuracy"]) == (1, 0.0)
    assert (found["dynamics"]["judged"], found["dynamics"]["judged_right"]) == (1, 0)
    record = townhall("show", found["run"], "--example", "#1", "--json").json
    assert "the judge named neither side" in record["transcript"]["decision"]["reason"]


def test_models_that_do_not_make_a_grid_are_refused(refused, norms, folder):
    assert "at least two models, and 1 is given" in refused("grid", *norms, "--lm", "ann")
    text = refused("grid", *norms, "--lm", "ann", "--lm", "simulated/ann?answers=answers.jsonl")
    assert "are the same model with the same settings" in text
    assert "a grid needs a debate of two agents" in refused("grid", *norms, "--strategy", "town-hall")
    assert "--rounds is 9" in refused("grid", *norms, "--rounds", "9")
    (folder / "models.yaml").write_text("ann:\n  model: simulated/ann\n  api_key: secret\n")
    text = refused("grid", *norms)
    assert "models.yaml, line 3: 'api_key' must not be in the file" in text
    assert "secret" not in text
