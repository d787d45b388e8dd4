import json
import re

import pytest

from townhall.errors import InputError
from townhall.tasks.access import task


def value_of(question):
    a, b, c, d, e, f = map(int, re.findall(r"-?\d+", question.split(" of ")[1].replace(" - ", " ")))
    return a + b * c + d - e * f


class TestGenerator:
    def test_makes_as_many_different_questions_as_asked(self):
        examples = task("arithmetic", count=120).examples
        assert len({example.question for example in examples}) == 120

    def test_the_default_is_300(self):
        assert len(task("arithmetic").examples) == 300

    def test_gold_answers_are_the_values_of_the_expressions(self):
        for example in task("arithmetic", count=50, seed=5).examples:
            assert example.gold == value_of(example.question)

    def test_numbers_have_two_digits(self):
        for example in task("arithmetic", count=50).examples:
            assert all(10 <= number <= 99 for number in example.meta["numbers"])

    def test_a_seed_repeats_and_another_differs(self):
        first = task("arithmetic", count=20, seed=1)
        assert first.fingerprint == task("arithmetic", count=20, seed=1).fingerprint
        assert first.fingerprint != task("arithmetic", count=20, seed=2).fingerprint

    def test_a_larger_count_begins_with_the_smaller(self):
        small = [example.question for example in task("arithmetic", count=5, seed=9).examples]
        assert [example.question for example in task("arithmetic", count=9, seed=9).examples][:5] == small

    def test_the_papers_other_range(self):
        for example in task("arithmetic", count=30, low=0, high=30).examples:
            assert all(0 <= number <= 30 for number in example.meta["numbers"])

    def test_demonstrations_are_right_and_in_no_split(self):
        demonstration = task("arithmetic").demonstrations()[0]
        assert demonstration.answer == value_of(demonstration.question) == 53
        questions = {example.question for example in task("arithmetic", count=2000, low=6, high=40).examples}
        assert demonstration.question not in questions

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ({"count": "0"}, "count is 0; it must be at least 1"),
            ({"count": "many"}, "count is 'many'; it must be a whole number"),
            ({"count": True}, "must be a whole number"),
            ({"low": 5, "high": 4}, "low is 5, above high"),
            ({"count": 60, "low": 1, "high": 2}, "too many for numbers from 1 to 2"),
            ({"sizes": 3}, "no option 'sizes'. Its options: count, high, low, seed"),
        ],
    )
    def test_bad_options_are_named(self, options, why):
        with pytest.raises(InputError, match=re.escape(why)):
            task("arithmetic", **options)

    def test_options_may_be_texts(self):
        assert len(task("arithmetic", count="7").examples) == 7


class TestScoring:
    @pytest.fixture
    def example(self):
        return task("arithmetic", count=1, seed=3).examples[0]

    def test_equal_values_are_right_however_written(self, example):
        arithmetic = task("arithmetic")
        for answer in (example.gold, float(example.gold), f"{example.gold:,}", f"{example.gold}.0"):
            assert arithmetic.score(answer, example).value == 1

    def test_a_wrong_answer_is_told_the_steps(self, example):
        score = task("arithmetic").score(example.gold + 1, example)
        assert (score.value, score.blank) == (0, False)
        assert f"= {example.gold}." in score.feedback

    @pytest.mark.parametrize("answer", [None, "no idea", True, float("nan")])
    def test_what_is_no_number_is_a_blank(self, example, answer):
        score = task("arithmetic").score(answer, example)
        assert (score.value, score.blank) == (0, True)

    def test_reads_the_answer_from_text(self, example):
        arithmetic = task("arithmetic")
        text = f"The products first. So the answer is {example.gold}."
        assert arithmetic.score(arithmetic.extract(text, example), example).value == 1

    def test_an_unknown_rule_is_an_error(self, example):
        with pytest.raises(InputError, match="no extraction rule 'first'"):
            task("arithmetic").extract("5", example, "first")


class TestFile:
    def test_reads_question_and_answer(self, tmp_path):
        path = tmp_path / "sums.jsonl"
        path.write_text(json.dumps({"id": "s1", "question": "2 + 2 * 2 + 2 - 2 * 2?", "answer": "4"}))
        example = task("arithmetic", path).examples[0]
        assert (example.id, example.gold) == ("s1", 4)

    def test_an_answer_that_is_no_number_names_the_line(self, tmp_path):
        path = tmp_path / "sums.jsonl"
        path.write_text(json.dumps({"question": "2 + 2?", "answer": "four"}))
        with pytest.raises(InputError, match=r"sums.jsonl, line 1, field answer: 'four' is not a number"):
            _ = task("arithmetic", path).examples
