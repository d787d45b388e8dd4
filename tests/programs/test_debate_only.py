"""Debate-only, message by message."""

from __future__ import annotations

import dspy
import pytest

from townhall.errors import InputError
from townhall.programs.debate_only import DebateOnly, confidences_of, different
from townhall.programs.judging import side_order
from townhall.programs.single import Single

QUESTION = "Is it polite?"


class Speaker:
    """A model with lines of its own: what it answers first and last, its feedback, its judgement."""

    def __init__(self, make, obliging, shown, name, first, last, **more):
        def answer(inputs, seed):
            return last if "own_answer" in inputs else first

        def reasoning(inputs, seed):
            return f"{name} thinks {answer(inputs, seed)}"

        script = obliging(answer=answer, reasoning=reasoning, feedback=f"{name} remarks", **more)
        self.lm, self.engine = make(script, model=f"vendor/{name}-9b")
        self._shown = shown

    def prompts(self, with_field=None):
        found = [self._shown(messages) for messages, _ in self.engine.requests]
        return [prompt for prompt in found if with_field is None or with_field in prompt]


@pytest.fixture
def speaker(scripted_lm, obliging, shown):
    """Return `speaker(name, first, last)`: a model that answers so."""

    def make(name, first, last, **more):
        return Speaker(scripted_lm, obliging, shown, name, first, last, **more)

    return make


def hold(first, second, judge=None, **settings):
    program = DebateOnly(lms=[first.lm, second.lm], judge_lm=judge.lm if judge else None, **settings)
    return program(question=QUESTION)


def test_each_agent_is_shown_its_own_answer_the_others_and_both_feedbacks_in_their_places(speaker):
    ann, bob = speaker("ann", "yes", "no"), speaker("bob", "no", "no")
    result = hold(ann, bob)
    assert ann.prompts() == [
        {"question": QUESTION},
        {
            "question": QUESTION,
            "own_answer": "ann thinks yes\nAnswer: yes",
            "other_answer": "bob thinks no\nAnswer: no",
        },
        {
            "question": QUESTION,
            "own_answer": "ann thinks yes\nAnswer: yes",
            "other_answer": "bob thinks no\nAnswer: no",
            "feedback_received": "bob remarks",
            "feedback_given": "ann remarks",
        },
    ]
    assert bob.prompts() == [
        {"question": QUESTION},
        {
            "question": QUESTION,
            "own_answer": "bob thinks no\nAnswer: no",
            "other_answer": "ann thinks yes\nAnswer: yes",
        },
        {
            "question": QUESTION,
            "own_answer": "bob thinks no\nAnswer: no",
            "other_answer": "ann thinks yes\nAnswer: yes",
            "feedback_received": "ann remarks",
            "feedback_given": "bob remarks",
        },
    ]
    assert [(turn.round, turn.agent, turn.role) for turn in result.transcript.turns] == [
        (1, 0, "decide"),
        (1, 1, "decide"),
        (2, 0, "feedback"),
        (2, 1, "feedback"),
        (2, 0, "revise"),
        (2, 1, "revise"),
    ]
    assert result.transcript.trajectory() == [["yes", "no"], ["no", "no"]]
    assert result.answer == "no"
    assert (result.decision.rule, result.decision.unanimous, result.decision.judged) == ("judge", True, False)


def test_a_further_round_reads_the_answers_of_the_round_before(scripted_lm, obliging, shown):
    counts = {"a": 0, "b": 0}

    def counting(name):
        def answer(inputs, seed):
            counts[name] += 1
            return f"{name}{counts[name]}"

        return scripted_lm(obliging(answer=answer), model=name)

    (ann, engine), (bob, _) = counting("a"), counting("b")
    DebateOnly(rounds=3, cot=False, lms=[ann, bob])(question=QUESTION)
    last = [shown(messages) for messages, _ in engine.requests if "feedback_received" in shown(messages)][-1]
    assert (last["own_answer"], last["other_answer"]) == ("Answer: a2", "Answer: b2")


@pytest.mark.parametrize(
    ("ends", "judged"),
    [(("yes", "yes"), False), (("Yes", "yes."), False), (("yes", "no"), True), (("no", "yes"), True)],
)
@pytest.mark.parametrize("starts", [("yes", "yes"), ("yes", "no")])
def test_the_judge_is_called_exactly_when_the_last_answers_differ(starts, ends, judged, speaker):
    ann, bob = speaker("ann", starts[0], ends[0]), speaker("bob", starts[1], ends[1])
    judge = speaker("judge", "-", "-")
    result = hold(ann, bob, judge)
    assert len(judge.prompts()) == judged
    assert result.decision.judged == judged
    assert len(list(result.transcript.of(role="judge"))) == judged


