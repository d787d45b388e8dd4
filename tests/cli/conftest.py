"""Running commands in this process, with folders of their own."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from townhall.cli.main import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder, with a cache folder of its own and no key in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOWNHALL_CACHE", str(tmp_path / "cache"))
    for name in ("TOWNHALL_DEBUG", "TOWNHALL_MODELS", "COLUMNS", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def townhall(folder, capsys):
    """Return `townhall(*arguments) -> Outcome(code, out, err)`."""

    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return run


@pytest.fixture
def refused(townhall):
    """Return `refused(*arguments) -> text`: the command must end with exit code 2 and one line on standard error."""

    def run(*arguments):
        outcome = townhall(*arguments)
        assert outcome.code == 2, outcome
        assert outcome.out == ""
        assert outcome.err.startswith("townhall: error: ")
        assert outcome.err.count("\n") == 1
        assert "Traceback" not in outcome.err
        return outcome.err.strip()

    return run
