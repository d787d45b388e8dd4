"""Taking Markdown and LaTeX markup off a text that states an answer."""

from __future__ import annotations

import re

_TEXT_COMMAND = re.compile(
    r"\\(?:text|mathrm|textbf|mathbf|textrm|mbox|operatorname|textit|mathit|boldsymbol|emph|underline)"
    r"\s*\{([^{}]*)\}"
)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{((?:[^{}\\]|\\.|\{[^{}]*\})*)\}")
_THOUSANDS = re.compile(r"(?<=\d)\\,(?=\d{3}(?!\d))|(?<=\d)\{,\}(?=\d)|(?<=\d)\\ (?=\d{3}(?!\d))")
_SPACING = re.compile(
    r"\\[()\[\]]|\$\$|\\(?:quad|qquad|displaystyle|left|right|big|Big)(?![a-zA-Z])|\\[,;:! ]|~(?=\s|\\)"
)
_SIGNS = (
    (re.compile(r"\\(?:approx|simeq|sim)(?![a-zA-Z])"), " ≈ "),
    (re.compile(r"\\(?:times|cdot)(?![a-zA-Z])"), "×"),
    (re.compile(r"\\div(?![a-zA-Z])"), "÷"),
    (re.compile(r"\\(?:Rightarrow|implies|to|rightarrow|therefore)(?![a-zA-Z])"), " ⇒ "),
    (re.compile(r"\^\s*\{?\s*\\circ\s*\}?|\\degree|°"), " degrees "),
    (re.compile(r"`+|(?<!\w)__(?=\S)|(?<=\S)__(?!\w)|[“”\"]"), " "),
    (re.compile(r"(?<![\w*)])\*(?=[^\s*])([^*\n]*[^\s*])\*(?![\w*(])"), r"\1"),
    (re.compile(r"<<[^<>]*>>"), ""),  # calculator marks of grade-school solutions
)


def plain_text(text: str) -> str:
    """Return a text without Markdown and LaTeX markup; `**` around bold passages stays, for those who weigh it."""
    text = _TEXT_COMMAND.sub(r" \1 ", text)
    for _ in range(3):
        text = _BOX.sub(r" \1 ", text)
    text = _SPACING.sub(" ", _THOUSANDS.sub(",", text))
    for escaped in "$%#&":
        text = text.replace(f"\\{escaped}", escaped)
    for pattern, shown in _SIGNS:
        text = pattern.sub(shown, text)
    return text.strip()
