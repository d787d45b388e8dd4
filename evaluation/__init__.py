"""Running a program over a split: concurrency, run folders, resume, budgets, comparison."""
