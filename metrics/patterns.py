"""Building regular expressions from lists of words, so that long lists stay readable."""

from __future__ import annotations


def any_of(words: str) -> str:
    r"""Return a pattern for any of some alternatives, written as a list with commas; blanks stand for `\s+`.

    An alternative is itself a pattern, so it may end in "(?:s|ed)?".
    """
    alternatives = [r"\s+".join(word.split()) for word in words.split(",")]
    return "(?:" + "|".join(alternatives) + ")"
