"""What is computed from debates: rounds, flips, who follows whom, pairs, choices and the judge."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from townhall.errors import InputError
from townhall.metrics.corpus_dynamics import corpus_dynamics
from townhall.metrics.dynamics import (
    FLIPS,
    PAIR_CATEGORIES,
    debate_dynamics,
    flip,
    pair_category,
    round_state,
)
from townhall.metrics.imported_logs import read_dylan
from townhall.signatures.transcript import Decision, Transcript, Turn


def debate(
    *agents: Sequence[str | None], decided: str | None = "", judged: bool = False, models: Sequence[str] = ()
) -> Transcript:
    """A debate from each agent's answers by round; the decision is its last plurality unless it is given."""
    turns = [
        Turn(
            round=number, agent=agent, role="argue" if number == 1 else "rebut", bucket=answer, abstained=answer is None
        )
        for agent, answers in enumerate(agents)
        for number, answer in enumerate(answers, start=1)
    ]
    transcript = Transcript(strategy="society", turns=turns, models=list(models))
    if decided != "":
        transcript.decision = Decision(rule="judge" if judged else "majority", bucket=decided, judged=judged)
    return transcript


# -- one round -------------------------------------------------------------------------------------------------------


def test_a_round_by_hand() -> None:
    state = round_state(["a", "b", "a", None], lambda bucket: bucket == "a")
    assert (state.right, state.plurality, state.support, state.blanks) == (2, "a", 2, 1)
    assert not state.consensus
    # a twice, b once: (2/3) log2(3/2) + (1/3) log2(3)
    assert state.entropy == pytest.approx(2 / 3 * math.log2(1.5) + math.log2(3) / 3)


def test_consensus_agreement_and_entropy_at_the_ends() -> None:
    same = round_state(["a"] * 3)
    assert (same.consensus, same.support, same.entropy, same.right) == (True, 3, 0, None)
    apart = round_state(["a", "b", "c", "d"])
    assert (apart.consensus, apart.support, apart.entropy) == (False, 1, 2)
    assert apart.plurality == "a"
    blank = round_state([None, None])
    assert (blank.plurality, blank.support, blank.entropy, blank.consensus) == (None, 0, None, False)
    assert not round_state(["a", "a", None]).consensus


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("g", "g", "right -> right"),
        ("g", "x", "right -> wrong"),
        ("g", None, "right -> blank"),
        ("x", "g", "wrong -> right"),
        ("x", "x", "wrong -> same wrong"),
        ("x", "y", "wrong -> other wrong"),
        ("x", None, "wrong -> blank"),
        (None, "g", "blank -> right"),
        (None, "x", "blank -> wrong"),
        (None, None, "blank -> blank"),
    ],
)
def test_flips(before: str | None, after: str | None, kind: str) -> None:
    assert flip(before, after, lambda bucket: bucket == "g") == kind
    assert kind in FLIPS


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [("x", "x", "kept"), ("x", "y", "changed"), ("x", None, "answer -> blank"), (None, "x", "blank -> answer")],
)
def test_flips_where_the_right_answer_is_not_known(before: str | None, after: str | None, kind: str) -> None:
    assert flip(before, after) == kind


# -- one debate ------------------------------------------------------------------------------------------------------


def test_who_followed_whom() -> None:
    found = debate_dynamics(debate(["a", "b", "c"], ["b", "b", "b"], ["a", "d", "b"]), "b")
    changes = [(change.round, change.agent, change.followed, change.with_plurality) for change in found.changes]
    assert changes == [
        (2, 0, (1,), False),  # a had two of three votes
        (2, 2, (), False),  # d is new
        (3, 0, (), False),  # c is new
        (3, 2, (0, 1), True),
    ]
    assert [change.kind for change in found.changes] == [
        "wrong -> right",
        "wrong -> other wrong",
        "right -> wrong",
        "wrong -> right",
    ]


