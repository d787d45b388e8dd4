import json

import pytest

from townhall.errors import InputError
from townhall.tasks.access import task
from townhall.tasks.base import Scored

PEOPLE = {
    "Ada Example (engineer)": "- She was born in Oslo.\n- She built a bridge.\n\n* She liked maps.",
    "Bo Sample": ["1. He was born in Lima.", "He wrote a book."],
}


def agrees(fact, biography):
    """A judge that finds a fact in the biography word for word, and contradicts what it says of bridges."""
    return "yes" if fact in biography else "no" if "bridge" in fact else "uncertain"


@pytest.fixture
def biography(tmp_path):
    path = tmp_path / "people.json"
    path.write_text(json.dumps(PEOPLE))
    made = task("biography", path)
    made.judge = agrees
    return made


class TestShippedFacts:
    def test_ten_people_with_eight_to_ten_facts_each(self):
        examples = task("biography").examples
        assert len(examples) == 10
        assert all(8 <= len(example.gold) <= 10 for example in examples)

    def test_facts_are_whole_sentences_without_bullets(self):
        for example in task("biography").examples:
            for fact in example.gold:
                assert fact[0].isupper(), fact
                assert fact.endswith("."), fact

    def test_every_split_has_someone(self):
        biography = task("biography")
        assert sum(len(biography.split(name)) for name in ("train", "dev", "test")) == 10

    def test_the_source_has_a_name(self):
        assert "computer scientists" in task("biography").source

    def test_the_demonstration_is_of_someone_else(self):
        names = [example.meta["name"] for example in task("biography").examples]
        (demonstration,) = task("biography").demonstrations()
        assert not any(name in demonstration.question for name in names)


class TestFiles:
    def test_names_map_to_bullet_lines_or_lists(self, biography):
        first, second = biography.examples
        assert first.gold == ["She was born in Oslo.", "She built a bridge.", "She liked maps."]
        assert second.gold == ["He was born in Lima.", "He wrote a book."]
        assert "Bo Sample" in second.question

    def test_rows_of_name_and_facts_are_read(self, tmp_path):
        path = tmp_path / "people.jsonl"
        path.write_text(json.dumps({"name": "Bo Sample", "facts": ["He was born in Lima."]}))
        assert task("biography", path).examples[0].gold == ["He was born in Lima."]

    def test_a_fact_that_begins_with_a_number_keeps_it(self, tmp_path):
        path = tmp_path / "people.json"
        path.write_text(json.dumps({"Bo": ["1968 was the year of his degree."]}))
        assert task("biography", path).examples[0].gold == ["1968 was the year of his degree."]

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            ('{"Bo": []}', "people.json, person 'Bo', field facts: there is no fact in it"),
            ('{"Bo": "-\\n- "}', "people.json, person 'Bo', field facts: there is no fact in it"),
            ('{"Bo": 7}', "people.json, person 'Bo', field facts: must be a text with one fact a line, or a list"),
            ('{"Bo": ', "people.json: not JSON"),
            ("", "people.json: the file is empty"),
        ],
    )
    def test_bad_files_are_named(self, tmp_path, content, why):
        path = tmp_path / "people.json"
        path.write_text(content)
        with pytest.raises(InputError, match=why):
            _ = task("biography", path).examples


class TestScoring:
    def test_the_value_is_the_share_of_decided_facts(self, biography):
        score = biography.score("She was born in Oslo. Nothing else.", biography.examples[0])
        assert score.value == 0.5
        assert (score.parts["yes"], score.parts["no"], score.parts["uncertain"]) == (1, 1, 1)

    def test_without_a_judge_it_says_how_to_get_one(self):
        biography = task("biography")
        with pytest.raises(InputError, match="needs a judge: use --judge-lm MODEL"):
            biography.check_scoring()
        with pytest.raises(InputError, match="needs a judge"):
            biography.score("A life.", biography.examples[0])

    def test_with_a_judge_scoring_is_ready(self, biography):
        biography.check_scoring()

    @pytest.mark.parametrize("answer", [None, "", "  "])
    def test_a_blank_asks_no_judge(self, biography, answer):
        biography.judge = None
        biography.judge = lambda fact, text: pytest.fail("asked")
        score = biography.score(answer, biography.examples[0])
        assert (score.value, score.blank) == (0, True)

    def test_corpus_scores_pool_facts(self, biography):
        first, second = biography.examples
        scored = [
            Scored(first, biography.score("She was born in Oslo.", first)),  # 1 of 2 decided, 1 untold
            Scored(second, biography.score("He was a cook.", second)),  # nothing decided, 2 untold
            Scored(second, biography.score(None, second)),
        ]
        scores = biography.aggregate(scored)
        assert scores["accuracy"] == pytest.approx(0.5 / 3)
        assert scores["fact_accuracy"] == 0.5
        assert scores["uncertain"] == pytest.approx(3 / 5)
        assert scores["unreadable"] == 0
        assert scores["undecided"] == 0.5
        assert scores["blank"] == pytest.approx(1 / 3)

    def test_a_judge_that_answers_maybe_shows_in_unreadable(self, biography):
        biography.judge = lambda fact, text: "maybe"
        example = biography.examples[0]
        scores = biography.aggregate([Scored(example, biography.score("A life.", example))])
        assert (scores["accuracy"], scores["fact_accuracy"], scores["unreadable"]) == (0, None, 1)

    def test_the_whole_text_is_the_answer(self, biography):
        assert biography.extract(" - Born in Oslo.\n- Built a bridge. ", biography.examples[0]).startswith("- Born")
        assert biography.extract("  ", biography.examples[0]) is None