def test_the_judge_reads_all_that_was_said_and_no_name(speaker):
    ann, bob, judge = speaker("ann", "yes", "yes"), speaker("bob", "no", "no"), speaker("judge", "-", "-")
    result = hold(ann, bob, judge)
    [prompt] = judge.prompts()
    first, second = ("ann", "bob") if side_order(0, QUESTION) == (0, 1) else ("bob", "ann")
    says = {"ann": "yes", "bob": "no"}
    opening = [
        f"{side} side: {name} thinks {says[name]}\nAnswer: {says[name]}"
        for side, name in (("First", first), ("Second", second))
    ]
    assert prompt["debate"] == "\n\n".join(
        [
            "Round 1, first answers:",
            *opening,
            "Round 2, comments:",
            f"First side: (to the other side) {first} remarks",
            f"Second side: (to the other side) {second} remarks",
            "Round 2, answers:",
            *opening,
        ]
    )
    # Only the text the agents themselves wrote tells them apart here.
    messages = str(judge.engine.requests[0][0])
    assert "9b" not in messages
    assert "vendor" not in messages
    assert "Agent 1" not in messages
    assert result.answer == says[first]
    [turn] = result.transcript.of(role="judge")
    order = side_order(0, QUESTION)
    assert turn.said == {
        "reason": "a reason",
        "side": "first",
        "sides": {"first": f"Agent {order[0] + 1}", "second": f"Agent {order[1] + 1}"},
    }
    assert (turn.round, turn.agent, turn.model) == (2, None, "vendor/judge-9b")


def test_the_sides_change_places_with_the_seed_and_not_otherwise(speaker):
    def first_side(seed):
        ann, bob, judge = speaker("ann", "yes", "yes"), speaker("bob", "no", "no"), speaker("judge", "-", "-")
        hold(ann, bob, judge, seed=seed)
        return judge.prompts()[0]["debate"].split("First side: ")[1][:3]

    seen = [first_side(seed) for seed in range(6)]
    assert seen == [first_side(seed) for seed in range(6)]
    assert set(seen) == {"ann", "bob"}


def test_each_agent_is_the_first_side_about_as_often():
    firsts = sum(side_order(0, f"question {number}")[0] for number in range(2000))
    assert 900 < firsts < 1100


@pytest.mark.parametrize(("side", "wins"), [("first", 0), ("Second.", 1)])
def test_the_judges_side_wins(side, wins, speaker):
    ann, bob = speaker("ann", "yes", "yes"), speaker("bob", "no", "no")
    result = hold(ann, bob, speaker("judge", "-", "-", side=side))
    winner = side_order(0, QUESTION)[wins]
    assert result.answer == ("yes", "no")[winner]
    assert result.decision.answer == result.answer
    assert result.decision.bucket == result.answer
    assert result.decision.reason == "a reason"


@pytest.mark.parametrize("side", ["neither", "both sides", None, ""])
def test_a_judge_that_names_neither_side_is_asked_once_more_then_there_is_a_blank(side, speaker):
    ann, bob = speaker("ann", "yes", "yes"), speaker("bob", "no", "no")
    judge = speaker("judge", "-", "-", side=side)
    result = hold(ann, bob, judge)
    assert len(judge.prompts()) == 2
    assert result.answer is None
    assert result.decision.judged
    assert result.decision.reason.startswith("the judge named neither side: ")
    assert [candidate.answer for candidate in result.decision.candidates] == ["yes", "no"]
    [turn] = result.transcript.of(role="judge")
    assert turn.abstained


def test_without_a_judge_model_the_first_agents_model_judges(speaker):
    ann, bob = speaker("ann", "yes", "yes"), speaker("bob", "no", "no")
    result = hold(ann, bob)
    assert [turn.model for turn in result.transcript.of(role="judge")] == ["vendor/ann-9b"]


@pytest.mark.parametrize(
    ("sure", "winner", "tie"),
    [((30, 80), "no", False), ((80, 30), "yes", False), ((50, 50), "yes", True), ((0, 0), "yes", True)],
)
def test_the_more_confident_agent_wins(sure, winner, tie, speaker):
    ann = speaker("ann", "yes", "yes", confidence=sure[0])
    bob = speaker("bob", "no", "no", confidence=sure[1])
    result = hold(ann, bob, adjudication="confident")
    assert result.answer == winner
    assert (result.decision.rule, result.decision.tie, result.decision.judged) == ("confident", tie, False)
    assert result.decision.reason == f"stated confidence: {sure[0]}, {sure[1]}"
    assert all(turn.said["confidence"] in sure for turn in result.transcript.turns if turn.role != "feedback")


def test_agents_state_their_confidence_only_when_it_decides(speaker):
    ann, bob = speaker("ann", "yes", "yes"), speaker("bob", "no", "no")
    result = hold(ann, bob)
    assert all("confidence" not in turn.said for turn in result.transcript.turns)


@pytest.mark.parametrize(("stated", "read"), [(0, 0), (1, 1), (0.8, 80), (42.5, 42.5), (100, 100), (250, 100), (-5, 0)])
def test_confidence_is_read_in_percent(stated, read):
    class Stated:
        prediction = dspy.Prediction(confidence=stated)

    assert confidences_of([Stated()], [7.0]) == [read]


def test_an_agent_that_abstains_keeps_its_confidence():
    class Abstained:
        prediction = None

    assert confidences_of([Abstained()], [7.0]) == [7.0]


