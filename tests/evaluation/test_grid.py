"""The pair grid on models whose right answers overlap by a known amount, so that every figure is known by hand."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from townhall.errors import InputError, RunError
from townhall.evaluation.budget import Budget
from townhall.evaluation.grid import load_grid, planned_calls, run_grid
from townhall.evaluation.run_folder import RunFolder, load_run
from townhall.models.resolve import lm
from townhall.models.server import SimulatedServer
from townhall.models.simulated import simulated_lm
from townhall.models.simulation import AnswerKey, Fault, SimulatedBehaviour, Simulation, with_fields
from townhall.tasks.access import task

#: Four stories each of three cultural groups.
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
PAIRS = list(itertools.combinations(RIGHT, 2))
N = len(COUNTRIES)


def rows(count=N):
    for number in range(count):
        yield {
            "id": number,
            "country": COUNTRIES[number],
            "rule_of_thumb": f"Rule {number}.",
            "story": f"Story {number} of what somebody did.",
            "gold_label": LABELS[number],
        }


def norms(folder, count=N, **options):
    file = folder / f"norms-{count}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows(count)))
    return task("normad", file, **options)


def behaviour(**more):
    """Return the world that `RIGHT` describes: all who have a story wrong give the same wrong answer."""
    keys = {}
    for number in range(N):
        gold = {"neutral": "neither"}.get(LABELS[number], LABELS[number])
        wrong = {"yes": "no", "no": "neither", "neither": "yes"}[gold]
        knowing = frozenset(name for name, known in RIGHT.items() if number in known)
        keys[f"Story {number} of"] = AnswerKey(gold, (wrong,), knowing)
    return SimulatedBehaviour(answers=keys, **more)


def verdict(call):
    """Return the side that the judge names: the right one in the stories with an even number, else the wrong one."""
    number = int(call.inputs["question"].split("Story ")[1].split(" of")[0])
    gold = {"neutral": "neither"}.get(LABELS[number], LABELS[number])
    final = call.inputs["debate"].rsplit("answers:\n", 1)[1]
    first_is_right = final.index(f"Answer: {gold}") < final.index("Second side:")
    return "first" if first_is_right == (number % 2 == 0) else "second"


def responder():
    """Return who answers for all models; what each says names it, so that no two requests are the same."""
    return with_fields(
        Simulation(behaviour()),
        reasoning=lambda call: f"{call.model} has its reasons",
        feedback=lambda call: f"{call.model} remarks",
        reflection=lambda call: f"{call.model} has a doubt",
        choice=lambda call: "reflect" if call.model.endswith("ann") else "debate",
        side=verdict,
    )


def models(names, **settings):
    return {name: simulated_lm(responder(), name=f"simulated/{name}", cache=True, **settings) for name in names}


def debated(one, other):
    """Return the stories that the pair ends with the right answer: both have them, or the judge finds them."""
    both, split = RIGHT[one] & RIGHT[other], RIGHT[one] ^ RIGHT[other]
    return both | {number for number in split if number % 2 == 0}


def split_of(one, other):
    return RIGHT[one] ^ RIGHT[other]


def made(lms, judge=None):
    return sum(model.engine.calls for model in lms.values()) + (judge.engine.calls if judge else 0)


@pytest.fixture(scope="module")
def seven(tmp_path_factory):
    """The grid of all seven models: (grid, models, judge, folder, options)."""
    folder = tmp_path_factory.mktemp("seven")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOWNHALL_CACHE", str(folder / "cache"))
        lms, judge = models(RIGHT), models(["judge"])["judge"]
        options = {"split": "all", "order": "file", "judge_lm": judge, "out": folder / "grid"}
        grid = run_grid(norms(folder), lms, "debate-only", **options)
    return grid, lms, judge, folder, options


# -- the figures -----------------------------------------------------------------------------------------------------


def test_singles_have_the_accuracy_that_their_right_answers_give(seven):
    summary = seven[0].summary
    assert summary.status == "complete"
    assert [cell.models for cell in summary.singles] == [[name] for name in RIGHT]
    assert [cell.accuracy for cell in summary.singles] == pytest.approx(
        [6 / 12, 8 / 12, 6 / 12, 5 / 12, 3 / 12, 9 / 12, 0]
    )


def test_every_pair_is_there_with_its_accuracy_and_gain(seven):
    summary = seven[0].summary
    assert [tuple(cell.models) for cell in summary.pairs] == PAIRS
    assert len(PAIRS) == 21
    for cell in summary.pairs:
        one, other = cell.models
        better = max((one, other), key=lambda name: len(RIGHT[name]))
        assert cell.accuracy == pytest.approx(len(debated(one, other)) / N), cell.models
        assert cell.better == better
        assert cell.gain == pytest.approx((len(debated(one, other)) - len(RIGHT[better])) / N)
        assert cell.gain_interval.low <= cell.gain <= cell.gain_interval.high
        assert (cell.gain_interval.method, cell.gain_interval.n) == ("newcombe", N)


def test_a_pair_worked_by_hand(seven):
    # ann has 0-5, dee 6-10: they share nothing, and split on all but story 11; the judge finds 0, 2, 4, 6, 8, 10.
    cell = seven[0].summary.pair("dee", "ann")
    assert cell.models == ["ann", "dee"]
    assert cell.accuracy == pytest.approx(6 / 12)
    assert (cell.better, cell.gain) == ("ann", pytest.approx(0))
    assert cell.oracle == pytest.approx(11 / 12)
    assert cell.complementarity == pytest.approx(5 / 12)
    assert (cell.exactly_one, cell.both_right) == (pytest.approx(11 / 12), 0)
    assert cell.unanimous_wrong == pytest.approx(1 / 12)
    assert (cell.judged, cell.judged_right, cell.judge_could) == (11, 6, 11)
    assert (cell.failed, cell.blank) == (0, 0)
    assert cell.dynamics["pairs"]["still_split"] == 11
    assert cell.dynamics["pairs"]["both_wrong"] == 1


def test_parity_stands_beside_every_accuracy(seven):
    summary = seven[0].summary
    assert summary.by == "group"
    # ann: 4 of 4 in Japan (Confucian), 2 of 4 in Egypt, 0 of 4 in Chile.
    ann = summary.single("ann")
    assert {name: group.scores["accuracy"] for name, group in ann.groups.items()} == {
        "African-Islamic": 0.5,
        "Confucian": 1,
        "Latin America": 0,
    }
    assert (ann.parity, ann.parity_min) == (pytest.approx(0.5), 0)
    # bob: 4, 4, 0. cid: 0, 4, 2. fay: 4, 4, 1. gus has nothing right, so no group is the best one.
    assert [summary.single(name).parity for name in ("bob", "cid", "fay", "gus")] == [
        pytest.approx(2 / 3),
        pytest.approx(1.5 / 3),
        pytest.approx(2.25 / 3),
        None,
    ]
    # ann and dee together find 0, 2 | 4, 6 | 8, 10: two in each group.
    pair = summary.pair("ann", "dee")
    assert (pair.parity, pair.parity_min) == (pytest.approx(1), pytest.approx(1))


def test_the_oracle_and_what_all_share(seven):
    everything = seven[0].summary.ensemble
    assert (everything.n, everything.best, everything.accuracy) == (12, "fay", pytest.approx(9 / 12))
    assert everything.oracle == pytest.approx(11 / 12)
    assert everything.complementarity == pytest.approx(2 / 12)
    assert everything.exactly_one == pytest.approx(1 / 12)  # dee alone has story 10
    assert everything.all_right == 0
    assert (everything.none_right, everything.unanimous_wrong) == (pytest.approx(1 / 12), pytest.approx(1 / 12))


def test_how_often_the_judge_was_needed_and_right(seven):
    summary = seven[0].summary
    needed = [split_of(*pair) for pair in PAIRS]
    assert summary.judged == summary.judge_could == sum(map(len, needed))
    assert summary.judged_right == sum(number % 2 == 0 for split in needed for number in split)


def test_matrices_are_symmetric_with_the_singles_on_the_diagonal(seven):
    summary = seven[0].summary
    accuracy, gain, oracle = (summary.matrix(figure) for figure in ("accuracy", "gain", "oracle"))
    for row, one in enumerate(RIGHT):
        assert accuracy[row][row] == oracle[row][row] == pytest.approx(len(RIGHT[one]) / N)
        assert gain[row][row] is None
        for column, other in enumerate(RIGHT):
            if row != column:
                assert accuracy[row][column] == accuracy[column][row] == pytest.approx(len(debated(one, other)) / N)
                assert oracle[row][column] == pytest.approx(len(RIGHT[one] | RIGHT[other]) / N)


# -- the calls -------------------------------------------------------------------------------------------------------


def test_calls_equal_the_stated_formula(seven):
    grid, lms, judge, _, _ = seven
    judged = sum(len(split_of(*pair)) for pair in PAIRS)
    stated = 7 * 12 + 21 * 12 * 4 + judged
    assert planned_calls(7, 12, 4, judged) == stated
    assert made(lms, judge) == stated
    assert judge.engine.calls == judged
    assert grid.summary.usage.calls == grid.summary.planned_calls == stated
    # First decisions are served to both agents of each debate.
    assert grid.summary.usage.cached == 21 * 12 * 2


def test_first_decisions_are_made_once_a_model_and_story(seven):
    _, lms, _, _, _ = seven
    for name, model in lms.items():
        first = [call for call in model.engine.requests if call.outputs == ("reasoning", "answer")]
        first = [call.question for call in first if "own_answer" not in call.inputs]
        assert len(first) == len(set(first)) == 12, name


def test_a_finished_grid_makes_no_call(seven, monkeypatch):
    grid, lms, judge, folder, options = seven
    monkeypatch.setenv("TOWNHALL_CACHE", str(folder / "another cache"))
    before = made(lms, judge)
    assert run_grid(norms(folder), lms, "debate-only", **options).summary == grid.summary
    assert made(lms, judge) == before


def test_other_groups_are_a_matter_of_counting_anew(seven, monkeypatch):
    grid, lms, judge, folder, options = seven
    monkeypatch.setenv("TOWNHALL_CACHE", str(folder / "cache"))
    before = made(lms, judge)
    by_country = run_grid(norms(folder), lms, "debate-only", by="country", **options).summary
    assert set(by_country.single("ann").groups) == {"japan", "egypt", "chile"}
    assert made(lms, judge) == before
    assert run_grid(norms(folder), lms, "debate-only", **options).summary.singles == grid.summary.singles


def test_the_folder_holds_a_run_for_each_single_and_pair(seven):
    grid, _, _, _, options = seven
    assert sorted(path.name for path in (options["out"] / "singles").iterdir()) == sorted(RIGHT)
    assert len(list((options["out"] / "pairs").iterdir())) == 21
    assert grid.run("dee", "ann").info.strategy == "debate-only"
    assert len(grid.run("ann").records) == 12
    assert load_grid(options["out"]).summary == grid.summary
    with pytest.raises(InputError, match=r"no run of ann and zoe\. Its models: ann, bob"):
        grid.run("ann", "zoe")


@pytest.mark.parametrize(
    ("strategy", "settings", "exchange"),
    [
        ("debate-only", {"rounds": 1}, 0),
        ("debate-only", {"temperature": 0}, 4),
        ("debate-only", {"rounds": 3}, 8),
        ("debate-only", {"adjudication": "confident", "temperatures": {"decide": 0.1}}, 4),
        ("debate-only", {"cot": False, "adjudication": "first"}, 4),
        ("reflect-or-debate", {"adjudication": "abstain"}, 6),
    ],
)
def test_first_decisions_are_shared_whatever_the_settings(strategy, settings, exchange, tmp_path):
    lms = models(["ann", "bob", "dee"])
    grid = run_grid(
        norms(tmp_path, 4), lms, strategy, settings=settings, split="all", judge_lm=lms["ann"], out=tmp_path / "grid"
    )
    # ann and bob have the same four stories right, dee has none: each debates it and disagrees.
    judged = 2 * 4 if settings.get("adjudication", "judge") == "judge" else 0
    expected = planned_calls(3, 4, exchange, judged)
    if not settings.get("cot", True):
        expected -= 4  # without reasons ann's and bob's answers are the same words: dee remarks on them once
    if strategy == "reflect-or-debate":
        expected -= 4  # ann reflects, on an answer that both its partners see
        assert grid.summary.planned_calls == expected
    assert grid.summary.usage.calls == made(lms) == expected


def test_choices_to_reflect_or_debate_are_counted_by_model(tmp_path):
    lms = models(["ann", "bob"])
    grid = run_grid(norms(tmp_path, 4), lms, "reflect-or-debate", split="all", out=tmp_path / "grid")
    [pair] = grid.summary.pairs
    assert {name: found["choices"] for name, found in pair.dynamics["models"].items()} == {
        "simulated/ann": {"reflect": 4},
        "simulated/bob": {"debate": 4},
    }
    assert pair.dynamics["pairs"]["both_right"] == 4
    assert pair.dynamics["groups"]["Confucian"]["pairs"]["both_right"] == 4


def test_one_model_at_two_temperatures_is_told_apart_and_counted(tmp_path):
    lms = {
        name: simulated_lm(responder(), name="simulated/ann", cache=True, temperature=temperature)
        for name, temperature in (("warm", 1.0), ("cold", 0.2))
    }
    grid = run_grid(norms(tmp_path, 4), lms, split="all", out=tmp_path / "grid")
    assert grid.info.twins == [["warm", "cold"]]
    assert made(lms) == planned_calls(2, 4, 4, twins=1) == grid.summary.planned_calls


# -- stopping and going on -------------------------------------------------------------------------------------------


def test_a_budget_holds_for_the_whole_grid_and_a_larger_one_goes_on(tmp_path):
    lms, judge = models(["ann", "bob", "dee"]), models(["judge"])["judge"]

    def start(calls=None):
        budget = Budget(calls=calls) if calls else None
        return run_grid(norms(tmp_path, 4), lms, split="all", judge_lm=judge, out=tmp_path / "g", budget=budget)

    whole = planned_calls(3, 4, 4, judged=8)
    for calls in (2, 10, 25, 40):
        grid = start(calls)
        assert grid.summary.status == "stopped"
        assert "calls is used up" in grid.summary.reason
        assert grid.summary.usage.calls == made(lms, judge) == calls
    assert start().summary.status == "complete"
    assert made(lms, judge) == whole
    assert start(whole).summary.usage.calls == whole


def test_figures_of_a_partial_grid_are_over_the_examples_that_its_runs_share(tmp_path):
    lms = models(["ann", "eve"])
    budget = Budget(calls=4 + 4 + 6)
    grid = run_grid(
        norms(tmp_path, 4), lms, split="all", order="file", out=tmp_path / "grid", budget=budget, concurrency=1
    )
    [pair] = grid.summary.pairs
    assert (pair.status, pair.n, pair.total) == ("stopped", 1, 4)
    assert (pair.accuracy, pair.gain, pair.gain_interval.n) == (1, 0, 1)
    assert grid.summary.ensemble.n == 4


def test_an_interrupted_grid_has_a_summary_and_goes_on(tmp_path):
    lms = models(["ann", "bob"])
    seen = []

    class Interrupting:
        def start(self, state):
            seen.append(state.title)
            if len(seen) == 3:
                raise KeyboardInterrupt

        def update(self, state):
            pass

        def finish(self, state):
            pass

    options = {"split": "all", "out": tmp_path / "grid"}
    with pytest.raises(KeyboardInterrupt):
        run_grid(norms(tmp_path, 4), lms, progress=Interrupting(), **options)
    assert seen == ["normad, ann (1 of 3)", "normad, bob (2 of 3)", "normad, ann + bob (3 of 3)"]
    partial = load_grid(tmp_path / "grid").summary
    assert (partial.status, len(partial.singles), made(lms)) == ("interrupted", 2, 8)
    assert run_grid(norms(tmp_path, 4), lms, **options).summary.status == "complete"
    assert made(lms) == planned_calls(2, 4, 4)


def test_a_model_that_cannot_be_used_ends_the_grid_and_what_was_done_is_kept(tmp_path):
    lms = models(["ann", "bob"])
    with SimulatedServer(responder()) as server:
        lms["cid"] = lm("cid", api_base=server.url, num_retries=0)
        with server.refusing(), pytest.raises(RunError):
            run_grid(norms(tmp_path, 4), lms, split="all", out=tmp_path / "grid")
        partial = load_grid(tmp_path / "grid").summary
        assert partial.status == "failed"
        assert [cell.accuracy for cell in partial.singles[:2]] == [1, 1]
        done = run_grid(norms(tmp_path, 4), lms, split="all", judge_lm=lms["ann"], out=tmp_path / "other").summary
    assert done.status == "complete"
    assert done.single("cid").accuracy == 0


SCRIPT = """
import sys
from townhall.evaluation.grid import run_grid
from townhall.models.resolve import lm
from townhall.tasks.access import task

