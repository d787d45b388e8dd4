import json
from fractions import Fraction

import pytest

from townhall.errors import InputError
from townhall.tasks.access import task


@pytest.fixture
def problems(tmp_path):
    rows = [
        {"question": "Ann has 2 boxes of 3 pens. How many pens?", "answer": "2 * 3 = <<2*3=6>>6 pens.\n#### 6"},
        {"question": "A house costs twice $1,250. How much?", "answer": "It is 2500.\n#### 2,500"},
        {"question": "It is 4 degrees and falls by 9. What then?", "answer": "4 - 9 = -5\n#### -5"},
        {"question": "Half a pie is shared by two. What share has each?", "answer": "#### 1/4"},
    ]
    path = tmp_path / "problems.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return task("gsm8k", path)


def test_gold_is_the_number_after_the_marks(problems):
    assert [example.gold for example in problems.examples] == [6, 2500, -5, 0.25]


def test_wrong_answers_are_told_the_solution_without_calculator_marks(problems):
    score = problems.score(5, problems.examples[0])
    assert "2 * 3 = 6 pens." in score.feedback
    assert "<<" not in score.feedback
    assert "####" not in score.feedback


@pytest.mark.parametrize(
    ("index", "answer", "right"),
    [
        (0, 6, True),
        (0, 6.0, True),
        (0, "$6.00", True),
        (0, "6 pens", False),
        (1, "2,500", True),
        (1, 2500.0, True),
        (2, "−5", True),
        (2, 5, False),
        (3, Fraction(1, 4), True),
        (3, 0.25, True),
        (3, "1/4", True),
        (3, 0.2501, False),
    ],
)
def test_values_are_compared_exactly(problems, index, answer, right):
    assert problems.score(answer, problems.examples[index]).value == right


def test_a_third_is_right_as_fraction_and_as_its_record(tmp_path):
    path = tmp_path / "third.jsonl"
    path.write_text(json.dumps({"question": "What is 1 of 3?", "answer": "#### 1/3"}))
    third = task("gsm8k", path)
    example = third.examples[0]
    assert third.score(Fraction(1, 3), example).value == 1
    assert third.score(1 / 3, example).value == 1
    assert third.score(0.333, example).value == 0


def test_rows_of_outputs_hold_their_own_gold():
    row = {"idx": 12, "gold": "1,013", "output": "...", "model": "some-model"}
    example = task("gsm8k").example(row, "outputs.jsonl, line 1")
    assert (example.id, example.gold, example.meta["model"]) == ("12", 1013, "some-model")


def test_example_solutions_name_their_gold_in_another_way():
    row = {"question": "How many?", "ground_truth": "3 and 4 are 7.\nA: 7"}
    assert task("gsm8k").example(row, "here").gold == 7


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"question": "How many?"}, "the field 'answer' is missing"),
        ({"answer": "#### 4"}, "the field 'question' is missing"),
        ({"question": "How many?", "answer": "no mark here"}, "field answer: 'no mark here' is not a number"),
        ({"question": " ", "answer": "#### 4"}, "the field 'question' is empty"),
    ],
)
def test_bad_rows_are_named(row, why):
    with pytest.raises(InputError, match=f"data.jsonl, line 9.*{why}"):
        task("gsm8k").example(row, "data.jsonl, line 9")


def test_demonstrations_give_the_right_numbers():
    florist, reader = task("gsm8k").demonstrations()
    assert florist.answer == (15 * 12 - 12) // 6 * 9
    assert reader.answer == 24 + 36 + 12
    assert florist.mistaken_answer != florist.answer


class TestSharedData:
    def test_the_whole_test_split_loads(self, shared):
        examples = task("gsm8k", shared / "data/gsm8k/test.jsonl").examples
        assert len(examples) == 1319
        assert sum(example.gold >= 1000 for example in examples) > 14
        assert [index for index, example in enumerate(examples) if example.gold < 0] == [489, 1113]

    def test_zeroeval_rule_gives_the_published_correctness_of_every_output(self, shared):
        gsm8k = task("gsm8k")
        with (shared / "data/gsm8k/zeroeval_outputs_13x100.jsonl").open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        assert len(rows) == 1300
        for row in rows:
            example = gsm8k.example(row, "outputs")
            score = gsm8k.score(gsm8k.extract(row["output"], example, "zeroeval"), example)
            assert bool(score.value) == row["correct"], (row["idx"], row["model"])


def test_records_of_the_zeroeval_rule_show_the_text_it_cuts_out(shared, tmp_path):
    import json

    from townhall.evaluation.scoring import score_outputs
    from townhall.tasks.access import task

    outputs = shared / "data" / "gsm8k" / "zeroeval_outputs_13x100.jsonl"
    score_outputs(task("gsm8k"), outputs, "zeroeval", by="model", records=tmp_path / "records.jsonl")
    rows = [json.loads(line) for line in outputs.read_text().splitlines()]
    records = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert [record["extracted"] for record in records] == [row["extracted"] for row in rows]
    assert [record["score"] == 1 for record in records] == [row["correct"] for row in rows]
