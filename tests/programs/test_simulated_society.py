"""A society whose behaviour is known: measured figures agree with exact enumeration within sampling error."""

from __future__ import annotations

import math
import random
import re
from collections import Counter, defaultdict
from itertools import product

import dspy
import pytest

from townhall.programs.society import Society

ANSWERS = ("right", "wrong 1", "wrong 2")
QUESTIONS = 250


def majority_of(answers):
    """Return the answer that more agents hold than any other; None when there is none."""
    (first, most), *rest = Counter(answers).most_common()
    return None if rest and rest[0][1] == most else first


def first_draw(p):
    return {"right": p, "wrong 1": (1 - p) / 2, "wrong 2": (1 - p) / 2}


def next_states(state, c):
    """Yield (probability, state) of the next round: each agent adopts the majority's answer with probability c."""
    leader = majority_of(state)
    if leader is None:
        yield 1.0, state
        return
    for adopts in product((True, False), repeat=len(state)):
        probability = math.prod(c if adopt else 1 - c for adopt in adopts)
        yield probability, tuple(leader if adopt else own for adopt, own in zip(adopts, state, strict=True))


def decided(state):
    """Return the majority's answer; ties go to the answer proposed first."""
    counts = Counter(state)
    return max(counts, key=lambda answer: counts[answer])


def figures_of(path):
    """Return the figures of one debate, from the agents' answers by round."""
    last, before = path[-1], path[0]
    moves = Counter((a == "right", b == "right") for a, b in zip(before, last, strict=True))
    size = len(last)
    return {
        **{f"accuracy in round {number}": sum(a == "right" for a in state) / size for number, state in enumerate(path)},
        **{f"consensus in round {number}": len(set(state)) == 1 for number, state in enumerate(path)},
        "decided right": decided(last) == "right",
        "right to wrong": moves[True, False] / size,
        "wrong to right": moves[False, True] / size,
        "right majority lost": majority_of(before) == "right" and decided(last) != "right",
    }


def enumerate_exactly(p, c, agents, rounds):
    """Return the expectation of every figure, over all that can happen."""
    draw = first_draw(p)
    paths = {(state,): math.prod(draw[answer] for answer in state) for state in product(ANSWERS, repeat=agents)}
    for _ in range(rounds - 1):
        longer = defaultdict(float)
        for path, probability in paths.items():
            for chance, state in next_states(path[-1], c):
                longer[(*path, state)] += probability * chance
        paths = longer
    assert math.isclose(sum(paths.values()), 1)
    expected = defaultdict(float)
    for path, probability in paths.items():
        for name, value in figures_of(path).items():
            expected[name] += probability * value
    return expected


def member(p, c, shown):
    """Return the script of an agent that behaves so; chance comes from the question and the request's seed."""

    def script(messages, seed):
        inputs = shown(messages)
        chance = random.Random(f"{inputs['question']}/{seed}/{len(inputs)}")
        if "own_answer" not in inputs:
            draw = first_draw(p)
            return {"answer": chance.choices(list(draw), list(draw.values()))[0]}
        own = inputs["own_answer"].removeprefix("Answer: ")
        leader = majority_of([own, *re.findall(r"Answer: (.+)", inputs["other_answers"])])
        return {"answer": leader if leader and chance.random() < c else own}

    return script


@pytest.mark.parametrize(
    ("p", "c", "agents", "rounds"), [(0.6, 0.5, 3, 3), (0.45, 1.0, 3, 2), (0.7, 0.3, 4, 2), (0.6, 0.0, 2, 2)]
)
def test_measured_figures_agree_with_exact_enumeration(p, c, agents, rounds, scripted_lm, shown):
    lm, engine = scripted_lm(member(p, c, shown))
    program = Society(agents=agents, rounds=rounds, cot=False)
    sums = Counter()
    with dspy.context(lm=lm):
        for number in range(QUESTIONS):
            result = program(question=f"question {number}")
            trajectory = result.transcript.trajectory()
            path = [tuple(agent[column] for agent in trajectory) for column in range(rounds)]
            assert result.answer == decided(path[-1])
            assert result.decision.unanimous == (len(set(path[-1])) == 1)
            sums.update({name: float(value) for name, value in figures_of(path).items()})
    assert len(engine.requests) == QUESTIONS * agents * rounds
    expected = enumerate_exactly(p, c, agents, rounds)
    for name, value in expected.items():
        # Four standard errors of a share over questions; agents of one question are not independent.
        error = 4 * math.sqrt(value * (1 - value) / QUESTIONS)
        assert abs(sums[name] / QUESTIONS - value) <= error + 1e-9, name


def test_the_enumeration_itself_agrees_with_values_by_hand():
    # Two agents, one of which is right with probability .6: both right .36, and ties keep everyone's answer.
    expected = enumerate_exactly(0.6, 1.0, 2, 2)
    assert expected["accuracy in round 0"] == pytest.approx(0.6)
    assert expected["accuracy in round 1"] == pytest.approx(0.6)
    assert expected["consensus in round 1"] == pytest.approx(0.36 + 2 * 0.2**2)
    assert expected["right to wrong"] == 0
    # Three agents that always adopt: right exactly when at least two are, or when all differ and the first is right.
    expected = enumerate_exactly(0.6, 1.0, 3, 2)
    assert expected["decided right"] == pytest.approx(0.6**3 + 3 * 0.6**2 * 0.4 + 2 * 0.6 * 0.2**2)
