import dspy
import pytest
from dspy.utils import DummyLM

from townhall.metrics.factuality import lm_judge, pooled, read_verdict, score_biography

FACTS = ["She was born in 1906.", "She taught at Vassar.", "She wrote a compiler.", "She liked tea."]


def judge_by(verdicts):
    """A judge with a fixed verdict for each fact."""
    return lambda fact, biography: verdicts[fact]


class TestVerdicts:
    @pytest.mark.parametrize("reply", ["yes", "Yes", "YES.", '"yes"', " yes\n", "**Yes**"])
    def test_reads_the_word_alone(self, reply):
        assert read_verdict(reply) == "yes"

    def test_reads_all_three(self):
        assert [read_verdict(word) for word in ("yes", "No", "uncertain.")] == ["yes", "no", "uncertain"]

    @pytest.mark.parametrize(
        "reply", ["maybe", "", None, "yes and no", "Yes, it says so", "y", "not uncertain", "true"]
    )
    def test_anything_else_is_unreadable(self, reply):
        assert read_verdict(reply) is None


class TestScore:
    def test_uncertain_facts_are_left_out(self):
        verdicts = dict(zip(FACTS, ["yes", "yes", "no", "uncertain"], strict=True))
        score = score_biography("Her life.", FACTS, judge_by(verdicts))
        assert score.value == pytest.approx(2 / 3)
        assert score.parts == {"yes": 2, "no": 1, "uncertain": 1, "unreadable": 0, "facts": 4, "undecided": 0}
        assert "Contradicted: She wrote a compiler." in score.feedback
        assert "Not told: She liked tea." in score.feedback

    def test_a_judge_that_says_maybe_counts_as_uncertain_and_is_counted(self):
        verdicts = dict(zip(FACTS, ["yes", "maybe", "no", "uncertain"], strict=True))
        score = score_biography("Her life.", FACTS, judge_by(verdicts))
        assert score.value == 0.5
        assert score.parts["uncertain"] == 2
        assert score.parts["unreadable"] == 1

    def test_no_decided_fact_is_zero_and_flagged(self):
        score = score_biography("Her life.", FACTS, lambda fact, biography: "uncertain")
        assert score.value == 0
        assert score.parts["undecided"] == 1

    def test_the_judge_sees_fact_and_biography(self):
        asked = []
        score_biography("Her life.", FACTS, lambda *seen: asked.append(seen) or "yes")
        assert asked == [(fact, "Her life.") for fact in FACTS]

    def test_pooled_figures_are_over_facts_not_people(self):
        # 1 of 1 decided for one person, 1 of 3 for another: 2 of 4 pooled, not (1 + 1/3) / 2.
        parts = [
            {"yes": 1, "no": 0, "uncertain": 3, "unreadable": 1},
            {"yes": 1, "no": 2, "uncertain": 1, "unreadable": 0},
            {},
        ]
        assert pooled(parts) == {"fact_accuracy": 0.5, "uncertain": 0.5, "unreadable": 0.125}

    def test_nothing_to_pool_is_not_available(self):
        assert pooled([]) == {"fact_accuracy": None, "uncertain": None, "unreadable": None}


class TestModelJudge:
    def judge(self, *verdicts):
        adapter = dspy.JSONAdapter()
        return lm_judge(DummyLM([{"verdict": verdict} for verdict in verdicts], adapter=adapter))

    def test_asks_the_model_for_each_fact(self):
        judge = self.judge("yes", "no", "uncertain", "yes")
        score = score_biography("Her life.", FACTS, judge)
        assert (score.parts["yes"], score.parts["no"], score.parts["uncertain"]) == (2, 1, 1)

    def test_a_model_that_says_maybe_is_unreadable(self):
        judge = self.judge("maybe", "maybe", "maybe")
        assert read_verdict(judge(FACTS[0], "Her life.")) is None

    def test_the_judges_calls_stay_out_of_the_callers_trace(self):
        judge = self.judge("yes")
        with dspy.context(trace=[]):
            judge(FACTS[0], "Her life.")
            assert dspy.settings.trace == []

    def test_the_prompt_holds_the_fact_and_the_biography(self):
        lm = DummyLM([{"verdict": "yes"}], adapter=dspy.JSONAdapter())
        lm_judge(lm)("She was born in 1906.", "A long life.")
        prompt = str(lm.history[-1]["messages"])
        assert "She was born in 1906." in prompt
        assert "A long life." in prompt
