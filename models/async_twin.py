"""What the asynchronous twins of our engines share: DSPy asks the one or the other, and both are one model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from dspy import lm15


class Engine(Protocol):
    """What a twin needs of its engine besides the replies."""

    def dump_state(self) -> dict[str, Any]:
        """Return what `load_state` needs."""
        ...

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> Self:
        """Return the engine of a saved program."""
        ...


E = TypeVar("E", bound=Engine)


class AsyncTwin(ABC, Generic[E]):
    """The asynchronous twin of an engine.

    Args:
        engine: whose replies it gives, without holding up the event loop.
    """

    #: The engine's class, for saved programs.
    engine_type: ClassVar[type[Any]]

    def __init__(self, engine: E) -> None:
        self.engine = engine

    @abstractmethod
    async def complete(self, request: lm15.Request) -> lm15.Response:
        """Return the engine's reply."""

    async def stream(self, request: lm15.Request) -> AsyncIterator[Any]:
        """Yield the reply's events, all at the end: replies are checked and formats negotiated as a whole."""
        for event in lm15.response_to_events(await self.complete(request)):
            yield event

    async def aclose(self) -> None:
        """Nothing, where the engine keeps nothing open for an event loop."""

    def dump_state(self) -> dict[str, Any]:
        """Return what `load_state` needs."""
        return self.engine.dump_state()

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> Self:
        """Return the twin of a saved program's engine."""
        return cls(cls.engine_type.load_state(state))

    def __deepcopy__(self, memo: Any) -> Self:
        return self
