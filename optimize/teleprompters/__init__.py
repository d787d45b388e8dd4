"""Teleprompters: how a program's prompts are improved. One module a family, each registered by name.

`base` holds what they share; `TELEPROMPTERS` is in it.
"""
