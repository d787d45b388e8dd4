"""Nearest texts without a model."""

from __future__ import annotations

from townhall.optimize.similarity import nearest, terms

POOL = [
    "A train leaves the station at nine and travels for three hours.",
    "Five houses stand in a row, each with a different colour.",
    "Is it polite to tip a waiter in this country?",
    "Trains depart every hour from nine to twelve.",
]


def test_the_text_that_shares_rare_words_comes_first():
    assert nearest("When does the next train leave the station?", POOL, 2) == [0, 3]
    assert nearest("Which house has the red colour?", POOL, 1) == [1]


def test_letter_trigrams_find_other_forms_of_a_word():
    assert set(nearest("travelling waiters", POOL, 2)) == {0, 2}


def test_equals_keep_their_order_and_counts_are_bounded():
    assert nearest("nothing in common: xyzzy", ["aaa bbb", "ccc ddd"], 2) == [0, 1]
    assert nearest("a", [], 3) == []
    assert len(nearest("train", POOL, 99)) == 4


def test_terms_are_words_and_their_trigrams():
    assert dict(terms("Ab ab")) == {"ab": 2, "^ab": 2, "ab$": 2}
