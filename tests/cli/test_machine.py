"""`list`, `models`, `doctor`: what there is on this machine."""

from __future__ import annotations

import pytest

from townhall.programs.base import STRATEGIES
from townhall.programs.decisions import DECISIONS
from townhall.tasks.base import TASKS


@pytest.mark.parametrize(
    ("kind", "names"),
    [("tasks", TASKS.names()), ("strategies", STRATEGIES.names()), ("decisions", DECISIONS.names())],
)
def test_lists_are_complete(townhall, kind, names):
    assert [item["name"] for item in townhall("list", kind, "--json").json] == names
    shown = townhall("list", kind).out
    assert all(name in shown for name in names)


def test_models_are_listed_with_their_state(townhall):
    listed = {item["name"]: item for item in townhall("list", "models", "--json").json}
    assert listed["local/qwen2.5-coder-1.5b"]["installed"] is False  # the cache folder of the test is empty
    assert listed["simulated"]["ready"] is True
    assert townhall("models", "list", "--json").json == townhall("list", "models", "--json").json


def test_named_models_are_listed(townhall, folder):
    (folder / "models.yaml").write_text("weak:\n  model: simulated/weak\n")
    assert "weak" in [item["name"] for item in townhall("list", "models", "--json").json]


def test_path_of_weights_says_whether_they_are_there(townhall, folder):
    outcome = townhall("models", "path", "local/smollm2-135m")
    assert outcome.code == 1
    assert outcome.out.strip().startswith(str(folder / "cache"))
    assert "townhall models pull smollm2-135m" in outcome.err
    assert townhall("models", "path").out.strip() == str(folder / "cache" / "weights")


def test_pulling_an_unknown_model_is_refused(refused):
    assert "unknown embedded model 'smolm2-135m'. Did you mean 'smollm2-135m'?" in refused(
        "models", "pull", "smolm2-135m"
    )


def test_doctor_reports_versions_places_and_no_secret(townhall, folder, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    report = townhall("doctor", "--json")
    assert report.json["versions"]["dspy"]
    assert report.json["environment"]["OPENAI_API_KEY"] is True
    assert {place["name"]: place["path"] for place in report.json["places"]}["runs"] == str(folder / "runs")
    assert all(place["free_bytes"] > 0 for place in report.json["places"])
    shown = townhall("doctor")
    assert "OPENAI_API_KEY" in shown.out
    assert "secret" not in report.out + report.err + shown.out + shown.err


def test_doctor_asks_the_models_that_are_named(townhall):
    report = townhall("doctor", "--ask", "--lm", "simulated", "--json")
    assert report.code == 0
    [model] = report.json["models"]
    assert model["model"] == "simulated"
    assert model["answered"] is True


def test_doctor_says_why_a_model_does_not_answer(townhall):
    report = townhall("doctor", "--ask", "--lm", "openai/x", "--api-base", "http://127.0.0.1:9/v1", "--json")
    assert report.code == 1
    assert report.json["models"][0]["problem"]


def test_simulated_server_refuses_bad_faults(refused):
    assert "--fault is 'x=500'; it must be N=KIND" in refused("serve-simulated", "--fault", "x=500")
    assert "--port: 70000 is out of range; it must be from 0 to 65535" in refused("serve-simulated", "--port", "70000")
