"""What is known of models on this machine, for `townhall list models` and `townhall doctor`."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from typing import Any

from . import weights
from .folders import cache_dir, weights_dir
from .resolve import named_models

#: Environment variables that hold providers' keys; only whether they are set is ever shown.
KEY_VARIABLES = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY")


def installed_models(models_file: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """Return the models that `--lm` takes by name here, as plain dictionaries.

    Each has `name`, `kind` ("embedded", "simulated", "named"), `ready` (whether it would answer now as far as can be
    told without asking it), `detail` in words, and for embedded ones also `title`, `license`, `bytes`, `path`,
    `default`.

    Raises:
        InputError: when `models.yaml` is wrong.
    """
    engine = has_engine()
    models: list[dict[str, Any]] = []
    for entry in weights.list_models():
        state = f"pulled ({entry['path']})" if entry["installed"] else f"townhall models pull {entry['name']}"
        detail = state if engine else 'needs: pip install "townhall[local]"'
        models.append(
            {
                **entry,
                "name": f"local/{entry['name']}",
                "kind": "embedded",
                "ready": engine and entry["installed"],
                "detail": f"{entry['summary']}; {weights.size(entry['bytes'])}; {detail}",
            }
        )
    models.append(
        {
            "name": "simulated",
            "kind": "simulated",
            "ready": True,
            "detail": "no model: labelled text for tests and dry runs; simulated?accuracy=0.7&latency=0.2",
        }
    )
    for name, named in named_models(models_file).items():
        ready = named.api_key_env is None or bool(os.environ.get(named.api_key_env))
        detail = named.model + (f" at {named.api_base}" if named.api_base else "")
        missing = "" if ready else f"; the environment variable {named.api_key_env} is not set"
        models.append({"name": name, "kind": "named", "ready": ready, "detail": detail + missing})
    return models


def has_engine() -> bool:
    """Return whether the embedded models' engine is installed."""
    return importlib.util.find_spec("xllamacpp") is not None


def diagnosis() -> dict[str, Any]:
    """Return what `townhall doctor` says of models: the engine, the folders, which keys are set (not what they are)."""
    engine = importlib.metadata.version("xllamacpp") if has_engine() else None
    return {
        "engine": engine,
        "cache": str(cache_dir()),
        "weights": str(weights_dir()),
        "models": installed_models(),
        "keys": {variable: bool(os.environ.get(variable)) for variable in KEY_VARIABLES},
    }
