"""Choice letters, labels, moves, squares and JSON fields that a model's text answers with."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from townhall.errors import InputError
from townhall.metrics.extraction import (
    CHOICE_RULES,
    extract_choice,
    extract_json,
    extract_label,
    extract_move,
    extract_moves,
    extract_square,
)

CITIES = ["Paris", "London", "Rome", "Berlin"]
LABELS = ["yes", "no", "neither"]
ALIASES = {"yes": ["acceptable"], "no": ["unacceptable"], "neither": ["neutral"]}


def cases(*pairs: tuple[str, object]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("text", "value"), pairs, ids=[repr(text)[:60] for text, _ in pairs])


@cases(
    ("Answer: A\n\nOn reflection:\nAnswer: C", "C"),
    ("The answer seems to be A.", "A"),
    ("B because a car moves", "B"),
    ("**A**", "A"),
    ("$A$", "A"),
    ("(a)", "A"),
)
def test_the_listed_letters_are_read(text: str, value: str) -> None:
    assert extract_choice(text, 4) == value


@cases(
    ("A car moves because it has wheels.", None),
    ("A car", None),
    ("I think a car is fine.", None),
    ("The answer is a car.", None),
    ("Answer: A car moves", None),
    ("The answer is A because a car moves.", "A"),
    ("Answer: A. A car moves", "A"),
    ("Answer: A - a car", "A"),
    ("The answer is a.", "A"),
    ("A", "A"),
    ("a", "A"),
)
def test_a_letter_is_not_an_article(text: str, value: str | None) -> None:
    assert extract_choice(text, 4) == value


@cases(
    ("B", "B"),
    ("B.", "B"),
    ("B)", "B"),
    ("[B]", "B"),
    ("B!", "B"),
    ("B. London is the capital.", "B"),
    ("B - London", "B"),
    ("B London", "B"),
    ("B\n\nBecause Paris is wrong.", "B"),
    ("Option B", "B"),
    ("option (b)", "B"),
    ("The answer is (B).", "B"),
    ("The answer is `B`", "B"),
    ("The correct option is B.", "B"),
    ("Answer:\n(B) London", "B"),
    ("### Answer\nB", "B"),
    ("**Answer:** B. London", "B"),
    ("<answer>B</answer>", "B"),
    ("[[ ## answer ## ]]\nB\n", "B"),
    ("\\boxed{\\textbf{(B)}}", "B"),
    ("\\boxed{\\text{(B) } 5}", "B"),
    ('{"answer": "B"}', "B"),
    ('{"choice": "b"}', "B"),
    ('{"answer": "B. London"}', "B"),
    ('{"answer": {"letter": "B", "text": "London"}}', "B"),
    ('{"reasoning": "A is wrong", "answer": "(B)"}', "B"),
    ("I would go with option B.", "B"),
    ("I vote for candidate B.", "B"),
    ("So it must be B.", "B"),
    ("Therefore, the best choice is B.", "B"),
    ("B is the correct answer.", "B"),
    ("(B) is the best answer because (A) is wrong.", "B"),
    ("Eliminating A and C, we are left with B and D. B is more plausible.", "B"),
    ("A is wrong. C is wrong. So B.", "B"),
    ("The choice fits the facts best. (B)", "B"),
    ("The ruling rests upon choice (B) here, as the deed was recorded.", "B"),
    ("Based on the others, I still believe (B) is correct. [[1, 5, 2]]", "B"),
)
def test_letters_in_the_place_of_an_answer(text: str, value: str) -> None:
    assert extract_choice(text, 4) == value


@cases(
    ("The answer is B, not A.", "B"),
    ("The answer is not A but B.", "B"),
    ("The answer can't be A, so it's B.", "B"),
    ("Between A and B, I choose B.", "B"),
    ("Agent 1 says the answer is A. I disagree: the answer is B.", "B"),
    ("I agree with agent 1 that the answer is B.", "B"),
    ("My previous answer was A, but now my answer is B.", "B"),
    ("My answer is (B).\n\nAgent solution 1: This answer is sound, but option A is named as (A).", "B"),
    ("I choose (B).\n\nAgent 3: score 2, it wrongly picks (C).", "B"),
    ("<think>The answer is A</think>B", "B"),
    ("A: Paris\nB: London\nC: Rome\nD: Berlin\n\nThe answer is B.", "B"),
    ("The most probable option among (A), (B), (C) and (D) would be (B).", "B"),
)
def test_what_is_denied_or_said_of_others_does_not_count(text: str, value: str) -> None:
    assert extract_choice(text, 4) == value


@cases(
    ("", None),
    ("I don't know.", None),
    ("None of the above.", None),
    ("Answer: E", None),
    ("Answer: N/A", None),
    ("The answer is A or B.", None),
    ("Both A and B are possible.", None),
    ("Answer: A, B", None),
    ("My answer is (A) Paris and (B) London.", None),
    ("The answer must be either (A) this one or (B) that one.", None),
    ("A. Paris\nB. London\nC. Rome\nD. Berlin", None),
    ("(A) is wrong. (B) is wrong as well. (C) is wrong.", None),
    ("B is incorrect.", None),
    ("I think option A is right, but option B is also right.", None),
    ("I name none of the options (A), (B), (C) or (D).", None),
    ("Plan A failed. Plan B too.", None),
    ("Hepatitis B is caused by a virus.", None),
    ("<think>A or B", None),
)
def test_a_text_that_chooses_no_single_letter_is_a_blank(text: str, value: None) -> None:
    assert extract_choice(text, 4) is None


@cases(
    ("London", "B"),
    ("The answer is London.", "B"),
    ('{"answer": "london"}', "B"),
    ("So the capital is London, not Paris.", "B"),
    ("The capital is not Paris.", None),
    ("It could be Paris or London.", None),
)
def test_an_answer_may_give_a_choices_text(text: str, value: str | None) -> None:
    assert extract_choice(text, 4, texts=CITIES) == value


def test_the_longest_choice_text_wins() -> None:
    texts = ["iron", "iron oxide", "oxide", "none of these"]
    assert extract_choice("The answer is iron oxide.", 4, texts=texts) == "B"
    assert extract_choice("Therefore it must be none of these.", 4, texts=texts) == "D"


def test_the_number_of_choices_bounds_the_letters() -> None:
    assert extract_choice("Answer: E", 5) == "E"
    assert extract_choice("Answer: E", ["C", "D", "E"]) == "E"
    assert extract_choice("Answer: A", ["C", "D", "E"]) is None


@cases(("\\boxed{C} or B", "C"), ("B", None))
def test_boxed_letters(text: str, value: str | None) -> None:
    assert extract_choice(text, 4, "boxed") == value


@cases(("(A) is wrong, so (C)", "C"), ("A", None))
def test_last_letter(text: str, value: str | None) -> None:
    assert extract_choice(text, 4, "last-letter") == value


@cases(('{"answer": "B"} {"answer": "C"}', "B"), ("the answer is B", None))
def test_zeroeval_letters(text: str, value: str | None) -> None:
    assert extract_choice(text, 4, "zeroeval") == value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"choices": 0}, "there must be 1 to 26"),
        ({"choices": 27}, "there must be 1 to 26"),
        ({"choices": ["yes", "no"]}, "give the choices' texts as `texts`"),
        ({"choices": 4, "texts": ["a"]}, "1 texts for 4 choices"),
        ({"choices": 4, "rule": "strict"}, "unknown extraction rule 'strict'"),
    ],
)
def test_bad_arguments_are_named(arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        extract_choice("A", **arguments)


@cases(
    ("I do not know.", None),
    ("I don't know", None),
    ("Neither yes nor no", "neither"),
    ("No, but yesterday it was.", "no"),
    ("not unacceptable", None),
)
def test_the_listed_labels_are_read(text: str, value: str | None) -> None:
    assert extract_label(text, LABELS, ALIASES) == value


@cases(
    ("Yes", "yes"),
    ("YES!", "yes"),
    ("**No**", "no"),
    ("neither", "neither"),
    ('"No"', "no"),
    ("Nope.", "no"),
    ("Yeah", "yes"),
    ("Answer: No", "no"),
    ("Answer (yes, no, or neither): no", "no"),
    ("Answer: Yes. The final answer: No", "no"),
    ("The answer is neither.", "neither"),
    ("My answer is 'yes'.", "yes"),
    ("The final answer is: **Neither**", "neither"),
    ("\\boxed{No}", "no"),
    ("Yes\n\nExplanation: there is no rule against it", "yes"),
    ("Yes, no doubt.", "yes"),
    ("No doubt it is acceptable.", "yes"),
    ("It is acceptable.", "yes"),
    ("It is unacceptable.", "no"),
    ("It is neutral.", "neither"),
    ("neither acceptable nor unacceptable", "neither"),
    ("It's a no from me.", "no"),
    ("I would say yes.", "yes"),
    ("There is no rule against it, so yes.", "yes"),
    ("No rule forbids it, so yes.", "yes"),
    ("He followed the custom. Therefore, yes.", "yes"),
    ("Neither of them objected. The answer is yes.", "yes"),
    ("The answer is not yes but no.", "no"),
    ("Agent A says yes, but I say no.", "no"),
    ('{"answer": "Neither"}', "neither"),
    ('{"verdict": "no", "reason": "yes it was"}', "no"),
    ('{"answer": true}', "yes"),
)
def test_labels_in_the_place_of_an_answer(text: str, value: str) -> None:
    assert extract_label(text, LABELS, ALIASES) == value


@cases(
    ("", None),
    ("maybe", None),
    ("Not sure", None),
    ("None", None),
    ("Knowing the culture, I am unsure.", None),
    ("Nobody would mind.", None),
    ("There is no rule against it.", None),
    ("Neither of them objected.", None),
    ("The behaviour is not unacceptable.", None),
    ("It is not acceptable.", None),
    ("Yes and no.", None),
    ("yes or no", None),
    ("Yes/No", None),
    ("no\nyes", None),
    ("I can't say yes.", None),
    ("The answer is not yes.", None),
    ("It cannot be said that the answer is yes", None),
)
def test_a_text_that_gives_no_single_label_is_a_blank(text: str, value: None) -> None:
    assert extract_label(text, LABELS, ALIASES) is None


def test_a_longer_alias_is_looked_for_first() -> None:
    aliases = {"yes": ["acceptable"], "no": ["not acceptable"]}
    assert extract_label("So it is not acceptable.", ["yes", "no"], aliases) == "no"


def test_other_labels_are_returned_as_they_were_given() -> None:
    assert extract_label("The answer is uncertain.", ["Yes", "No", "Uncertain"]) == "Uncertain"


@cases(
    ("Nf3", "Nf3"),
    ("15. Nf3", "Nf3"),
    ("15.Nf3!", "Nf3"),
    ("The best move is Nf3+.", "Nf3"),
    ("I would play e2-e4.", "e2e4"),
    ("0-0", "O-O"),
    ("O-O-O#", "O-O-O"),
    ("e8Q+", "e8=Q"),
    ("e7e8q", "e7e8q"),
    ("Knight to f3", "Nf3"),
    ("pawn to e4", "e4"),
    ("castle kingside", "O-O"),
    ("Nbd7 is best because of Bb4.", "Nbd7"),
    ("After Bb4 Qc2, the answer is O-O.", "O-O"),
    ("Answer: **Rad1**", "Rad1"),
    ('{"move": "Qxd5"}', "Qxd5"),
    ("\\boxed{Nf3}", "Nf3"),
    ("no idea", None),
    ("", None),
)
def test_moves(text: str, value: str | None) -> None:
    assert extract_move(text) == value


def test_a_move_is_looked_up_among_the_legal_ones_in_either_notation() -> None:
    assert extract_move("The answer is Qh5, or else Nf3+", ["g1f3", "Nf3"]) == "Nf3"
    assert extract_move("The answer is g1-f3", ["g1f3", "e2e4"]) == "g1f3"
    assert extract_move("Answer: 0-0", ["O-O"]) == "O-O"
    assert extract_move("The answer is Qh5", ["g1f3"]) is None
    assert extract_moves("The answer is Qh5, or else Nf3") == ["Qh5", "Nf3"]


@cases(
    ("e4", "e4"),
    ("E4", "e4"),
    ("The answer is e4.", "e4"),
    ("It can move to e4.", "e4"),
    ("From e2 to e4.", "e4"),
    ("g1f3", "f3"),
    ("Nf3", "f3"),
    ("the knight on b1 can go to c3", "c3"),
    ('{"square": "e4"}', "e4"),
    ("Therefore, e4.", "e4"),
    ("The piece on e2 can move to e4 or e3.", None),
    ("e4 or e5", None),
    ("none", None),
)
def test_squares(text: str, value: str | None) -> None:
    assert extract_square(text) == value


def test_json_objects_are_read_and_repaired() -> None:
    assert extract_json('x {"a": 1} y {"b": 2}') == {"b": 2}
    assert extract_json('x {"a": 1} y {"b": 2}', "a") == 1
    assert extract_json("```json\n{'the answer': [1, 2,]\n```", "The_Answer") == [1, 2]
    assert extract_json('{"a": "line\nbreak", "b": {"c": 1}}') == {"a": "line\nbreak", "b": {"c": 1}}
    assert extract_json('{"a": "it breaks off he') == {"a": "it breaks off he"}
    assert extract_json("the set {1, 2} and \\frac{1}{2}") is None
    assert extract_json('{"a": 1}', "b") is None
    assert extract_json("") is None


@given(st.text(max_size=200) | st.text(alphabet="{}[]()\"'\\$*:.,-/ABCDIabcdiyesno orntheaw4f\n", max_size=200))
@settings(max_examples=200, deadline=None)
def test_no_text_makes_a_reader_fail(text: str) -> None:
    for rule in CHOICE_RULES:
        assert extract_choice(text, 4, rule, texts=CITIES) in (None, "A", "B", "C", "D")
    assert extract_label(text, LABELS, ALIASES) in (None, *LABELS)
    extract_move(text)
    square = extract_square(text)
    assert square is None or (square[0] in "abcdefgh" and square[1] in "12345678")
    extract_json(text)
