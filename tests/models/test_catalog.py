"""What `list models` and `doctor` say."""

from __future__ import annotations

import pytest

from townhall.errors import InputError
from townhall.models import catalog
from townhall.models.catalog import diagnosis, installed_models


def by_name(models):
    return {model["name"]: model for model in models}


def test_embedded_models_say_whether_they_are_here_and_how_to_get_them(monkeypatch):
    monkeypatch.setattr(catalog, "has_engine", lambda: True)
    models = by_name(installed_models())
    default = models["local/qwen2.5-coder-1.5b"]
    assert (default["default"], default["ready"], default["kind"]) == (True, False, "embedded")
    assert "townhall models pull qwen2.5-coder-1.5b" in default["detail"]
    assert models["simulated"]["ready"]
    monkeypatch.setattr(catalog, "has_engine", lambda: False)
    assert 'pip install "townhall[local]"' in by_name(installed_models())["local/smollm2-135m"]["detail"]


def test_named_models_say_which_key_is_missing_and_never_what_it_is(tmp_path, monkeypatch):
    file = tmp_path / "models.yaml"
    file.write_text("weak: {model: qwen, api_base: http://h, api_key_env: LAB_KEY}", encoding="utf-8")
    weak = by_name(installed_models())["weak"]
    assert (weak["kind"], weak["ready"]) == ("named", False)
    assert "LAB_KEY is not set" in weak["detail"]
    monkeypatch.setenv("LAB_KEY", "sk-secret")
    assert by_name(installed_models())["weak"]["ready"]
    assert "sk-secret" not in str(installed_models())


def test_a_wrong_models_file_is_an_error(tmp_path):
    (tmp_path / "models.yaml").write_text("- x", encoding="utf-8")
    with pytest.raises(InputError, match=r"models\.yaml"):
        installed_models()


def test_the_diagnosis_tells_which_keys_are_set_only(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    found = diagnosis()
    assert found["keys"]["OPENAI_API_KEY"] is True
    assert found["cache"] == str(tmp_path / "cache")
    assert "sk-secret" not in str(found)
