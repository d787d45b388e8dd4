"""Decision rules, ties and blanks."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from townhall.errors import InputError
from townhall.programs.decisions import DECISIONS, TIE_BREAK, candidates_of, decide, known_rule
from townhall.signatures.transcript import Ballot


def ballots(*choices):
    return [Ballot(agent=agent, choice=choice) for agent, choice in enumerate(choices)]


@pytest.mark.parametrize(
    ("rule", "answers", "winner"),
    [
        ("majority", ["a", "b", "b"], "b"),
        ("majority", ["a", "b", "c"], "a"),
        ("majority", [None, "b", None], "b"),
        ("absolute-majority", ["a", "b", "b"], "b"),
        ("absolute-majority", ["a", "b", "b", None], None),
        ("absolute-majority", ["a", "a", "b", "c"], None),
        ("absolute-majority", ["a", "a", "b", "b"], None),
        ("supermajority", ["a", "b", "b"], "b"),
        ("supermajority", ["a", "a", "b", "b", "b"], None),
        ("supermajority", ["b", "b", None], "b"),
        ("supermajority", ["b", None, None], None),
        ("unanimity", ["b", "b", "b"], "b"),
        ("unanimity", ["b", "b", "a"], None),
        ("unanimity", ["b", "b", None], None),
        ("weighted", ["a", "b", "b"], "b"),
    ],
)
def test_rules(rule, answers, winner):
    answer, decision = decide(rule, answers)
    assert answer == winner
    assert (decision.rule, decision.answer) == (rule, winner)


@pytest.mark.parametrize("rule", DECISIONS.names())
@pytest.mark.parametrize("answers", [[], [None], [None, None, None]])
def test_when_all_abstain_there_is_a_blank(rule, answers):
    answer, decision = decide(rule, answers)
    assert answer is None
    assert (decision.answer, decision.bucket, decision.candidates) == (None, None, [])
    assert decision.abstentions == len(answers)
    assert not decision.unanimous
    assert not decision.tie


@pytest.mark.parametrize("answers", list(product(["a", "b", "c", None], repeat=4)))
def test_majority_is_the_most_frequent_answer_and_ties_go_to_the_first_proposed(answers):
    answer, decision = decide("majority", answers)
    counts = Counter(item for item in answers if item is not None)
    best = [item for item in counts if counts[item] == max(counts.values())]
    assert answer == (best[0] if best else None)
    assert decision.tie == (len(best) > 1)
    assert decision.tie_break == (TIE_BREAK if len(best) > 1 else None)
    assert decision.unanimous == (len(counts) == 1)
    assert decision.abstentions == answers.count(None)


def test_weights_outvote_numbers():
    answer, decision = decide("weighted", ["a", "b", "b"], weights=[90, 30, 40])
    assert answer == "a"
    assert [candidate.votes for candidate in decision.candidates] == [90, 70]


def test_ballots_may_choose_another_answer_than_the_voters_own():
    answer, decision = decide("majority", ["a", "b", "c"], ballots(2, 2, 1))
    assert answer == "b"
    assert [(item.number, item.votes, item.supporters) for item in decision.candidates] == [
        (1, 1, [0]),
        (2, 2, [1]),
        (3, 0, [2]),
    ]
    assert [ballot.choice for ballot in decision.votes] == [2, 2, 1]


def test_a_tied_vote_goes_to_the_answer_that_most_agents_hold():
    answer, decision = decide("majority", ["a", "b", "b", "a", "b"], ballots(1, 2, 1, 2, None))
    assert answer == "b"
    assert (decision.tie, decision.tie_break) == (True, TIE_BREAK)


@pytest.mark.parametrize("choice", [None, 0, 3, -1])
def test_a_ballot_for_nobody_is_an_abstention(choice):
    answer, decision = decide("majority", ["a", "b"], ballots(2, choice))
    assert answer == "b"
    assert decision.abstentions == 1


def test_a_missing_ballot_is_an_abstention():
    _, decision = decide("absolute-majority", ["a", "b", "b"], ballots(1, 1)[:2])
    assert decision.abstentions == 1
    assert decision.answer == "a"


def test_equal_answers_in_other_words_are_one_candidate():
    [candidate] = candidates_of([0.5, "1/2", "\\frac{1}{2}"])
    assert candidate.supporters == [0, 1, 2]
    answer, decision = decide("majority", ["Paris.", "paris", "Rome"])
    assert answer == "Paris.", "the words of the agent that said it first"
    assert decision.candidates[0].votes == 2


def test_the_winner_keeps_its_type():
    answer, decision = decide("majority", [3.0, 4.0, 4.0])
    assert answer == 4.0
    assert isinstance(answer, float)
    assert decision.answer == 4


def test_an_unknown_rule_names_the_nearest():
    with pytest.raises(InputError, match=r"unknown decision rule 'majorty'. Did you mean 'majority'\?"):
        decide("majorty", ["a"])
    with pytest.raises(ValueError, match="no decision rule 'majorty'"):
        known_rule("majorty")
    assert known_rule("majority") == "majority"
