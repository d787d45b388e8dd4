"""Which texts are nearest to a question: TF-IDF over words and letter trigrams, without a model or a network."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"\w+")


def terms(text: str) -> Counter[str]:
    """Return a text's words, and the letter trigrams inside them, with their counts."""
    found: Counter[str] = Counter()
    for word in _WORD.findall(text.casefold()):
        found[word] += 1
        padded = f"^{word}$"
        found.update(padded[start : start + 3] for start in range(len(padded) - 2))
    return found


def nearest(query: str, texts: Sequence[str], count: int) -> list[int]:
    """Return the indices of the texts most similar to a query, nearest first; the earlier of equals first.

    The similarity is the cosine of TF-IDF vectors; terms that occur in fewer of the texts weigh more.
    """
    counted = [terms(text) for text in texts]
    spread = Counter(term for found in counted for term in found)
    weight = {term: 1 + math.log((1 + len(texts)) / (1 + number)) for term, number in spread.items()}
    wanted = {term: number * weight.get(term, 0.0) for term, number in terms(query).items()}

    def similarity(found: Counter[str]) -> float:
        length = math.sqrt(sum((number * weight[term]) ** 2 for term, number in found.items()))
        product = sum(wanted.get(term, 0.0) * number * weight[term] for term, number in found.items())
        return product / length if length else 0.0

    scores = [similarity(found) for found in counted]
    return sorted(range(len(texts)), key=lambda index: (-round(scores[index], 12), index))[:count]