url, data, out = sys.argv[1:]
run_grid(
    task("normad", data), {name: lm(name, api_base=url) for name in ("ann", "bob", "dee")}, "debate-only",
    judge_lm=lm("judge", api_base=url), split="all", out=out, concurrency=3,
)
"""


def client(server, data, out, reply_folder):
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, server.url, str(data), str(out)],
        env={**os.environ, "TOWNHALL_CACHE": str(reply_folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def key(body):
    return json.dumps(body, sort_keys=True)


@pytest.mark.parametrize("calls_before", [7, 40])
def test_a_killed_grid_is_resumed_without_repeating_a_call(calls_before, tmp_path, reply_folder):
    """Killed among the singles, and in the midst of the pairs."""
    data, out = norms(tmp_path, 4).data, tmp_path / "grid"
    whole = planned_calls(3, 4, 4, judged=8)
    stalling = True

    def plan(number, body):
        return Fault("stall", 3600) if stalling and number > calls_before else None

    with SimulatedServer(responder(), faults=plan) as server:
        first = client(server, data, out, reply_folder)
        wait_for(lambda: server.completed == calls_before and server.requests > calls_before)
        time.sleep(0.3)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        # Nobody wrote a summary, and what there is can be shown.
        assert load_grid(out).summary.status == "interrupted"
        stalled = Counter(map(key, server.bodies[calls_before:]))
        stalling = False
        lms = {name: lm(name, api_base=server.url) for name in ("ann", "bob", "dee")}
        judge = lm("judge", api_base=server.url)
        grid = run_grid(task("normad", data), lms, "debate-only", judge_lm=judge, split="all", out=out)
        assert grid.summary.status == "complete"
        assert grid.summary.usage.calls == grid.summary.planned_calls == whole
        assert server.completed == whole
        repeated = Counter(map(key, server.bodies)) - stalled
        assert set(repeated.values()) == {1}
        assert len(repeated) == whole


# -- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "problem"),
    [([], "a grid needs at least two models, and none are given"), (["ann"], "at least two models, and 1 is given")],
)
def test_fewer_than_two_models_are_refused(names, problem, tmp_path):
    with pytest.raises(InputError, match=problem):
        run_grid(norms(tmp_path, 4), models(names), split="all", out=tmp_path / "grid")


def test_a_model_twice_is_refused(tmp_path):
    twice = {"ann": models(["ann"])["ann"], "anna": models(["ann"])["ann"]}
    with pytest.raises(InputError, match="'ann' and 'anna' are the same model with the same settings"):
        run_grid(norms(tmp_path, 4), twice, split="all", out=tmp_path / "grid")


def test_a_model_that_keeps_no_replies_is_refused(tmp_path):
    lms = models(["ann", "bob"])
    lms["bob"].cache = False
    with pytest.raises(InputError, match="'bob' keeps no replies"):
        run_grid(norms(tmp_path, 4), lms, split="all", out=tmp_path / "grid")


def test_a_strategy_that_is_no_debate_of_two_is_refused(tmp_path):
    lms = models(["ann", "bob"])
    for strategy in ("town-hall", "single"):
        with pytest.raises(InputError, match=rf"debate of two agents \(debate-only, reflect.*'{strategy}' is none"):
            run_grid(norms(tmp_path, 4), lms, strategy, split="all", out=tmp_path / "grid")
    with pytest.raises(InputError, match="Did you mean 'debate-only'"):
        run_grid(norms(tmp_path, 4), lms, "debate-onyl", split="all", out=tmp_path / "grid")


def test_a_folder_of_another_grid_is_refused_and_nothing_in_it_changed(tmp_path):
    lms = models(["ann", "bob"])
    run_grid(norms(tmp_path, 4), lms, split="all", out=tmp_path / "grid")
    before = made(lms)
    with pytest.raises(InputError, match=r"holds a grid with other settings: settings.rounds: 1, not 2\. Name another"):
        run_grid(norms(tmp_path, 4), lms, settings={"rounds": 1}, split="all", out=tmp_path / "grid")
    with pytest.raises(InputError, match="models: ann, bob, cid, not ann, bob"):
        run_grid(norms(tmp_path, 4), models(["ann", "bob", "cid"]), split="all", out=tmp_path / "grid")
    warm = {**lms, **models(["bob"], temperature=0.5)}
    with pytest.raises(InputError, match=r"model bob, temperature: 0\.5, not None"):
        run_grid(norms(tmp_path, 4), warm, split="all", out=tmp_path / "grid")
    with pytest.raises(InputError, match="examples_fingerprint"):
        run_grid(norms(tmp_path, 5), lms, split="all", out=tmp_path / "grid")
    assert made(lms) == before


def test_folders_that_hold_something_else_are_refused(tmp_path):
    lms = models(["ann", "bob"])
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("x")
    with pytest.raises(InputError, match=r"has files but is no grid's folder \('mine.txt'\)"):
        run_grid(norms(tmp_path, 4), lms, split="all", out=tmp_path / "notes")
    with pytest.raises(InputError, match="is a file; --out must name a folder"):
        run_grid(norms(tmp_path, 4), lms, split="all", out=tmp_path / "notes" / "mine.txt")
    with pytest.raises(InputError, match="no such folder"):
        load_grid(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"not the folder of a grid \(it has no grid.json\)"):
        load_grid(tmp_path / "notes")
    with RunFolder(tmp_path / "held"), pytest.raises(RunError, match="another process is writing this grid"):
        run_grid(norms(tmp_path, 4), lms, split="all", out=tmp_path / "held")


def test_damaged_files_are_named(tmp_path):
    lms = models(["ann", "bob"])
    run_grid(norms(tmp_path, 4), lms, split="all", out=tmp_path / "grid")
    info = json.loads((tmp_path / "grid" / "grid.json").read_text())
    (tmp_path / "grid" / "grid.json").write_text(json.dumps({**info, "format_version": 9}))
    with pytest.raises(InputError, match=r"grid\.json: format version 9 is later"):
        load_grid(tmp_path / "grid")
    (tmp_path / "grid" / "grid.json").write_text('{"models": 1}')
    with pytest.raises(InputError, match=r"grid.json, field models: damaged"):
        load_grid(tmp_path / "grid")


def test_names_of_models_are_no_paths_and_do_not_collide(tmp_path):
    names = ["../up", "a/b", "a b", "A-B", "a/b + a b"]
    known = ["ann", "bob", "cid", "dee", "eve"]
    lms = dict(zip(names, models(known).values(), strict=True))
    grid = run_grid(norms(tmp_path, 1), lms, settings={"rounds": 1}, split="all", out=tmp_path / "grid")
    folders = [run.folder for run in grid.info.runs]
    assert len({folder.casefold() for folder in folders}) == len(folders) == 15
    assert len(grid.summary.singles) == 5
    assert [cell.accuracy for cell in grid.summary.singles] == [1, 1, 0, 0, 1]
    for folder in folders:
        assert load_run(tmp_path / "grid" / folder).summary.status == "complete"
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"grid", "cache"}


def test_a_field_that_examples_lack_is_named_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match="no field 'region' to group by"):
        run_grid(norms(tmp_path, 4), models(["ann", "bob"]), split="all", by="region", out=tmp_path / "grid")
    assert not (tmp_path / "grid").exists()


def test_a_group_map_that_lacks_a_country_is_named_before_any_call(tmp_path):
    groups = tmp_path / "groups.csv"
    groups.write_text("country,group\njapan,East\negypt,South\n")
    lms = models(["ann", "bob"])
    with pytest.raises(InputError, match=r"line 9: the country 'chile' has no group in .*groups.csv"):
        run_grid(norms(tmp_path, groups=str(groups)), lms, split="all", out=tmp_path / "grid")
    assert made(lms) == 0


def test_a_judge_that_names_neither_side_leaves_a_blank(tmp_path):
    neither = with_fields(responder(), side="both")
    judge = simulated_lm(neither, name="simulated/judge", cache=True)
    lms = models(["ann", "dee"])
    grid = run_grid(norms(tmp_path, 4), lms, split="all", judge_lm=judge, out=tmp_path / "grid")
    [pair] = grid.summary.pairs
    assert (pair.accuracy, pair.blank, pair.failed) == (0, 4, 0)
    assert (pair.judged, pair.judged_right, pair.judge_could) == (4, 0, 4)
    decision = grid.run("ann", "dee").records[0].transcript.decision
    assert decision.reason.startswith("the judge named neither side")
    # Each is asked once more, which the formula leaves out.
    assert made(lms, judge) == planned_calls(2, 4, 4, judged=4) + 4
