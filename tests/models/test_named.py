"""`models.yaml`: read into models, and every mistake named with its line and field."""

from __future__ import annotations

import pytest

from townhall.errors import InputError
from townhall.models.named import NamedModel, find_models_file, read_models_file

GOOD = """\
weak:
  model: qwen
  api_base: http://127.0.0.1:8000/v1
  api_key_env: LAB_KEY
  temperature: 0.7
  max_tokens: 512
  prompt_price: 0.15
  completion_price: 0.6
strong: {model: openai/gpt-4o}
"""


@pytest.fixture
def write(tmp_path):
    def make(text, name="models.yaml"):
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        return file

    return make


def test_entries_are_read_by_name(write):
    entries = read_models_file(write(GOOD)).entries
    assert entries["weak"] == NamedModel(
        model="qwen",
        api_base="http://127.0.0.1:8000/v1",
        api_key_env="LAB_KEY",
        temperature=0.7,
        max_tokens=512,
        prompt_price=0.15,
        completion_price=0.6,
    )
    assert entries["strong"] == NamedModel(model="openai/gpt-4o")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a:\n  model: x\n  api_key: sk-secret\n", r"line 3: 'api_key' must not be in the file.*api_key_env"),
        (
            "a:\n  model: x\n  temprature: 1\n",
            r"line 3: unknown field 'temprature' of model 'a'\. Did you mean 'temper",
        ),
        ("a:\n  model: x\nb:\n  api_base: http://h\n", r"line 3: field 'model' of model 'b': Field required"),
        ("a:\n  model: x\n  temperature: hot\n", r"line 3: field 'temperature' of model 'a': .*valid number"),
        ("a:\n  model: x\n  prompt_price: -1\n", r"line 3: field 'prompt_price'.*greater than or equal to 0"),
        ("a:\n  model: x\n  api_key_env: 'sk-1 2'\n", r"line 3: field 'api_key_env'"),
        ("a: {model: x}\na: {model: y}\n", r"line 2: the model 'a' is named twice"),
        ("local: {model: x}\n", r"line 1: the name 'local' is taken"),
        ("simulated/a: {model: x}\n", r"line 1: the name 'simulated/a' is taken"),
        ("a: x\n", r"line 1: the model 'a' must have fields"),
        ("a: {model: x\n", r"line 2: not YAML"),
        ("- a\n", r"must map names to models"),
        ("", r"must map names to models"),
    ],
)
def test_mistakes_are_named_with_line_and_field(write, text, problem):
    with pytest.raises(InputError, match=problem) as caught:
        read_models_file(write(text))
    assert "models.yaml" in str(caught.value)
    assert "sk-secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(InputError, match=r"absent\.yaml: no such file"):
        find_models_file(tmp_path / "absent.yaml")


def test_the_file_is_the_named_one_then_the_environments_then_this_folders(write, monkeypatch, tmp_path):
    assert find_models_file() is None
    here, other, named = write(GOOD), write("b: {model: x}", "other.yaml"), write("c: {model: x}", "named.yaml")
    assert find_models_file().entries.keys() == {"weak", "strong"}
    assert find_models_file().path.resolve() == here
    monkeypatch.setenv("TOWNHALL_MODELS", str(other))
    assert find_models_file().entries.keys() == {"b"}
    assert find_models_file(named).entries.keys() == {"c"}