def test_a_decision_that_no_agent_holds_counts_as_it_is() -> None:
    assert debate_dynamics(debate(["x"], ["y"], decided="g"), "g").decided_right is True
    assert debate_dynamics(debate(["g"], ["g"], decided=None), "g").decided_right is False
    assert debate_dynamics(debate(["g", "g"], ["x", "g"]), "g").decided == "g"
    assert debate_dynamics(debate(["g"], ["g"])).decided_right is None


def test_a_predicate_may_tell_what_is_right() -> None:
    found = debate_dynamics(debate(["e4", "d4"], ["c4", "c4"]), lambda move: move in ("e4", "d4"))
    assert [state.right for state in found.rounds] == [1, 1]
    assert found.flips == [["right -> right", "wrong -> same wrong"]]


def test_an_agent_that_says_nothing_keeps_its_answer() -> None:
    transcript = debate(["g", "g", "g"], ["x"])
    found = debate_dynamics(transcript, "g")
    assert found.answers[1] == ["x", "x", "x"]
    assert found.flips[1] == ["right -> right", "wrong -> same wrong"]


def test_nobody_spoke() -> None:
    found = debate_dynamics(Transcript(strategy="society"), "g")
    assert (found.rounds, found.decided, found.pair) == ([], None, None)
    assert corpus_dynamics([found]).debates == 0


# -- pairs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "last", "category"),
    [
        ("RR", "RR", "both_right"),
        ("RR", "RW", "one_spoiled"),
        ("RR", "WR", "one_spoiled"),
        ("RR", "WW", "both_spoiled"),
        ("RW", "RR", "one_corrected"),
        ("WR", "RR", "one_corrected"),
        ("RW", "RW", "still_split"),
        ("WR", "WR", "still_split"),
        ("RW", "WR", "swapped"),
        ("WR", "RW", "swapped"),
        ("RW", "WW", "right_one_lost"),
        ("WR", "WW", "right_one_lost"),
        ("WW", "RR", "both_corrected"),
        ("WW", "RW", "one_of_two_corrected"),
        ("WW", "WR", "one_of_two_corrected"),
        ("WW", "WW", "both_wrong"),
    ],
)
def test_every_course_of_a_pair_is_in_one_category(first: str, last: str, category: str) -> None:
    rights = [tuple(letter == "R" for letter in word) for word in (first, last)]
    assert pair_category(*rights) == category
    answers = [[("g" if word[agent] == "R" else "x") for word in (first, last)] for agent in range(2)]
    assert debate_dynamics(debate(*answers), "g").pair == category


def test_the_categories_are_all_there_are() -> None:
    states = list(itertools.product((True, False), repeat=2))
    reached = {pair_category(first, last) for first in states for last in states}
    assert reached == set(PAIR_CATEGORIES)


def test_pairs_judge_and_choices_by_group() -> None:
    def choosing(transcript: Transcript, *choices: str) -> Transcript:
        transcript.turns += [
            Turn(round=2, agent=agent, role="choose", said={"choice": choice}) for agent, choice in enumerate(choices)
        ]
        return transcript

    debates = [
        (choosing(debate(["g", "g"], ["x", "g"], decided="g"), "reflect", "debate"), "north"),
        (choosing(debate(["g", "g"], ["x", "x"], decided="g", judged=True), "debate", "debate"), "north"),
        (debate(["x", "x"], ["y", "y"], decided="x", judged=True), "south"),
        (debate(["g", "x"], ["g", "g"], decided="x", judged=True), "south"),
    ]
    found = corpus_dynamics(debate_dynamics(transcript, "g", group=group) for transcript, group in debates)
    assert {name: count for name, count in found.pairs.items() if count} == {
        "one_corrected": 1,
        "still_split": 1,
        "both_wrong": 1,
        "one_spoiled": 1,
    }
    assert sum(found.pairs.values()) == 4
    assert (found.judged, found.judged_right, found.judge_could, found.decided_right) == (3, 1, 2, 2)
    assert found.agents[0].choices == {"debate": 1, "reflect": 1}
    assert found.agents[1].choices == {"debate": 2}
    assert set(found.groups) == {"north", "south"}
    assert found.groups["north"].pairs["one_corrected"] == 1
    assert found.groups["south"].judged == 2


