"""Fixtures that all tests share."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from pathlib import Path

import dspy
import pytest
from dspy import lm15


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of private evaluation data; the test skips where it is absent."""
    named = os.environ.get("TOWNHALL_SHARED")
    candidates = [Path(named)] if named else [Path(__file__).parents[2] / "shared", Path.cwd().parent / "shared"]
    for folder in candidates:
        if (folder / "data" / "README.md").exists():
            return folder
    pytest.skip("the private evaluation data is not here (set TOWNHALL_SHARED to its folder)")


class ScriptedEngine:
    """A DSPy engine whose replies a test writes: `script(messages, seed)` returns a dict (sent as JSON) or a text."""

    supports_response_schema = True
    supported_params = ("response_format", "seed", "temperature", "max_tokens")

    def __init__(self, script):
        self.script = script
        self.requests = []
        self._lock = threading.Lock()

    def complete(self, request):
        messages = [("system", request.system)] if isinstance(request.system, str) else []
        messages += [(message.role, message.text or "") for message in request.messages]
        with self._lock:
            self.requests.append((messages, request.config))
        reply = self.script(messages, request.config.seed)
        text = reply if isinstance(reply, str) else json.dumps(reply)
        return lm15.Response(
            id=None,
            model="scripted",
            message=lm15.Message.assistant([lm15.TextPart(text)]) if text else lm15.Message.assistant(""),
            finish_reason="stop",
            usage=lm15.Usage(input_tokens=100, output_tokens=10, total_tokens=110),
        )

    def dump_state(self):
        return {}


class AsyncScriptedEngine:
    """The asynchronous twin."""

    def __init__(self, engine):
        self.engine = engine

    async def complete(self, request):
        return await asyncio.to_thread(self.engine.complete, request)


def role_of(messages):
    """Return which role a prompt belongs to, by the output fields its system message describes."""
    system = messages[0][1]
    outputs = system.split("Outputs will be a JSON object with the following fields.")[1]
    fields = re.findall(r'^  "(\w+)":', outputs, re.MULTILINE)
    return ",".join(fields)


@pytest.fixture
def scripted_lm():
    """Return `make(script, **lm_settings) -> (lm, engine)` for a model whose replies the test writes."""

    def make(script, **settings):
        engine = ScriptedEngine(script)
        settings = {"temperature": 0.7, "cache": False, **settings}
        lm = dspy.LM(
            settings.pop("model", "scripted"), engine=engine, async_engine=AsyncScriptedEngine(engine), **settings
        )
        return lm, engine

    return make


@pytest.fixture
def roles():
    """Return the function that names a prompt's role by its output fields."""
    return role_of
