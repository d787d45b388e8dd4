"""The single door: every kind of name leads to a `dspy.LM`, and a wrong one to one clear line."""

from __future__ import annotations

import dspy
import pytest

from townhall.errors import InputError, MissingDependencyError
from townhall.models import weights
from townhall.models.resolve import (
    default_concurrency,
    describe,
    is_simulated,
    kind,
    lm,
    named_models,
    price,
)

MODELS = """\
weak:
  model: qwen
  api_base: http://127.0.0.1:8000
  temperature: 0.7
  max_tokens: 512
  prompt_price: 0.15
  completion_price: 0.6
  concurrency: 3
strong: {model: openai/gpt-4o, completion_price: 10}
fake: {model: "simulated/fake?accuracy=0.4", seed: 3}
"""


@pytest.fixture
def models(tmp_path):
    file = tmp_path / "models.yaml"
    file.write_text(MODELS, encoding="utf-8")
    return file


@pytest.fixture
def engine(monkeypatch):
    """The embedded models' engine counts as installed; no weights are fetched."""
    monkeypatch.setattr(weights, "require_engine", lambda: object())
    fetched = []
    monkeypatch.setattr(weights, "ensure", fetched.append)
    return fetched


def test_local_is_the_default_and_its_weights_are_fetched_once_asked_for(engine):
    model = lm()
    assert isinstance(model, dspy.LM)
    assert engine == ["qwen2.5-coder-1.5b"]
    assert describe(model) == {
        "name": "local",
        "model": "local/qwen2.5-coder-1.5b",
        "kind": "embedded",
        "simulated": False,
        "api_base": None,
        "temperature": 0.7,
        "max_tokens": 1024,
        "seed": None,
    }
    assert {"seed", "temperature", "response_format"} <= model.supported_params
    assert model.supports_response_schema
    assert (default_concurrency(model), price(model, 10, 10)) == (2, 0.0)
    lm("local/smollm2-135m", prepare=False)
    assert len(engine) == 1


def test_weights_of_ones_own_go_by_path(engine, tmp_path):
    file = tmp_path / "own.gguf"
    file.write_bytes(b"GGUF")
    model = lm(f"local/{file}", temperature=0, max_tokens=5)
    assert engine == []
    assert model.engine.dump_state() == {"name": None, "path": str(file)}
    assert (describe(model)["temperature"], describe(model)["max_tokens"]) == (0, 5)
    with pytest.raises(InputError, match=r"absent\.gguf: no such file"):
        lm("local/absent.gguf")


def test_without_the_engine_the_line_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "xllamacpp", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "townhall\[local\]"'):
        lm("local")


def test_provider_names_stay_dspys_own():
    model = lm("openai/gpt-4o", temperature=0.3)
    assert (model.model, model.kwargs["timeout"], model.engine) == ("openai/gpt-4o", 120.0, "auto")
    assert (kind(model), is_simulated(model)) == ("provider", False)
    assert describe(model)["name"] == "openai/gpt-4o"
    assert (default_concurrency(model), price(model, 10, 10)) == (8, None)
    assert lm("openai/gpt-4o", timeout=5).kwargs["timeout"] == 5


def test_with_an_api_base_any_server_is_reached():
    for name in ("openai/qwen", "qwen"):
        model = lm(name, api_base="http://127.0.0.1:8000/")
        assert model.engine.model == "qwen"
        assert describe(model)["model"] == "qwen"
        assert describe(model)["api_base"] == "http://127.0.0.1:8000/v1"
        assert (kind(model), default_concurrency(model), price(model, 1, 1)) == ("endpoint", 8, None)


def test_describe_shows_no_credentials_of_a_model_made_elsewhere():
    model = dspy.LM("openai/x", api_base="http://me:secret@h/v1?k=secret", api_key="sk-secret")
    described = describe(model)
    assert (described["kind"], described["api_base"]) == ("endpoint", "http://h/v1")
    assert "secret" not in str(described)


def test_names_of_the_models_file(models):
    weak = lm("weak", models_file=models)
    assert describe(weak) == {
        "name": "weak",
        "model": "qwen",
        "kind": "endpoint",
        "simulated": False,
        "api_base": "http://127.0.0.1:8000/v1",
        "temperature": 0.7,
        "max_tokens": 512,
        "seed": None,
    }
    # 2 million prompt tokens at 0.15 and half a million completion tokens at 0.60 dollars a million.
    assert price(weak, 2_000_000, 500_000) == pytest.approx(0.6)
    assert default_concurrency(weak) == 3
    strong = lm("strong", models_file=models)
    assert (strong.model, describe(strong)["name"], price(strong, 10**6, 10**6)) == ("openai/gpt-4o", "strong", 10.0)
    fake = lm("fake", models_file=models)
    assert (kind(fake), fake.engine.behaviour.accuracy, fake.kwargs["seed"]) == ("simulated", 0.4, 3)
    assert set(named_models(models)) == {"weak", "strong", "fake"}


def test_what_the_caller_says_goes_before_the_file(models):
    weak = lm("weak", models_file=models, temperature=0, max_tokens=7)
    assert (weak.kwargs["temperature"], weak.kwargs["max_tokens"]) == (0, 7)


def test_the_file_of_this_folder_is_read_without_being_named(models):
    assert describe(lm("weak"))["model"] == "qwen"


def test_prices_and_the_name_survive_a_copy(models):
    copied = lm("weak", models_file=models).copy(temperature=1)
    assert describe(copied)["name"] == "weak"
    assert price(copied, 10**6, 0) == pytest.approx(0.15)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("lokal", "Did you mean 'local'"),
        ("local/smollm", "Did you mean 'smollm2-135m'"),
        ("simulted", "Did you mean 'simulated'"),
        ("opnai/gpt-4o", "Did you mean 'openai/gpt-4o'"),
        ("weka", "Did you mean 'weak'"),
        ("wibble", "write PROVIDER/MODEL"),
    ],
)
def test_unknown_names_get_the_nearest_one(name, hint, models, engine):
    with pytest.raises(InputError, match=hint) as caught:
        lm(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"temperature": 3}, "temperature is 3"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"seed": "x"}, "seed is 'x'"),
        ({"api_key": "sk-secret"}, "keys come from the environment"),
        ({"api_key_env": "LAB_KEY", "api_base": "http://h"}, "LAB_KEY.*is not set"),
        ({"api_key_env": "LAB_KEY"}, "goes with an API base"),
        ({"api_base": "h:80"}, "is not an address"),
        ({"models_file": "absent.yaml"}, "absent.yaml: no such file"),
        ({"num_retries": -1}, "num_retries"),
    ],
)
def test_wrong_settings_are_refused_in_words(settings, problem):
    with pytest.raises(InputError, match=problem) as caught:
        lm("openai/x", **settings)
    assert "sk-secret" not in str(caught.value)


def test_built_in_models_take_no_api_base():
    with pytest.raises(InputError, match="takes no API base"):
        lm("simulated", api_base="http://h")


def test_a_program_is_saved_with_a_provider_model_and_loaded(tmp_path, debate):
    debate.lm = lm("openai/gpt-4o", temperature=0.3)
    debate.save(tmp_path / "program.json")
    fresh = dspy.Predict(debate.signature)
    fresh.load(tmp_path / "program.json")
    assert describe(fresh.lm) == describe(debate.lm)
