import json

import pytest

from townhall.errors import InputError
from townhall.tasks.access import task
from townhall.tasks.mmlu import CATEGORIES, SUBJECTS

ROW = {
    "subject": "astronomy",
    "question": "Which planet is closest to the Sun?",
    "choices": ["Venus", "Mercury", "Mars", "Earth"],
    "answer": "B",
}


def written(tmp_path, *rows):
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_there_are_57_subjects_in_four_categories():
    sizes = {category: list(SUBJECTS.values()).count(category) for category in CATEGORIES}
    assert sizes == {"STEM": 18, "humanities": 13, "other": 14, "social sciences": 12}


def test_a_question_shows_its_choices(tmp_path):
    example = task("mmlu", written(tmp_path, ROW)).examples[0]
    assert "B) Mercury" in example.question
    assert example.meta["category"] == "STEM"
    assert example.gold == "B"


@pytest.mark.parametrize("answer", ["B", "b", 1, "1"])
def test_the_answer_is_a_letter_or_an_index_from_zero(answer):
    assert task("mmlu").example({**ROW, "answer": answer}, "here").gold == "B"


@pytest.mark.parametrize("spelling", ["high_school_physics", "High School Physics", "high-school physics"])
def test_subjects_are_found_in_other_spellings(spelling):
    assert task("mmlu", subject=spelling).subjects == ("high_school_physics",)


class TestFilters:
    def test_by_subject(self, tmp_path):
        path = written(tmp_path, ROW, {**ROW, "subject": "virology", "question": "What is a virus?"})
        assert [e.meta["subject"] for e in task("mmlu", path, subject="virology").examples] == ["virology"]

    def test_by_category(self, tmp_path):
        path = written(tmp_path, ROW, {**ROW, "subject": "virology", "question": "What is a virus?"})
        assert [e.meta["subject"] for e in task("mmlu", path, category="stem").examples] == ["astronomy"]

    def test_several_subjects(self):
        assert task("mmlu", subject="anatomy, virology").subjects == ("anatomy", "virology")

    def test_an_unknown_subject_gets_the_nearest_name(self):
        with pytest.raises(InputError, match=r"option subject: unknown 'astronmy'. Did you mean 'astronomy'?"):
            task("mmlu", subject="astronmy")

    def test_an_unknown_category_lists_all(self):
        with pytest.raises(InputError, match=r"unknown 'science'.*Known: STEM, humanities, other, social sciences"):
            task("mmlu", category="science")

    def test_a_subject_outside_the_category_is_an_error(self):
        with pytest.raises(InputError, match="no subject is in both anatomy and STEM"):
            task("mmlu", subject="anatomy", category="STEM")

    def test_data_without_the_subject_says_so(self, tmp_path):
        with pytest.raises(InputError, match=r"questions.jsonl: no question on virology"):
            _ = task("mmlu", written(tmp_path, ROW), subject="virology").examples


class TestBadRows:
    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"subject": "alchemy"}, "line 4, field subject: unknown 'alchemy'"),
            ({"choices": ["a", "b", "c"]}, "line 4, field choices: must be a list of 4 texts"),
            ({"choices": "Venus"}, "line 4, field choices"),
            ({"answer": "E"}, "line 4, field answer: 'E' is neither a letter from A to D nor an index from 0 to 3"),
            ({"answer": 4}, "line 4, field answer: '4'"),
            ({"question": None}, "line 4: the field 'question' is missing"),
        ],
    )
    def test_are_named_by_line_and_field(self, change, why):
        with pytest.raises(InputError, match=why):
            task("mmlu").example({**ROW, **change}, "line 4")


class TestScoring:
    @pytest.fixture
    def mmlu(self, tmp_path):
        return task("mmlu", written(tmp_path, ROW))

    @pytest.mark.parametrize("answer", ["B", "b", "(B)", "Mercury", "mercury"])
    def test_the_right_choice(self, mmlu, answer):
        assert mmlu.score(answer, mmlu.examples[0]).value == 1

    def test_a_wrong_choice_is_told_the_right_one(self, mmlu):
        score = mmlu.score("A", mmlu.examples[0])
        assert (score.value, score.blank) == (0, False)
        assert "B: Mercury" in score.feedback

    @pytest.mark.parametrize("answer", [None, "", "E", "I do not know"])
    def test_no_choice_is_a_blank(self, mmlu, answer):
        score = mmlu.score(answer, mmlu.examples[0])
        assert (score.value, score.blank) == (0, True)

    @pytest.mark.parametrize("text", ["The answer is (B).", "Answer: B", "So it is Mercury.\n\nAnswer: B) Mercury"])
    def test_reads_the_letter_from_text(self, mmlu, text):
        assert mmlu.extract(text, mmlu.examples[0]) == "B"

    def test_demonstrations_answer_with_letters(self, mmlu):
        assert [demonstration.answer for demonstration in mmlu.demonstrations()] == ["C", "A"]


def test_shared_file_has_seven_questions_of_each_subject(shared):
    examples = task("mmlu", shared / "data/mmlu/mmlu_redux_399.jsonl").examples
    subjects = [example.meta["subject"] for example in examples]
    assert len(examples) == 399
    assert {subjects.count(subject) for subject in SUBJECTS} == {7}
