"""Factual consistency of a text with reference facts, judged fact by fact (society of minds, section 3.2).

The paper asks a model of each reference fact whether a generated biography is consistent with it: yes, no or uncertain.
Its accuracy is yes / (yes + no), pooled over all facts of all people; uncertain ones are left out. Here a judgement is
read strictly: the whole reply is one of the three words (case, quotes and a final full stop aside). Anything else
("maybe", a sentence) is unreadable: it counts as uncertain, and is also counted as `unreadable`, so that a judge that
does not do its work shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from .score import Score

Verdict = Literal["yes", "no", "uncertain"]
#: (reference fact, biography) -> "yes", "no" or "uncertain".
Judge = Callable[[str, str], str]


def read_verdict(reply: object) -> Verdict | None:
    """Return the verdict that a judge's reply is; None when it is anything else."""
    word = str(reply).strip().strip("\"'`*.").strip().casefold()
    return word if word in ("yes", "no", "uncertain") else None  # type: ignore[return-value]  # narrowed by the test


def score_biography(biography: str, facts: Sequence[str], judge: Judge) -> Score:
    """Judge a biography by each of its reference facts.

    Args:
        biography: the text.
        facts: reference facts, at least one.
        judge: is asked once a fact, in their order.

    Returns:
        A score with the value yes / (yes + no), or 0 where no fact was decided, and the parts `yes`, `no`, `uncertain`
        (unreadable ones included), `unreadable`, `facts`, and `undecided`, 1 where no fact was decided.
    """
    contradicted: list[str] = []
    untold: list[str] = []
    unreadable = 0
    for fact in facts:
        verdict = read_verdict(judge(fact, biography))
        unreadable += verdict is None
        if verdict == "no":
            contradicted.append(fact)
        elif verdict != "yes":
            untold.append(fact)
    decided = len(facts) - len(untold)
    yes = decided - len(contradicted)
    feedback = [f"{yes} of {decided} decided facts hold."]
    if contradicted:
        feedback.append("Contradicted: " + " ".join(contradicted))
    if untold:
        feedback.append("Not told: " + " ".join(untold))
    return Score(
        yes / decided if decided else 0.0,
        parts={
            "yes": yes,
            "no": len(contradicted),
            "uncertain": len(untold),
            "unreadable": unreadable,
            "facts": len(facts),
            "undecided": int(not decided),
        },
        feedback=" ".join(feedback),
    )


def pooled(parts: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Compute the corpus scores from the parts of each biography; those without parts (blanks) have no facts in them.

    Returns:
        `fact_accuracy`, the paper's figure: yes / (yes + no) over all facts; and the shares of all facts that are
        `uncertain` and `unreadable`. None where nothing is in the denominator.
    """
    total = {name: sum(int(part.get(name) or 0) for part in parts) for name in ("yes", "no", "uncertain", "unreadable")}
    decided = total["yes"] + total["no"]
    facts = decided + total["uncertain"]
    return {
        "fact_accuracy": total["yes"] / decided if decided else None,
        "uncertain": total["uncertain"] / facts if facts else None,
        "unreadable": total["unreadable"] / facts if facts else None,
    }


def lm_judge(lm: Any) -> Judge:
    """Return a judge that asks a language model, one call a fact; a reply it cannot parse is an unreadable judgement.

    Args:
        lm: a DSPy language model. The judge's calls are kept out of the trace and the settings of whoever scores.
    """
    import dspy
    from dspy.utils.exceptions import AdapterParseError

    from ..signatures.factuality import JudgeFact

    predictor = dspy.Predict(JudgeFact)

    def judge(fact: str, biography: str) -> str:
        # Without an adapter of the caller's choice: JSON, which servers can hold small models to.
        adapter = dspy.settings.adapter or dspy.JSONAdapter()
        with dspy.context(lm=lm, trace=[], adapter=adapter):
            try:
                return str(predictor(biography=biography, fact=fact).verdict)
            except AdapterParseError:
                return ""

    return judge
