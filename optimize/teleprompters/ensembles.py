"""Ensembles: several compiled programs instead of one."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from ...programs.base import Strategy
from ..ensemble import Ensemble
from .base import TELEPROMPTERS, Sizes, Teleprompter, Work, use_demos
from .bootstrap import BootstrapSizes, bootstrapped, fresh, note_empty


class EnsembleSizes(BootstrapSizes):
    """Sizes of `ensemble`; see also `BootstrapSizes`.

    Attributes:
        members: how many programs; each question is debated by all of them.
    """

    members: int = Field(default=3, ge=2, le=15)
    dev: int | None = Field(default=None, ge=1)


@TELEPROMPTERS.register("ensemble")
class EnsembleOfBootstraps(Teleprompter):
    """Programs with demonstrations bootstrapped from the training examples in different orders, and a vote."""

    name: ClassVar[str] = "ensemble"
    summary: ClassVar[str] = "several bootstrapped programs and a vote over their answers; costs each of their calls"
    Sizes: ClassVar[type[Sizes]] = EnsembleSizes
    least_train: ClassVar[int] = 2

    def most_debates(self, sizes: Any, *, roles: int, train: int, dev: int) -> int:
        """See `Teleprompter.most_debates`."""
        return int(train * sizes.rounds * sizes.members)

    def run(self, work: Work) -> Strategy:
        """See `Teleprompter.run`."""
        sizes = work.sizes
        members = []
        for number in range(sizes.members):
            shuffle = None if number == 0 else number
            demos = bootstrapped(work, demos=sizes.demos, worked=sizes.worked, rounds=sizes.rounds, shuffle=shuffle)
            if number == 0:
                note_empty(work, demos)
            member = use_demos(fresh(work.program), demos)
            member.config = member.config.model_copy(update={"seed": member.config.seed + number})
            members.append(member)
        return Ensemble(members)