# -- many debates ----------------------------------------------------------------------------------------------------


def test_a_corpus_by_hand() -> None:
    debates = [
        debate(["g", "x"], ["x", "x"], ["x", "x"]),  # a right minority of one, lost
        debate(["x", "g"], ["y", "g"], ["z", "g"]),  # all began wrong and ended right
        debate(["g"], ["g"], ["x"]),  # ended after one round
    ]
    found = corpus_dynamics(debate_dynamics(transcript, "g") for transcript in debates)
    first, second = found.rounds
    assert (first.running, second.running) == (3, 2)
    assert first.accuracy == pytest.approx((1 / 3 + 0 + 2 / 3) / 3)
    assert second.accuracy == pytest.approx((0 + 1 + 2 / 3) / 3)
    assert (first.majority, second.majority) == pytest.approx((1 / 3, 2 / 3))
    assert first.agreement == pytest.approx((2 / 3 + 1 / 3 + 2 / 3) / 3)
    assert (first.consensus, second.consensus) == pytest.approx((0, 2 / 3))
    assert second.flips == {"right -> wrong": 1, "wrong -> right": 3, "wrong -> same wrong": 2}
    assert (found.began_all_wrong, found.all_wrong_to_right) == (1, 1)
    assert (found.began_with_right_minority, found.right_minority_lost) == (1, 1)
    assert found.decided_right == 2
    assert found.follows == {(0, 1): 1, (0, 2): 1}
    assert found.pairs == {}
    assert found.agents[0].debates == 3
    assert (found.agents[0].first, found.agents[0].last) == pytest.approx((2 / 3, 2 / 3))
    assert json.loads(json.dumps(found.as_dict()))["running"] == [3, 2]


def test_models_are_told_apart() -> None:
    debates = [
        debate(["g", "x"], ["x", "x"], models=["A", "B"]),
        debate(["x", "x"], ["g", "g"], models=["B", "A"]),
    ]
    found = corpus_dynamics(debate_dynamics(transcript, "g") for transcript in debates)
    assert (found.models["A"].first, found.models["A"].last) == (1, 0.5)
    assert (found.models["B"].first, found.models["B"].last) == (0, 0)
    assert found.models["A"].flips == {"right -> right": 1, "right -> wrong": 1}
    assert (found.models["A"].changes, found.models["A"].followed) == (1, 1)


def test_logs_without_right_answers_have_no_figures_of_right_and_wrong() -> None:
    found = corpus_dynamics([debate_dynamics(debate(["a", "b"], ["b", "b"]))])
    assert (found.known, found.rounds[0].accuracy, found.agents[0].first) == (0, None, None)
    assert found.rounds[1].flips == {"kept": 1, "changed": 1}
    assert "accuracy" not in found.as_dict()


def exact_society(p: float, c: float, agents: int) -> dict[str, float]:
    """Enumerate a society of one revision: an agent not with the majority adopts its answer with probability c.

    Agents are right with probability p and else give the one wrong answer; `agents` is odd.
    """
    sums: Counter[str] = Counter()
    for rights in itertools.product((True, False), repeat=agents):
        weight = math.prod(p if right else 1 - p for right in rights)
        count = sum(rights)
        majority = 2 * count > agents
        moving = agents - count if majority else count
        gained = moving * c if majority else -moving * c
        sums["accuracy"] += weight * (count + gained) / agents
        sums["wrong -> right"] += weight * (moving * c if majority else 0)
        sums["right -> wrong"] += weight * (0 if majority else moving * c)
        sums["first consensus"] += weight * (moving == 0)
        sums["consensus"] += weight * c**moving
    return dict(sums)


