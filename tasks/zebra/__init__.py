"""ZebraLogic puzzles: the benchmark's vocabulary and clue texts, a solver, a generator, files."""
