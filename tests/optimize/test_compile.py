"""Compiling: every teleprompter on real strategies, what it may and may not change, and what it refuses."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import dspy
import pytest

from townhall.errors import InputError, RunError
from townhall.evaluation.budget import Budget
from townhall.metrics.score import Score
from townhall.optimize.artifact import load, save_artifact
from townhall.optimize.compile import compile
from townhall.optimize.ensemble import Ensemble
from townhall.optimize.metric import DebateMetric, training_example
from townhall.optimize.teleprompters.base import TELEPROMPTERS
from townhall.programs.base import STRATEGIES
from townhall.tasks.arithmetic import Arithmetic

SIZES = {
    "labeled": {},
    "bootstrap": {},
    "bootstrap-random-search": {"candidates": 1},
    "bootstrap-optuna": {"trials": 2, "pool": 2},
    "knn": {"pool": 3, "demos": 1},
    "copro": {"breadth": 2, "depth": 1},
    "miprov2": {"candidates": 2, "trials": 2},
    "miprov2-zero-shot": {"candidates": 2, "trials": 2},
    "simba": {"batch": 2, "candidates": 2, "steps": 1, "demos": 1},
    "gepa": {"debates": 10, "batch": 2},
    "infer-rules": {"candidates": 1, "examples": 2},
    "ensemble": {"members": 2},
}


@pytest.fixture
def examples(arithmetic):
    return {"train": arithmetic.split("train", limit=5), "dev": arithmetic.split("dev", limit=3)}


def run(program, task, name, lm, examples, **settings):
    needed = {"reflection_lm": lm} if TELEPROMPTERS.get(name).needs_reflection_lm else {}
    with dspy.context(lm=lm):
        return compile(program, task, name, **examples, **{**needed, **SIZES.get(name, {}), **settings})


def said(prediction):
    return [(turn.role, turn.agent, turn.said, turn.answer) for turn in prediction.transcript.turns]


def test_the_sizes_above_cover_every_registered_teleprompter():
    assert set(SIZES) == set(TELEPROMPTERS.names())


@pytest.mark.parametrize("strategy", ["town-hall", "society", "debate-only"])
@pytest.mark.parametrize("name", sorted(SIZES))
def test_every_teleprompter_compiles_and_its_program_says_the_same_after_saving_and_loading(
    name, strategy, arithmetic, small, model_of, examples, tmp_path
):
    lm = model_of(arithmetic, 0.8)
    compiled = run(small(strategy), arithmetic, name, lm, examples)
    assert compiled.report.stopped is None
    assert compiled.report.failed == []
    compiled.save(tmp_path / "artifact")
    loaded = load(tmp_path / "artifact")
    question = arithmetic.split("test", limit=1)[0].question
    with dspy.context(lm=lm):
        before, after = compiled.program(question=question), loaded(question=question)
    assert said(before) == said(after)
    assert len(said(before)) > 1
    assert (before.answer, before.decision) == (after.answer, after.decision)


@pytest.mark.parametrize("strategy", STRATEGIES.names())
def test_every_strategy_can_be_bootstrapped_with_its_whole_answers(strategy, arithmetic, small, model_of, examples):
    compiled = run(small(strategy), arithmetic, "bootstrap", model_of(arithmetic, 1.0), examples)
    made = {
        name: [demo for demo in predictor.demos if demo.get("augmented")]
        for name, predictor in compiled.program.named_predictors()
    }
    assert any(made.values())
    for name, predictor in compiled.program.named_predictors():
        for demo in made[name]:
            assert set(predictor.signature.fields) <= set(demo.keys())


def test_the_program_that_is_compiled_stays_as_it_was(arithmetic, small, model_of, examples):
    program = small("town-hall")
    before = {name: list(predictor.demos) for name, predictor in program.named_predictors()}
    run(program, arithmetic, "bootstrap", model_of(arithmetic, 1.0), examples)
    assert {name: list(predictor.demos) for name, predictor in program.named_predictors()} == before


def test_a_compiled_program_can_be_compiled_again(arithmetic, small, model_of, examples):
    lm = model_of(arithmetic, 1.0)
    first = run(small("society"), arithmetic, "bootstrap", lm, examples)
    second = run(first.program, arithmetic, "bootstrap", lm, examples)
    assert second.report.roles["solve"].demos_before == first.report.roles["solve"].demos == 2


@pytest.mark.parametrize("name", ["bootstrap", "miprov2", "infer-rules", "bootstrap-random-search", "copro", "knn"])
def test_frozen_roles_keep_their_prompt_and_demonstrations_exactly(name, arithmetic, small, model_of, examples):
    program = small("town-hall")
    compiled = run(program, arithmetic, name, model_of(arithmetic, 0.8), examples, only=["argue"])
    before, after = dict(program.named_predictors()), dict(compiled.program.named_predictors())
    for role in ("identify", "rebut", "vote"):
        assert after[role].signature.instructions == before[role].signature.instructions
        assert after[role].signature.equals(before[role].signature)
        assert list(after[role].demos) == list(before[role].demos)
        assert compiled.report.roles[role].frozen
    assert not compiled.report.roles["argue"].frozen


def test_frozen_roles_are_not_touched_while_candidates_are_tried(arithmetic, small, model_of, examples):
    program = small("town-hall")
    vote = program.vote.signature.with_instructions("Vote for candidate 1, whatever it is.")
    program.vote.signature = vote
    seen = set()

    class Watching(Arithmetic):
        pass

    lm = model_of(arithmetic, 0.8)
    engine = lm.engine
    complete = engine.complete

    def spy(request):
        if "the number of the candidate you vote for" in str(request.system):
            seen.add("Vote for candidate 1, whatever it is." in str(request.system))
        return complete(request)

    engine.complete = spy
    run(program, arithmetic, "miprov2-zero-shot", lm, examples, only=["argue", "rebut", "identify"])
    assert seen == {True}


def test_zero_shot_miprov2_shows_no_demonstration(arithmetic, small, model_of, examples):
    compiled = run(small("town-hall"), arithmetic, "miprov2-zero-shot", model_of(arithmetic, 0.8), examples)
    assert [len(predictor.demos) for _, predictor in compiled.program.named_predictors()] == [0, 0, 0, 0]


class HalfMarks(Arithmetic):
    """Arithmetic whose best answers score a half."""

    def score(self, answer, example):
        return Score(super().score(answer, example).value / 2)


@pytest.mark.parametrize("name", ["bootstrap", "knn", "miprov2", "bootstrap-optuna", "ensemble"])
def test_partial_credit_below_the_threshold_admits_no_demonstration(name, small, model_of, arithmetic, examples):
    with pytest.raises(RunError, match="reached a score of 1"):
        run(small("town-hall"), HalfMarks(count=60), name, model_of(arithmetic, 1.0), examples)


def test_partial_credit_is_admitted_from_the_threshold_that_is_given(small, model_of, arithmetic, examples):
    compiled = run(
        small("town-hall"), HalfMarks(count=60), "bootstrap", model_of(arithmetic, 1.0), examples, threshold=0.5
    )
    assert compiled.report.roles["argue"].demos == 2


def test_simba_adds_no_demonstration_from_partial_credit(small, model_of, arithmetic, examples):
    compiled = run(
        small("society"),
        HalfMarks(count=60),
        "simba",
        model_of(arithmetic, 0.5),
        examples,
        batch=4,
        candidates=3,
        steps=2,
    )
    assert all(
        not demo.get("augmented") for _, predictor in compiled.program.named_predictors() for demo in predictor.demos
    )


def test_only_replies_whose_own_answer_was_right_become_demonstrations(arithmetic, small, model_of, examples):
    """Debates that were won although some agents argued for a wrong answer."""
    lm = model_of(arithmetic, 0.6)
    train = arithmetic.split("train", limit=12)
    compiled = run(small("society", agents=3), arithmetic, "bootstrap", lm, {**examples, "train": train}, demos=8)
    gold = {example.question: example.gold for example in train}
    made = [demo for demo in compiled.program.solve.demos if demo.get("augmented")]
    assert len(made) >= 4
    assert all(demo["answer"] == gold[demo["question"]] for demo in made)


def test_the_trace_has_every_call_once_in_order(arithmetic, small, model_of, examples):
    traces = []

    class Spy(DebateMetric):
        def __call__(self, gold, pred, trace=None, *rest):
            if trace is not None:
                traces.append((list(trace), pred))
            return super().__call__(gold, pred, trace, *rest)

    import townhall.optimize.compile as module

    original, module.DebateMetric = module.DebateMetric, Spy
    try:
        run(small("town-hall", personas=3, rounds=3), arithmetic, "bootstrap", model_of(arithmetic, 1.0), examples)
    finally:
        module.DebateMetric = original
    assert traces
    for trace, prediction in traces:
        turns = prediction.transcript.turns
        assert len(trace) == len(turns)
        for (_, _, outputs), turn in zip(trace, turns, strict=True):
            told = {**turn.said, **({"answer": turn.answer} if turn.answer is not None else {})}
            assert set(dict(outputs)) == set(told)
        roles = [turn.role for turn in turns]
        assert roles[:10] == ["identify"] + ["argue"] * 3 + ["rebut"] * 6


def test_the_metric_gives_the_same_number_with_and_without_feedback(arithmetic, small, model_of):
    example = arithmetic.split("dev", limit=1)[0]
    metric = DebateMetric(arithmetic, [example])
    with dspy.context(lm=model_of(arithmetic, 0.5)):
        prediction = small("town-hall")(question=example.question)
    gold = training_example(example)
    bare = metric(gold, prediction)
    told = metric(gold, prediction, [], "argue", [(None, {}, {"answer": prediction.answer, "argument": "x"})])
    assert bare == told.score == metric(gold, prediction, [])
    assert str(example.gold) in told.feedback


def test_feedback_to_a_voter_says_whether_the_right_answer_was_on_the_ballot(arithmetic):
    example = arithmetic.split("dev", limit=1)[0]
    metric = DebateMetric(arithmetic, [example])
    from townhall.programs.decisions import decide

    _, decision = decide("majority", [example.gold + 1, example.gold])
    _, lost = decide("majority", [example.gold + 1, example.gold + 2])
    gold = training_example(example)
    wrong = dspy.Prediction(answer=example.gold + 1, decision=decision, transcript=None)
    told = metric(gold, wrong, [], "vote", [(None, {}, {"choice": 1, "reason": "x"})])
    assert "which is wrong. The right answer stood on the ballot as candidate 2." in told.feedback
    hopeless = dspy.Prediction(answer=example.gold + 1, decision=lost, transcript=None)
    told = metric(gold, hopeless, [], "vote", [(None, {}, {"choice": 1, "reason": "x"})])
    assert "not on the ballot" in told.feedback


class Fragile(Arithmetic):
    """Arithmetic that cannot score one of its examples."""

    broken: str = ""

    def score(self, answer, example):
        if example.id == type(self).broken:
            raise ZeroDivisionError("no score for this one")
        return super().score(answer, example)


@pytest.mark.parametrize("name", ["bootstrap", "bootstrap-random-search", "gepa", "simba"])
def test_a_metric_that_raises_on_one_example_scores_it_0_and_goes_on(name, small, model_of, arithmetic, examples):
    Fragile.broken = examples["train"][0].id
    compiled = run(small("society"), Fragile(count=60), name, model_of(arithmetic, 1.0), examples)
    if name != "gepa":  # which may never draw that example
        assert compiled.report.failed == [(Fragile.broken, "scoring failed: ZeroDivisionError: no score for this one")]
    assert compiled.report.stopped is None


def test_a_debate_that_raises_on_one_example_is_written_down_and_the_others_go_on(
    arithmetic, small, scripted_lm, examples
):
    lost = examples["train"][0]
    answers = {example.question: example.gold for example in arithmetic.examples}

    def script(messages, seed):
        question = next(text for text in answers if text in messages[-1][1])
        if question == lost.question:
            raise ValueError("this question breaks the server")
        return {"reasoning": "I compute.", "answer": answers[question]}

    lm, _ = scripted_lm(script, num_retries=0)
    compiled = run(small("single"), arithmetic, "bootstrap", lm, examples)
    assert [identity for identity, _ in compiled.report.failed] == [lost.id]
    assert "breaks the server" in compiled.report.failed[0][1]
    assert compiled.report.roles["solve"].demos == 2


def test_a_server_that_refuses_every_call_ends_the_compilation_at_once(arithmetic, small, scripted_lm, examples):
    def script(messages, seed):
        raise dspy.lm15.AuthError("wrong key", status=401)

    lm, engine = scripted_lm(script, num_retries=0)
    with pytest.raises(RunError, match="wrong key"):
        run(
            small("single"), arithmetic, "bootstrap-random-search", lm, {**examples, "train": arithmetic.split("train")}
        )
    assert len(engine.requests) <= 8


def test_the_same_seed_gives_the_same_program_and_another_seed_another(arithmetic, small, model_of, examples):
    def demos(seed):
        compiled = run(
            small("town-hall"), arithmetic, "bootstrap-random-search", model_of(arithmetic, 0.9), examples, seed=seed
        )
        return compiled.report.scores, {
            name: [dict(demo) for demo in predictor.demos] for name, predictor in compiled.program.named_predictors()
        }

    assert demos(1) == demos(1)


def test_pythons_own_random_numbers_are_left_alone(arithmetic, small, model_of, examples):
    program, lm = small("single"), model_of(arithmetic, 1.0)
    random.seed(4)
    before = random.getstate()
    run(program, arithmetic, "bootstrap", lm, examples)
    assert random.getstate() == before


def test_nothing_is_printed_on_standard_output(arithmetic, small, model_of, examples, capfd):
    lm = model_of(arithmetic, 0.8)
    for name in ("bootstrap", "copro", "miprov2", "gepa", "simba"):
        run(small("single"), arithmetic, name, lm, examples)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "rollouts" not in printed.err


@pytest.mark.parametrize("name", ["bootstrap-random-search", "copro", "miprov2", "simba", "gepa", "infer-rules"])
def test_a_budget_is_never_exceeded_and_the_best_so_far_is_returned(name, arithmetic, small, model_of, examples):
    lm = model_of(arithmetic, 0.8)
    compiled = run(small("town-hall"), arithmetic, name, lm, examples, budget=Budget(calls=30))
    assert compiled.report.stopped == "the budget of 30 calls is used up"
    assert compiled.report.total.calls <= 30
    assert lm.engine.calls <= 30
    assert [name for name, _ in compiled.program.named_predictors()] == ["identify", "argue", "rebut", "vote"]


def test_calls_are_counted_by_role_and_prompt_writing_apart(arithmetic, small, model_of, examples):
    lm = model_of(arithmetic, 0.8)
    report = run(small("debate-only"), arithmetic, "copro", lm, examples).report
    assert report.total.calls == lm.engine.calls
    assert report.prompt_usage.calls == 4  # one proposal (breadth 2, less the present instruction) for each role
    assert set(report.usage_by_role) <= {"decide", "feedback", "revise", "judge"}
    assert sum(usage.calls for usage in report.usage_by_role.values()) == report.usage.calls


def test_progress_is_shown_after_debates_and_candidates(arithmetic, small, model_of, examples):
    states = []
    run(
        small("single"),
        arithmetic,
        "bootstrap-random-search",
        model_of(arithmetic, 0.8),
        examples,
        progress=states.append,
    )
    assert states[-1].debates == max(state.debates for state in states) > 0
    assert states[-1].candidates >= 2
    assert states[-1].best is not None
    assert states[-1].title == "arithmetic, single, bootstrap-random-search"


def test_a_teacher_model_makes_the_demonstrations(arithmetic, small, model_of, examples):
    weak, strong = model_of(arithmetic, 0.0), model_of(arithmetic, 1.0)
    with pytest.raises(RunError):
        run(small("society"), arithmetic, "bootstrap", weak, examples)
    compiled = run(small("society"), arithmetic, "bootstrap", weak, examples, teacher_lm=strong)
    assert compiled.report.roles["solve"].demos == 2
    assert strong.engine.calls == compiled.report.usage.calls


def test_agents_with_models_of_their_own_give_other_samples_in_a_second_round(arithmetic, small, model_of, examples):
    lm = model_of(arithmetic, 0.4)
    program = small("society").with_models([lm, lm])
    once = run(program, arithmetic, "bootstrap", lm, examples, demos=5)
    again = run(program, arithmetic, "bootstrap", lm, examples, demos=5, rounds=6)
    assert again.report.debates > once.report.debates
    own, more = (
        sum(bool(demo.get("augmented")) for demo in compiled.program.solve.demos) for compiled in (once, again)
    )
    assert more > own


def test_an_ensemble_votes_over_its_members_and_each_draws_its_own_samples(arithmetic, small, model_of, examples):
    lm = model_of(arithmetic, 0.9)
    compiled = run(small("society"), arithmetic, "ensemble", lm, examples, members=3)
    program = compiled.program
    assert isinstance(program, Ensemble)
    assert [member.config.seed for member in program.members] == [0, 1, 2]
    with dspy.context(lm=lm):
        result = program(question=examples["dev"][0].question)
    assert len(result.transcript.turns) == 3 * 4
    assert {turn.agent for turn in result.transcript.turns} == set(range(6))
    assert sum(len(candidate.supporters) for candidate in result.decision.candidates) == 3


def test_knn_shows_the_demonstration_nearest_to_the_question(arithmetic, small, scripted_lm, examples):
    answers = {example.question: example.gold for example in arithmetic.examples}

    def script(messages, seed):
        question = next((text for text in answers if text in messages[-1][1]), None)
        return {"reasoning": "I compute.", "answer": answers.get(question, 0)}

    lm, engine = scripted_lm(script)
    compiled = run(small("single"), arithmetic, "knn", lm, examples, pool=5, demos=1)
    assert len(compiled.program.solve.demos) == 5
    nearby = examples["train"][3].question.replace("Work out", "Please work out")
    with dspy.context(lm=lm):
        compiled.program(question=nearby)
    shown = [text for role, text in engine.requests[-1][0] if role == "user"]
    assert len(shown) == 2
    assert examples["train"][3].question in shown[0]


def test_labels_make_whole_demonstrations_where_a_role_only_answers(arithmetic, small, model_of, examples):
    compiled = run(small("single", cot=False), arithmetic, "labeled", model_of(arithmetic, 1.0), examples, demos=3)
    demos = compiled.program.solve.demos
    assert len(demos) == 3
    gold = {example.question: example.gold for example in examples["train"]}
    shown = [demo for demo in demos if demo["question"] in gold]
    assert len(shown) >= 2
    assert all(demo["answer"] == gold[demo["question"]] for demo in shown)
    assert compiled.report.total.calls == 0


class NoWorkedProblems(Arithmetic):
    def demonstrations(self):
        return []


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("gepa", {"reflection_lm": None}, "needs a reflection model: give --reflection-lm"),
        ("gepa", {"debates": 5}, "5 debates do not suffice"),
        ("bootstrap", {"train": []}, "needs at least 1 training example"),
        ("knn", {"limit": 1}, "needs at least 2 training examples; there are 1"),
        ("bootstrap-random-search", {"dev": []}, "compares candidates on dev examples; there are none"),
        ("simba", {"batch": 9}, "a batch takes 9 training examples; there are 5"),
        ("miprov2", {"minibatch": 9}, "minibatch is 9; there are only 3 dev examples"),
        ("bootstrap", {"demo": 3}, "has no size 'demo'. Did you mean 'demos'?"),
        ("bootstrap", {"demos": 0}, "bootstrap: demos is 0"),
        ("bootstrap", {"threshold": 2}, "threshold is 2"),
        ("boostrap", {}, "unknown teleprompter 'boostrap'. Did you mean 'bootstrap'?"),
        ("bootstrap", {"only": ["vot"]}, "has no role 'vot'. Did you mean 'vote'?"),
        ("bootstrap", {"only": []}, "name at least one role"),
        ("bootstrap", {"concurrency": 0}, "the concurrency is 0"),
    ],
)
def test_what_is_missing_or_wrong_is_said_before_anything_is_spent(
    name, settings, message, arithmetic, small, model_of, examples
):
    lm = model_of(arithmetic, 1.0)
    if "limit" in settings:
        examples, settings = {**examples, "train": examples["train"][: settings["limit"]]}, {}
    given = {**examples, **{key: value for key, value in settings.items() if key in ("train", "dev")}}
    rest = {key: value for key, value in settings.items() if key not in ("train", "dev")}
    needed = {"reflection_lm": lm} if name == "gepa" else {}
    with dspy.context(lm=lm), pytest.raises(InputError) as error:
        compile(small("town-hall"), arithmetic, name, **given, **{**needed, **rest})
    assert message in str(error.value)
    assert lm.engine.calls == 0


def test_labeled_says_when_a_debate_has_nothing_to_show(small, model_of, arithmetic, examples):
    program = small("town-hall", shots=0)
    with pytest.raises(InputError, match="has no worked problems"):
        run(program, NoWorkedProblems(count=60), "labeled", model_of(arithmetic, 1.0), examples)


def test_teleprompters_that_need_samples_refuse_temperature_0(arithmetic, small, model_of, examples):
    with pytest.raises(InputError, match="temperature is 0"):
        run(small("town-hall", temperature=0), arithmetic, "simba", model_of(arithmetic, 1.0), examples)
    with pytest.raises(InputError, match="temperature is 0"):
        run(small("town-hall", temperature=0), arithmetic, "bootstrap", model_of(arithmetic, 1.0), examples, rounds=2)


def test_train_and_dev_must_not_share_content(arithmetic, small, model_of, examples):
    mixed = {"train": examples["train"], "dev": [*examples["dev"], examples["train"][0]]}
    with pytest.raises(InputError, match="have the same content"):
        run(small("single"), arithmetic, "bootstrap-random-search", model_of(arithmetic, 1.0), mixed)


def test_a_program_without_a_model_is_refused(arithmetic, small, examples):
    with dspy.context(lm=None), pytest.raises(InputError, match="no model"):
        compile(small("single"), arithmetic, "bootstrap", **examples)


def test_no_teleprompter_writes_into_the_signatures_of_other_programs(arithmetic, small, model_of, examples):
    from townhall.signatures.town_hall import Argue, Rebut, Vote

    before = [kind.instructions for kind in (Argue, Rebut, Vote)]
    for name in ("infer-rules", "gepa", "miprov2"):
        run(small("town-hall"), arithmetic, name, model_of(arithmetic, 0.8), examples)
    assert [kind.instructions for kind in (Argue, Rebut, Vote)] == before


def test_save_artifact_records_the_compilation(arithmetic, small, model_of, examples, tmp_path):
    compiled = run(small("single"), arithmetic, "bootstrap", model_of(arithmetic, 1.0), examples)
    info = save_artifact(compiled.program, arithmetic, tmp_path / "a", report=compiled.report)
    assert info.compilation.train_fingerprints == [example.fingerprint for example in examples["train"]]
    assert info.compilation.simulated
    assert info.models[0]["kind"] == "simulated"


def test_miprov2_takes_minibatches(arithmetic, small, model_of, examples):
    compiled = run(small("single"), arithmetic, "miprov2", model_of(arithmetic, 0.7), examples, minibatch=2)
    assert compiled.report.stopped is None
    assert compiled.report.best is not None


def test_gepa_reflects_on_feedback_that_is_the_roles_own(arithmetic, small, model_of, examples, scripted_lm):
    read = []

    def reflect(messages, seed):
        read.append("\n".join(text for _, text in messages))
        return {"new_instruction": "Vote for the answer whose steps you could check yourself."}

    reflection_lm, _ = scripted_lm(reflect)
    program = small("town-hall", personas=3, vote_when_unanimous=True)
    compiled = run(
        program, arithmetic, "gepa", model_of(arithmetic, 0.4), examples, only=["vote"], reflection_lm=reflection_lm
    )
    assert read
    assert all("This ballot went to candidate" in text for text in read)
    assert compiled.report.prompt_usage.calls == len(read)
    assert compiled.report.prompt_model["model"] == "scripted"


def test_the_same_seed_gives_the_same_program_in_another_process(tmp_path):
    """Python's hashes differ from process to process; what is drawn must not depend on them."""
    code = """
import dspy, townhall
from townhall.evaluation.assembly import program
from townhall.models.simulated import AsyncSimulatedEngine, SimulatedEngine
from townhall.models.simulation import SimulatedBehaviour
from townhall.optimize.compile import compile
from townhall.optimize.held_out import fingerprint_of

task = townhall.task("arithmetic", count=60)
behaviour = SimulatedBehaviour(accuracy=0.9, answers={example.question: example.gold for example in task.examples})
engine = SimulatedEngine("simulated", behaviour)
lm = dspy.LM("simulated/known", engine=engine, async_engine=AsyncSimulatedEngine(engine), temperature=0.7, cache=False)
with dspy.context(lm=lm):
    made = compile(program(task, "town-hall", personas=3), task, train=task.split("train", limit=4), demos=3)
print(fingerprint_of(made.program), made.report.roles["rebut"].demos)
"""
    printed = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TOWNHALL_CACHE": str(tmp_path / seed)}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        printed.add(done.stdout)
    assert len(printed) == 1
    assert printed.pop().split()[1] == "3"
