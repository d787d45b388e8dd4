"""What a judge of biographies reads and answers."""

from __future__ import annotations

from typing import Literal

import dspy

Verdict = Literal["yes", "no", "uncertain"]


class JudgeFact(dspy.Signature):
    """Decide whether a biography agrees with one known fact about the same person.

    Compare names, places and dates exactly. Answer "yes" when the biography states the fact or something that implies
    it, "no" when the biography contradicts the fact, and "uncertain" when it says nothing about it.
    """

    biography: str = dspy.InputField(desc="the text to be checked")
    fact: str = dspy.InputField(desc="a true statement about the person")
    verdict: Verdict = dspy.OutputField(desc="yes, no or uncertain")