@pytest.mark.parametrize(("rule", "answer"), [("first", "yes"), ("abstain", None)])
def test_other_rules_decide_without_a_call(rule, answer, speaker):
    result = hold(speaker("ann", "yes", "yes"), speaker("bob", "no", "no"), adjudication=rule)
    assert result.answer == answer
    assert result.decision.answer == answer
    assert result.decision.rule == rule
    assert "disagree" in result.decision.reason
    assert result.transcript.usage().calls == 6


def test_the_only_answer_wins_without_a_judge(speaker):
    ann, bob, judge = speaker("ann", None, None), speaker("bob", "no", "no"), speaker("judge", "-", "-")
    result = hold(ann, bob, judge)
    assert result.answer == "no"
    assert result.decision.abstentions == 1
    assert judge.prompts() == []
    assert bob.prompts("feedback_received")[0]["other_answer"] == "Answer: (no answer)"


def test_feedback_that_cannot_be_read_is_marked_as_nothing(speaker, roles):
    ann, bob = speaker("ann", "yes", "yes"), speaker("bob", "no", "no")
    obliging = bob.engine.script
    bob.engine.script = lambda messages, seed: "?" if roles(messages) == "feedback" else obliging(messages, seed)
    result = hold(ann, bob)
    [prompt] = ann.prompts("feedback_received")
    assert prompt["feedback_received"] == "(nothing)"
    assert prompt["feedback_given"] == "ann remarks"
    assert result.transcript.turns[3].abstained


def test_rounds_end_when_both_agree_if_so_set(speaker):
    result = hold(speaker("ann", "no", "yes"), speaker("bob", "no", "no"), stop_when_unanimous=True)
    assert result.answer == "no"
    assert result.transcript.usage().calls == 2


def test_first_decisions_are_shared_between_pairs_whichever_place_a_model_has(scripted_lm, obliging, cache):
    models = {name: scripted_lm(obliging(answer=name), model=name, cache=True) for name in "abc"}
    for first, second in ("ab", "ac", "bc", "ba"):
        DebateOnly(lms=[models[first][0], models[second][0]], rounds=1, adjudication="first")(question=QUESTION)
    assert {name: len(engine.requests) for name, (_, engine) in models.items()} == {"a": 1, "b": 1, "c": 1}


def test_a_single_models_answer_is_its_first_decision_in_a_debate(scripted_lm, obliging, cache):
    models = {name: scripted_lm(obliging(answer=name), model=name, cache=True) for name in "ab"}
    for name in "ab":
        Single(lms=[models[name][0]])(question=QUESTION)
    DebateOnly(lms=[models["b"][0], models["a"][0]], rounds=1, adjudication="first")(question=QUESTION)
    assert {name: len(engine.requests) for name, (_, engine) in models.items()} == {"a": 1, "b": 1}


def test_two_agents_of_one_model_are_two_samples(scripted_lm, obliging, cache):
    lm, engine = scripted_lm(obliging(answer=lambda inputs, seed: str(seed)), cache=True)
    result = DebateOnly(lms=[lm, lm.copy()], rounds=1, adjudication="abstain")(question=QUESTION)
    assert len(engine.requests) == 2
    assert len(result.decision.candidates) == 2


def test_two_different_models_may_be_required(scripted_lm, obliging):
    ann, _ = scripted_lm(obliging(), model="ann")
    bob, _ = scripted_lm(obliging(), model="bob")
    DebateOnly(require_different=True, lms=[ann, bob])(question=QUESTION)
    for lms in ([ann], [ann, ann], [ann, ann.copy()]):
        with pytest.raises(InputError, match=r"^debate-only requires two different models, and both agents have ann: "):
            DebateOnly(require_different=True, lms=lms)
        DebateOnly(lms=lms)(question=QUESTION)
    program = DebateOnly(require_different=True)
    with pytest.raises(InputError, match="two different models"):
        program.with_models([ann])
    with dspy.context(lm=ann), pytest.raises(InputError, match="two different models"):
        DebateOnly(require_different=True)(question=QUESTION)
    program.with_models([ann, bob])(question=QUESTION)


def test_one_model_name_at_two_servers_is_two_models():
    first = dspy.LM("openai/m", api_base="http://one.example/v1", api_key="-")
    second = dspy.LM("openai/m", api_base="http://two.example/v1", api_key="-")
    assert different(first, second)
    assert not different(first, first.copy(temperature=0.1))


def test_demonstrations_are_a_mistaken_agent_and_a_right_one(worked):
    program = DebateOnly(shots=1).demonstrate([worked])
    right, wrong = f"{worked.reasoning}\nAnswer: 8", f"{worked.mistaken_reasoning}\nAnswer: 12"
    [feedback], [revision], [judgement] = program.feedback.demos, program.revise.demos, program.judge.demos
    assert (feedback.own_answer, feedback.other_answer, feedback.feedback) == (right, wrong, worked.correction)
    assert (revision.own_answer, revision.other_answer) == (wrong, right)
    assert revision.feedback_received == worked.correction
    assert revision.answer == "8"
    sides = dict(zip(("first", "second"), side_order(0, worked.question), strict=True))
    assert sides[judgement.side] == 0
    assert judgement.debate.split(f"{judgement.side.capitalize()} side: ")[1].startswith(right)
