"""Every test here has a cache folder, a DSPy cache and an environment without keys of its own."""

from __future__ import annotations

import dspy
import pytest


@pytest.fixture(autouse=True)
def own_caches(tmp_path, monkeypatch, request):
    if "weights" not in request.keywords:  # real weights stay where they are, and are fetched once
        monkeypatch.setenv("TOWNHALL_CACHE", str(tmp_path / "cache"))
    for variable in ("OPENAI_API_KEY", "TOWNHALL_MODELS", "OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    before = dspy.cache
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    yield
    dspy.cache = before


class Debate(dspy.Signature):
    """Answer the question."""

    question: str = dspy.InputField()
    persona: str = dspy.InputField()
    argument: str = dspy.OutputField()
    answer: int = dspy.OutputField()


@pytest.fixture
def debate():
    """A predictor with typed output fields, asked through the JSON adapter."""
    with dspy.context(adapter=dspy.JSONAdapter()):
        yield dspy.Predict(Debate)


@pytest.fixture
def fast_retries(monkeypatch):
    """Make DSPy's waits between retries short, and list how long they would have been."""
    from dspy.clients import execution

    waits = []
    delay = execution._delay

    def short(error, attempt):
        waits.append(delay(error, attempt))
        return min(0.01, waits[-1])

    monkeypatch.setattr(execution, "_delay", short)
    return waits
