"""Fixtures for strategies: what a prompt shows, models that answer every role, a cache of the test's own."""

from __future__ import annotations

import re

import dspy
import pytest

from townhall.signatures.demonstrations import Demonstration
from townhall.signatures.transcript import Persona

_FIELD = re.compile(r"\[\[ ## (\w+) ## \]\]\n(.*?)(?=\n\n\[\[ ## |\n\nRespond with a JSON object)", re.DOTALL)


def inputs_in(messages):
    """Return the input fields of a prompt's last message, by name."""
    return dict(_FIELD.findall(messages[-1][1]))


def outputs_in(messages):
    """Return the names of the output fields a prompt asks for, as one text: "reasoning,answer"."""
    outputs = messages[0][1].split("Outputs will be a JSON object with the following fields.")[1]
    return re.findall(r'^  "(\w+)":', outputs, re.MULTILINE)


@pytest.fixture
def shown():
    """Return the function from a prompt to its input fields."""
    return inputs_in


@pytest.fixture
def obliging():
    """Return `make(answer=..., **others)`: a script that fills every role's fields.

    Values may be functions of (inputs, seed).
    """

    def make(**given):
        defaults = {
            "reasoning": "because",
            "answer": "yes",
            "argument": "my argument",
            "critiques": [],
            "reflection": "a doubt",
            "feedback": "a remark",
            "summary": "in short",
            "reason": "a reason",
            "side": "first",
            "confidence": 50,
            "personas": lambda inputs, seed: [
                {"name": f"P{number}", "expertise": "e", "stance": "s"} for number in range(int(inputs["count"]))
            ],
            "choice": lambda inputs, seed: 1 if "candidates" in inputs else "debate",
        }
        values = {**defaults, **given}

        def script(messages, seed):
            inputs = inputs_in(messages)
            reply = {}
            for name in outputs_in(messages):
                value = values[name]
                reply[name] = value(inputs, seed) if callable(value) else value
            return reply

        return script

    return make


@pytest.fixture
def cache(tmp_path):
    """DSPy's cache in a folder of the test's own."""
    before = dspy.cache
    dspy.configure_cache(enable_disk_cache=True, enable_memory_cache=True, disk_cache_dir=str(tmp_path / "cache"))
    yield dspy.cache
    dspy.cache = before


@pytest.fixture
def worked():
    """A worked problem."""
    return Demonstration(
        question="What is 2 + 2 * 3?",
        reasoning="2 * 3 = 6, and 2 + 6 = 8.",
        answer="8",
        mistaken_reasoning="2 + 2 = 4, and 4 * 3 = 12.",
        mistaken_answer="12",
        correction="Multiplication comes before addition.",
        personas=[
            Persona(name="Ada", expertise="algebra"),
            Persona(name="Ben", expertise="bookkeeping"),
            Persona(name="Cy", expertise="checking"),
        ],
    )
