from __future__ import annotations

from typing import Literal

import click
import pytest
from pydantic import BaseModel, Field

from townhall.cli.settings import attribute_helps, options_of, value_of
from townhall.programs.base import STRATEGIES, StrategyConfig


class Thing(BaseModel):
    name: str


class Sample(StrategyConfig):
    """A config.

    Attributes:
        agents: how many
            there are.
        pace: how fast.
        listed: from a file.
    """

    agents: int = Field(default=3, ge=2, le=9)
    pace: float | None = Field(default=None, gt=0)
    style: Literal["plain", "fancy"] = "plain"
    rule: str = Field(default="majority", json_schema_extra={"registry": "decisions"})
    quick: bool = True
    weights: dict[str, float] = Field(default_factory=dict)
    words: list[str] = Field(default_factory=list)
    thing_list: list[Thing] = Field(default_factory=list)
    out: str = ""


@pytest.fixture
def parse(tmp_path):
    def run(*arguments):
        command = click.Command("x", params=options_of(Sample, {"--out"}))
        context = command.make_context("x", list(arguments))
        return {
            name.removeprefix("setting_"): value for name, value in context.params.items() if value not in (None, ())
        }

    return run


def test_settings_not_given_are_left_to_the_config(parse):
    assert parse() == {}


def test_values_have_the_types_of_the_config(parse):
    assert parse("--agents", "4", "--pace", "0.5", "--style", "fancy") == {"agents": 4, "pace": 0.5, "style": "fancy"}


def test_booleans_can_be_switched_both_ways(parse):
    assert parse("--quick") == {"quick": True}
    assert parse("--no-quick") == {"quick": False}


def test_mappings_are_repeated_key_value_pairs(parse):
    assert parse("--weights", "a=1", "--weights", "b=0.5") == {"weights": {"a": 1.0, "b": 0.5}}


def test_lists_of_words_are_separated_by_commas(parse):
    assert parse("--words", "a, b,c") == {"words": ["a", "b", "c"]}


def test_lists_of_objects_come_from_a_file(parse, tmp_path):
    (tmp_path / "things.yaml").write_text("- name: Ada\n  stance: doubts\n- Bob\n")
    assert parse("--things-file", str(tmp_path / "things.yaml")) == {
        "thing_list": [{"name": "Ada", "stance": "doubts"}, {"name": "Bob"}]
    }


def test_setting_named_like_an_option_of_the_command_gets_a_longer_name(parse):
    assert parse("--strategy-out", "x") == {"out": "x"}


def test_decision_rules_are_a_choice_of_the_registered_ones(parse):
    with pytest.raises(click.BadParameter, match="'absolute-majority', 'majority'"):
        parse("--rule", "loudest")


def test_seed_and_temperature_are_the_commands_own():
    names = {option for param in options_of(Sample, set()) for option in param.opts}
    assert not names & {"--seed", "--temperature"}


def test_help_states_default_and_range():
    [option] = [param for param in options_of(Sample, set()) if param.name == "setting_agents"]
    _, text = option.get_help_record(click.Context(click.Command("x")))
    assert text == "How many there are.  [default: 3; from 2 to 9]"


def test_attribute_helps_are_inherited_and_joined_over_lines():
    helps = attribute_helps(Sample)
    assert helps["agents"] == "how many there are."
    assert helps["seed"].startswith("another seed")


@pytest.mark.parametrize("name", STRATEGIES.names())
def test_every_setting_of_every_strategy_is_documented_and_becomes_an_option(name):
    config = STRATEGIES.get(name).Config
    made = {param.name.removeprefix("setting_"): param for param in options_of(config, set())}
    assert set(made) == set(config.model_fields) - {"seed", "temperature"}
    assert [setting for setting, param in made.items() if not param.help] == []


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (["--strategy", "a"], "a"),
        (["--strategy=a"], "a"),
        (["--strategy", "a", "--strategy", "b"], "b"),
        (["--", "--strategy", "a"], None),
        (["--strategy"], None),
        ([], None),
    ],
)
def test_value_of_an_option_among_raw_arguments(arguments, value):
    assert value_of(arguments, "--strategy") == value


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "must hold a list"),
        ("name: Ada", "must hold a list"),
        ("- [a]", "item 1: must be a name, or an object with the field 'name'"),
        ("- name: Ada\n- expertise: law", "item 2: must be a name, or an object with the field 'name'"),
        ("- {name: [", "neither JSON nor YAML"),
    ],
)
def test_bad_personas_file_is_one_clear_line(refused, folder, content, problem):
    (folder / "people.yaml").write_text(content)
    text = refused("debate", "x", "--lm", "simulated", "--personas-file", "people.yaml")
    assert text.startswith("townhall: error: people.yaml")
    assert problem in text


def test_missing_personas_file_is_named(refused):
    assert "people.yaml: cannot be read" in refused("debate", "x", "--personas-file", "people.yaml")
