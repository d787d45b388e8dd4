"""townhall: debates between personas and models as DSPy programs, scored, optimised and exported.

Names are loaded on first use, so that `import townhall` stays light (DSPy alone takes half a second).
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

#: Public name -> module that defines it.
_HOMES: dict[str, str] = {
    "lm": "models.resolve",
    "TownHall": "programs.town_hall",
    "TownHallConfig": "programs.town_hall",
    "TownHallPrompt": "programs.town_hall_prompt",
    "Society": "programs.society",
    "DebateOnly": "programs.debate_only",
    "ReflectOrDebate": "programs.reflect_or_debate",
    "Single": "programs.single",
    "ChainOfThought": "programs.chain_of_thought",
    "SelfReflection": "programs.self_reflection",
    "Majority": "programs.majority",
    "task": "tasks.access",
    "program": "evaluation.assembly",
    "evaluate": "evaluation.run",
    "compare": "evaluation.comparison",
    "run_grid": "evaluation.grid",
    "reproduce": "evaluation.reproduction",
    "compile": "optimize.compile",
    "tune": "optimize.search",
    "export": "optimize.export",
    "load": "optimize.artifact",
    "TownhallError": "errors",
    "InputError": "errors",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
