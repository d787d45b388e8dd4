"""One real debate on a real model, the smallest there is: it answers near chance, and everything else must hold."""

from __future__ import annotations

import pytest

from townhall.evaluation.assembly import program
from townhall.evaluation.run import evaluate
from townhall.models import weights
from townhall.models.resolve import lm
from townhall.tasks.access import task


@pytest.mark.weights
@pytest.mark.timeout(600)
def test_a_town_hall_on_smollm2_is_held_recorded_and_not_held_again(tmp_path, monkeypatch):
    pytest.importorskip("xllamacpp", reason="the embedded model's engine is not installed (extra local)")
    try:
        file = weights.ensure("smollm2-135m")
    except Exception as error:
        pytest.skip(f"the weights cannot be fetched here: {error}")
    # Replies of this test go to a cache of its own; the weights stay where they are.
    monkeypatch.setenv("TOWNHALL_CACHE", str(tmp_path / "cache"))
    model = lm(f"local/{file}", temperature=0.7, max_tokens=48)
    sums = task("arithmetic", count=4)
    hall = program(sums, "town-hall", lms=[model], personas=2, rounds=2, persona_style="none", shots=0, ballot=False)
    run = evaluate(hall, sums, split="all", limit=1, out=tmp_path / "run")
    [record] = run.records
    assert record.error is None
    assert record.transcript is not None
    spoken = [turn.role for turn in record.transcript.turns]
    assert spoken == ["argue", "argue", "rebut", "rebut"]
    assert len(record.transcript.personas) == 2
    assert record.blank or isinstance(record.answer, int)
    assert 4 <= run.usage.calls <= 8  # four turns, each asked twice at most
    assert run.usage.completion_tokens > 0
    again = evaluate(hall, sums, split="all", limit=1, out=tmp_path / "again")
    assert again.usage.calls == 0
    assert again.usage.cached == run.usage.calls
    assert again.records[0].answer == record.answer
