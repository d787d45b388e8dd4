"""Solving puzzles with OR-tools CP-SAT: all solutions, uniqueness, and clues that could go.

One Boolean per (value, house); each clue becomes, for either of its mentions, "here implies the other one in one of
these houses". The solver runs on one thread: results do not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import InputError, RunError
from .clues import Clue, Mention, Places, Puzzle

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


class _Board:
    """A CP-SAT model of the houses: every value is in one house, every house has one value of each attribute."""

    def __init__(self, puzzle: Puzzle) -> None:
        from ortools.sat.python import cp_model

        self.model = cp_model.CpModel()
        self.houses = range(1, puzzle.houses + 1)
        self.at = {mention: [self.model.new_bool_var("") for _ in self.houses] for mention in puzzle.mentions()}
        for name, values in puzzle.attributes:
            columns = [self.at[Mention(name, value)] for value in values]
            for column in columns:
                self.model.add_exactly_one(column)
            for house in zip(*columns, strict=True):
                self.model.add_exactly_one(house)

    def add(self, clue: Clue, guard: Any = None) -> None:
        """Add a clue; with a guard literal it only counts when the guard is true."""
        unless = [] if guard is None else [~guard]
        first = self.at[clue.first]
        if clue.second is None:
            assert clue.house is not None
            literal = first[clue.house - 1]
            self.model.add_bool_or([*unless, literal if clue.kind == "at" else ~literal])
            return
        second = self.at[clue.second]
        for house in self.houses:
            there = [second[other - 1] for other in self.houses if clue.allows(house, other)]
            self.model.add_bool_or([*unless, ~first[house - 1], *there])
            there = [first[other - 1] for other in self.houses if clue.allows(other, house)]
            self.model.add_bool_or([*unless, ~second[house - 1], *there])

    def places(self, value: Any) -> dict[Mention, int]:
        """Return where each value is, given the function that evaluates a literal."""
        return {
            mention: next(house for house in self.houses if value(literals[house - 1]))
            for mention, literals in self.at.items()
        }


def _solver() -> cp_model.CpSolver:
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = 1
    # Presolve, probing, symmetries and the linear relaxation cost more than the whole search at these sizes.
    parameters.cp_model_presolve = False
    parameters.cp_model_probing_level = 0
    parameters.symmetry_level = 0
    parameters.linearization_level = 0
    return solver


def solutions(puzzle: Puzzle, limit: int = 2) -> list[dict[Mention, int]]:
    """Return up to `limit` solutions of a puzzle; fewer mean that there are no more."""
    from ortools.sat.python import cp_model

    board = _Board(puzzle)
    for clue in puzzle.clues:
        board.add(clue)
    found: list[dict[Mention, int]] = []

    class Collector(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            found.append(board.places(self.boolean_value))
            if len(found) >= limit:
                self.stop_search()

    solver = _solver()
    solver.parameters.enumerate_all_solutions = True
    status = solver.solve(board.model, Collector())
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.INFEASIBLE):
        raise RunError(f"CP-SAT ended with {solver.status_name(status)}")
    for places in found:
        _check(puzzle, places)
    return found


def _check(puzzle: Puzzle, places: Places) -> None:
    # A solution is only believed once each clue has been looked up in it.
    for clue in puzzle.clues:
        if not clue.holds(places):
            raise RunError(f"CP-SAT returned a grid that breaks the clue '{clue.text()}'")


def unique_rows(puzzle: Puzzle) -> list[list[str]]:
    """Return the rows of a puzzle's only solution.

    Raises:
        InputError: when it has none or more than one.
    """
    found = solutions(puzzle, limit=2)
    if len(found) != 1:
        raise InputError(f"the puzzle has {'no' if not found else 'more than one'} solution; it must have exactly one")
    return puzzle.rows(found[0])


class Uniqueness:
    """Whether subsets of a list of clues, all true in one solution, leave that solution as the only one.

    Answers are exact and depend on the clues alone, not on the solver's version or on what was asked before. Every
    other grid that the solver comes across is kept: it settles later questions without another search.

    Args:
        puzzle: gives the houses and attributes; its own clues are not used.
        solution: the grid that all clues are true in.
    """

    def __init__(self, puzzle: Puzzle, solution: Places) -> None:
        self._board = _Board(puzzle)
        self._clues: list[Clue] = []
        self._guards: list[Any] = []
        self._others: list[dict[Mention, int]] = []
        # Indices of the clues that each of the other grids breaks.
        self._broken: list[set[int]] = []
        model = self._board.model
        model.add_bool_or([~self._board.at[mention][house - 1] for mention, house in solution.items()])

    def extend(self, clues: Sequence[Clue]) -> None:
        """Add clues; their indices go on from those there are."""
        for clue in clues:
            guard = self._board.model.new_bool_var("")
            self._board.add(clue, guard)
            for other, broken in zip(self._others, self._broken, strict=True):
                if not clue.holds(other):
                    broken.add(len(self._clues))
            self._clues.append(clue)
            self._guards.append(guard)

    def holds(self, active: Iterable[int]) -> bool:
        """Return whether the clues with these indices leave only one solution."""
        from ortools.sat.python import cp_model

        chosen = set(active)
        if any(chosen.isdisjoint(broken) for broken in self._broken):
            return False
        model = self._board.model
        model.clear_assumptions()
        model.add_assumptions([self._guards[index] for index in sorted(chosen)])
        solver = _solver()
        status = solver.solve(model)
        if status == cp_model.INFEASIBLE:
            return True
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            raise RunError(f"CP-SAT ended with {solver.status_name(status)}")
        other = self._board.places(solver.boolean_value)
        broken = {index for index, clue in enumerate(self._clues) if not clue.holds(other)}
        if not chosen.isdisjoint(broken):
            raise RunError("CP-SAT returned a grid that breaks a clue")
        self._others.append(other)
        self._broken.append(broken)
        return False


def superfluous(puzzle: Puzzle, solution: Places) -> list[int]:
    """Return the 1-based numbers of the clues that could each go without letting in a second solution."""
    check = Uniqueness(puzzle, solution)
    check.extend(puzzle.clues)
    every = set(range(len(puzzle.clues)))
    return [index + 1 for index in sorted(every) if check.holds(every - {index})]
