"""Search spaces: what a config declares, how flags narrow it, what is refused."""

from __future__ import annotations

from typing import ClassVar, Literal

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from pydantic import Field, model_validator

from townhall.errors import InputError
from townhall.optimize.space import Dimension, declared, narrow, nearest_value, size, space_for
from townhall.programs.base import STRATEGIES, Strategy, StrategyConfig
from townhall.programs.decisions import DECISIONS


class Config(StrategyConfig):
    agents: int = Field(default=3, ge=2, le=9)
    rounds: int = Field(default=2, ge=1, le=4)
    style: Literal["plain", "listed", "experts"] = "plain"
    decision: str = Field(default="majority", json_schema_extra={"registry": "decisions"})
    summarise: bool = False
    shown: int | None = Field(default=None, ge=1, le=3)
    free: int = 7
    hidden: int = Field(default=1, ge=0, le=5, json_schema_extra={"search": False})

    @model_validator(mode="after")
    def _check(self):
        if self.style == "listed":
            raise ValueError("'listed' needs a list")
        return self


class Small(Strategy):
    name: ClassVar[str] = "small"
    summary: ClassVar[str] = ""
    Config: ClassVar[type[StrategyConfig]] = Config

    def _prepare(self):
        pass

    def script(self, question):
        raise NotImplementedError

    def max_calls(self):
        return 1


def test_a_config_declares_bounded_numbers_closed_choices_and_registries():
    found = declared(Small)
    assert list(found) == ["temperature", "agents", "rounds", "style", "decision", "summarise", "shown"]
    assert found["agents"] == Dimension("agents", "int", 2, 9, default=3)
    assert found["temperature"] == Dimension("temperature", "float", 0, 2, step=0.1)
    assert found["style"].choices == ("plain", "listed", "experts")
    assert found["decision"].choices == tuple(DECISIONS.names())
    assert found["summarise"].choices == (False, True)
    assert found["shown"] == Dimension("shown", "int", 1, 3)


def test_counts_are_searched_when_nothing_is_named():
    assert [str(dimension) for dimension in space_for(Small).values()] == ["agents in 2..9", "rounds in 1..4"]
    assert size(space_for(Small)) == 32


def test_what_is_named_is_searched_too_and_what_is_fixed_is_not():
    space = space_for(Small, ranges={"agents": "3:7:2"}, fixed={"rounds": 2, "free": 9}, search=["summarise"])
    assert {name: dimension.values() for name, dimension in space.items()} == {
        "agents": [3, 5, 7],
        "summarise": [False, True],
    }


def test_everything_can_be_searched_but_choices_that_the_strategy_refuses():
    space = space_for(Small, search="all")
    assert "hidden" not in space
    assert "free" not in space
    assert space["style"].choices == ("plain", "experts")
    # Named outright it stays, and the strategy says why it cannot be.
    assert space_for(Small, ranges={"style": "listed,plain"})["style"].choices == ("listed", "plain")


@pytest.mark.parametrize(
    ("given", "values"),
    [
        (range(2, 6), [2, 3, 4, 5]),
        (range(2, 9, 3), [2, 5, 8]),
        ((4, 5), [4, 5]),
        ("4:5", [4, 5]),
        ("4", [4]),
        (6, [6]),
    ],
)
def test_ranges_are_read_as_people_write_them(given, values):
    assert narrow(Dimension("agents", "int", 2, 9), given).values() == values


def test_choices_are_read_whatever_their_case():
    dimension = Dimension("summarise", "choice", choices=(False, True))
    assert narrow(dimension, "true").choices == (True,)
    assert narrow(Dimension("style", "choice", choices=("a", "b", "c")), ["c", "a"]).choices == ("c", "a")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"ranges": {"agents": "1:9"}}, "agents=1:9: outside what the strategy allows, 2..9"),
        ({"ranges": {"agents": "2:10"}}, "agents=2:10: outside what the strategy allows, 2..9"),
        ({"ranges": {"agents": "7:3"}}, "the lower bound is above the upper one"),
        ({"ranges": {"agents": "few"}}, "give bounds as LOW:HIGH or LOW:HIGH:STEP"),
        ({"ranges": {"agents": "2:9:0"}}, "give bounds as LOW:HIGH or LOW:HIGH:STEP"),
        ({"ranges": {"agents": "2:3.5"}}, "needs whole numbers"),
        ({"ranges": {"agents": range(5, 5)}}, "is empty"),
        ({"ranges": {"style": "plain,posh"}}, "style has no value 'posh'. Its values: plain, listed, experts"),
        ({"ranges": {"agent": "2:3"}}, "nothing to search named 'agent'. Did you mean 'agents'?"),
        ({"search": ["free"]}, "'free' of strategy 'small' cannot be searched; give it a value with --fix"),
        ({"fixed": {"agents": 3, "rounds": 1}}, "nothing is left to search: every dimension has a fixed value"),
        ({"fixed": {"nothing": 3}}, "nothing to search named 'nothing'"),
    ],
)
def test_bad_spaces_are_refused_with_what_would_be_right(arguments, problem):
    with pytest.raises(InputError) as refused:
        space_for(Small, **arguments)
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


def test_demonstrations_and_models_of_roles_are_dimensions():
    space = space_for(Small, demos=4, role_models={"vote": ["small", "large"]})
    assert space["demos"].values() == [0, 1, 2, 3, 4]
    assert space["model.vote"].choices == ("small", "large")


def test_dimensions_become_optunas_distributions():
    assert Dimension("a", "int", 2, 8, 2).distribution() == IntDistribution(2, 8, step=2)
    assert Dimension("b", "float", 0, 1, 0.1).distribution() == FloatDistribution(0, 1, step=0.1)
    assert Dimension("c", "choice", choices=("x", "y")).distribution() == CategoricalDistribution(["x", "y"])
    assert Dimension("b", "float", 0, 0.3, 0.1).values() == [0, 0.1, 0.2, 0.3]


def test_the_nearest_value_of_a_default_that_is_outside():
    assert nearest_value(Dimension("agents", "int", 2, 4), 7) == 4
    assert nearest_value(Dimension("agents", "int", 2, 8, 3), 4) == 5
    assert nearest_value(Dimension("style", "choice", choices=("a", "b")), "z") == "a"


def test_every_strategy_of_ours_has_a_space():
    for name, strategy in STRATEGIES:
        dimensions = declared(strategy)
        assert dimensions, name
        for dimension in space_for(strategy, search="all").values():
            assert len(dimension.values()) >= 1, (name, dimension)
