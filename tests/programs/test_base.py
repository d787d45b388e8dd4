"""What every strategy is built from: settings, models, questions with context."""

from __future__ import annotations

import dspy
import pytest
from pydantic import Field

from townhall.errors import InputError
from townhall.programs.base import StrategyConfig, answers_of, build_config, retuned, with_context
from townhall.programs.majority import Majority, MajorityConfig
from townhall.programs.town_hall import TownHall


class Config(StrategyConfig):
    size: int = Field(default=3, ge=1, le=9)


def models(*names):
    return [dspy.LM(f"openai/{name}", api_key="-") for name in names]


# -- settings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sise": 3}, r"^strategy 's' has no setting 'sise'. Did you mean 'size'\? Its settings: seed, size, temp"),
        ({"size": 0}, r"^size is 0: input should be greater than or equal to 1$"),
        ({"size": "many"}, r"^size is 'many': input should be a valid integer"),
        ({"seed": -1}, r"^seed is -1: "),
        ({"temperature": 3}, r"^temperature is 3: input should be less than or equal to 2$"),
    ],
)
def test_a_bad_setting_is_one_line_that_says_what_would_be_right(values, message):
    with pytest.raises(InputError, match=message):
        build_config(Config, values, "s")


def test_settings_are_given_as_a_config_or_one_by_one():
    config = MajorityConfig(samples=5)
    assert Majority(config).config == Majority(samples=5).config
    assert Majority(config, samples=7).config.samples == 7
    assert Majority(config, samples=7).config.cot == config.cot


def test_a_config_cannot_be_changed_by_mistake():
    with pytest.raises(ValueError, match="frozen"):
        Majority().config.samples = 7


def test_a_temperature_out_of_bounds_names_its_role():
    with pytest.raises(InputError, match=r"^temperatures.solve is 3.0; it must be from 0 to 2$"):
        Majority(temperatures={"solve": 3})


def test_other_settings_are_checked_as_well():
    with pytest.raises(InputError, match=r"^samples is 99: "):
        Majority().reconfigured(samples=99)


# -- models ------------------------------------------------------------------------------------------------------


def test_models_take_turns_and_the_first_one_judges():
    first, second = models("a", "b")
    program = TownHall(lms=[first, second])
    assert [program.lm_of(agent) for agent in range(3)] == [first, second, first]
    assert program.judge_lm is first
    assert TownHall(lms=[first], judge_lm=second).judge_lm is second
    assert (TownHall().lm_of(0), TownHall().judge_lm) == (None, None)
    assert program.with_models([second]).lms == (second,)


@pytest.mark.parametrize(
    ("names", "samples"),
    [("", [0, 1, 2, 3]), ("a", [0, 1, 2, 3]), ("ab", [0, 0, 1, 1]), ("aab", [0, 1, 0, 2]), ("abcd", [0, 0, 0, 0])],
)
def test_samples_are_numbered_within_a_model(names, samples):
    program = TownHall(lms=models(*names))
    assert [program.sample_of(agent) for agent in range(4)] == samples
    assert program.sample_of(None) == 0


def test_twins_of_a_model_are_told_apart_whatever_their_settings():
    [model] = models("a")
    assert Majority(lms=[model, model.copy(temperature=0.1)]).sample_of(1) == 1


# -- questions, answers, prompts ---------------------------------------------------------------------------------


def test_context_is_shown_below_the_question():
    assert with_context("Is it so?", {}) == "Is it so?"
    assert with_context("Is it so?", {"country": "Peru", "rule_of_thumb": None, "limit": 2.0}) == (
        "Is it so?\n\nCountry: Peru\n\nLimit: 2"
    )


def test_an_agent_that_abstains_keeps_its_answer_of_before():
    class Reply:
        def __init__(self, answer):
            self.answer = answer

    assert answers_of([Reply("a"), Reply(None)]) == ["a", None]
    assert answers_of([Reply("b"), Reply(None)], ["a", "c"]) == ["b", "c"]


def test_only_what_was_tuned_is_carried_over():
    plain, other = (
        dspy.Signature("question -> answer", "Plain."),
        dspy.Signature("question -> reason, answer", "Other."),
    )
    assert retuned(other, plain, plain).instructions == "Other."
    tuned = plain.with_instructions("Tuned.").with_updated_fields("question", desc="tuned")
    result = retuned(other, tuned, plain)
    assert result.instructions == "Tuned."
    assert list(result.fields) == ["question", "reason", "answer"]
    assert result.fields["question"].json_schema_extra["desc"] == "tuned"
    assert result.fields["answer"].json_schema_extra["desc"] == other.fields["answer"].json_schema_extra["desc"]
