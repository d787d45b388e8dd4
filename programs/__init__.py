"""Debate strategies as DSPy modules, and the decision rules they share."""
