"""Improving a debate: teleprompters for prompts, Optuna for its shape, export of both."""