def test_a_simulated_society_agrees_with_exact_enumeration() -> None:
    p, c, agents, debates = 0.6, 0.7, 5, 4000
    rng = np.random.default_rng(11)
    found = []
    for _ in range(debates):
        first = ["g" if right else "x" for right in rng.random(agents) < p]
        majority = Counter(first).most_common(1)[0][0]
        second = [answer if answer == majority or rng.random() >= c else majority for answer in first]
        found.append(debate_dynamics(debate(*zip(first, second, strict=True)), "g"))
    measured = corpus_dynamics(found)
    expected = exact_society(p, c, agents)
    assert measured.rounds[0].accuracy == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / (debates * agents)))
    assert measured.rounds[1].accuracy == pytest.approx(expected["accuracy"], abs=0.02)
    assert measured.rounds[0].consensus == pytest.approx(expected["first consensus"], abs=0.02)
    assert measured.rounds[1].consensus == pytest.approx(expected["consensus"], abs=0.03)
    for kind in ("wrong -> right", "right -> wrong"):
        assert measured.rounds[1].flips[kind] / debates == pytest.approx(expected[kind], abs=0.06)
    # Whoever changed went to the majority.
    changes = [change for one in found for change in one.changes]
    assert all(change.with_plurality for change in changes)


# -- imported logs ---------------------------------------------------------------------------------------------------


def log(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_dylan_log_becomes_transcripts(tmp_path: Path) -> None:
    row = {
        "id": "q1",
        "subject": "physics",
        "correct": True,
        "responses": [
            ["so (A)", "now (B)", None],
            ["I cannot say", None, "the answer is (B), not (C)"],
            ["(B)", None, None],
        ],
        "letters": [["A", "B", None], [None, None, "C"], ["B", None, None]],
    }
    (found,) = read_dylan(log(tmp_path / "log.jsonl", row))
    assert (found.id, found.group, found.correct) == ("q1", "physics", True)
    assert found.transcript.source == "dylan"
    assert found.transcript.trajectory() == [["a", "b", "b"], [None, None, "c"], ["b", "b", "b"]]
    assert [turn.abstained for turn in found.transcript.of(agent=1)] == [True, False]
    assert (found.transcript.decision.answer, found.transcript.decision.tie) == ("B", False)
    (anew,) = read_dylan(tmp_path / "log.jsonl", letters="flexible")
    assert anew.transcript.trajectory()[1] == [None, None, "b"]
    assert anew.transcript.decision.unanimous


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{not json}\n", "line 1: not a JSON object"),
        ("[]\n", "line 1: a JSON list; it must be an object"),
        ('{"responses": []}\n', "line 1, field responses: it must be a list of lists"),
        ('{"responses": [[3]], "letters": [["A"]]}\n', "field responses: a cell must be a text or null"),
        ('{"responses": [["x"]], "letters": [["A", "B"]]}\n', "field letters: its shape differs"),
    ],
)
def test_bad_logs_are_named_by_line_and_field(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        list(read_dylan(path))
    with pytest.raises(InputError, match="unknown reading"):
        list(read_dylan(path, letters="strict"))
    with pytest.raises(InputError, match="cannot be read"):
        list(read_dylan(tmp_path / "nowhere.jsonl"))


def test_the_80_debates_of_the_shared_log(shared: Path) -> None:
    found = list(read_dylan(shared / "data" / "debate_transcripts" / "dylan_mmlu_debates.jsonl"))
    assert len(found) == 80
    assert Counter(len(one.transcript.trajectory()) for one in found) == {4: 74, 7: 6}
    assert sum(bool(one.correct) for one in found) == 40
    figures = corpus_dynamics(debate_dynamics(one.transcript, group=one.group) for one in found)
    assert [one.running for one in figures.rounds] == [80, 80, 17]
    assert [round(one.agreement, 3) for one in figures.rounds] == [0.461, 0.747, 0.806]
    assert [round(one.consensus, 4) for one in figures.rounds] == [0, 0.2375, 0.2875]
    assert figures.rounds[1].flips == {
        "blank -> blank": 14,
        "kept": 146,
        "changed": 108,
        "answer -> blank": 5,
        "blank -> answer": 65,
    }
    assert sum(figures.rounds[2].flips.values()) == 17 * 4
    assert sum(group.debates for group in figures.groups.values()) == 80
