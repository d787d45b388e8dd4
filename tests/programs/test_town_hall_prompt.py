"""The single-prompt town hall."""

from __future__ import annotations

import dspy
import pytest

from townhall.errors import InputError
from townhall.programs.town_hall_prompt import TownHallPrompt

DEBATE = {
    "personas": [{"name": "Ada", "expertise": "algebra"}, {"name": "Ben"}],
    "debate": [
        {
            "statements": [
                {"speaker": "Ada", "statement": "6 + 2", "answer": "8"},
                {"speaker": "Ben", "statement": "4 * 3", "answer": "12"},
            ]
        }
    ],
    "ballots": [
        {"voter": "Ada", "reason": "precedence", "vote": "8"},
        {"voter": "Ben", "reason": "I was wrong", "vote": "8"},
    ],
    "answer": "8",
}


def test_one_call_tells_personas_rounds_and_ballots(scripted_lm, shown):
    lm, engine = scripted_lm(lambda messages, seed: DEBATE)
    with dspy.context(lm=lm):
        result = TownHallPrompt(personas=2, rounds=1, answer=int)(question="What is 2 + 2 * 3?")
    [(messages, _)] = engine.requests
    assert shown(messages) == {"question": "What is 2 + 2 * 3?", "participants": "2", "rounds": "1"}
    assert result.answer == 8
    assert [persona.name for persona in result.transcript.personas] == ["Ada", "Ben"]
    [turn] = result.transcript.turns
    assert turn.role == "hold"
    assert turn.said["ballots"] == DEBATE["ballots"]
    assert turn.said["debate"][0]["statements"][1]["answer"] == "12"


def test_a_debate_that_breaks_off_is_asked_for_again_then_blank(scripted_lm):
    lm, engine = scripted_lm(lambda messages, seed: '{"personas": [{"name": "Ada"}], "debate": [{"statements": [')
    with dspy.context(lm=lm):
        result = TownHallPrompt()(question="What is 2 + 2 * 3?")
    assert result.answer is None
    assert len(engine.requests) == 2
    assert result.transcript.personas == []


def test_a_demonstration_is_a_whole_debate_in_which_the_mistake_is_found(worked, scripted_lm):
    lm, engine = scripted_lm(lambda messages, seed: DEBATE)
    with dspy.context(lm=lm):
        TownHallPrompt(shots=1).demonstrate([worked, worked])(question="What is 1 + 1?")
    [(messages, _)] = engine.requests
    assert [role for role, _ in messages] == ["system", "user", "assistant", "user"]
    demonstration = messages[2][1]
    assert "To Ben: Multiplication comes before addition." in demonstration
    assert demonstration.count('"vote": "8"') == 3


@pytest.mark.parametrize("settings", [{"personas": 16}, {"rounds": 0}, {"shots": 3}])
def test_settings_out_of_bounds_are_errors(settings):
    [name] = settings
    with pytest.raises(InputError, match=rf"^{name} is {settings[name]}: "):
        TownHallPrompt(**settings)
