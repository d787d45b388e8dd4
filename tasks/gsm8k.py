"""GSM8K: grade school word problems (Cobbe et al., arXiv 2110.14168)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from ..errors import InputError
from ..signatures.demonstrations import Demonstration
from ..signatures.transcript import Persona
from .base import TASKS, Example, HubSource, field_of, row_id
from .number import NumberTask, gold_number

#: The line that holds the gold answer: "#### 2,125" in the data set, "A: 2125" in its example model solutions.
_GOLD_LINE = re.compile(r"^\s*(?:####|A:)\s*(\S.*?)\s*$", re.MULTILINE)
_CALCULATOR_MARK = re.compile(r"<<[^<>]*>>")


@TASKS.register("gsm8k")
class GSM8K(NumberTask):
    """Word problems with one number as the answer.

    Rows have `question` and `answer` (a solution whose last line is `#### NUMBER`, or just the number). Rows of model
    outputs have `gold` instead (and may lack the question).
    """

    name: ClassVar[str] = "gsm8k"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "grade school word problems, the answer is a number"
    hub: ClassVar[HubSource | None] = HubSource("openai/gsm8k", "main", "test")
    answer_type: ClassVar[Any] = float

    def example(self, row: Mapping[str, Any], where: str) -> Example:
        """Build an example from `question` and `answer`, or from an output's `gold`."""
        if row.get("gold") is not None:
            gold, solution = gold_number(_last_line_answer(row["gold"]), where, "gold"), ""
        else:
            answer = field_of(row, "answer", where, "ground_truth")
            gold, solution = gold_number(_last_line_answer(answer), where, "answer"), str(answer)
        is_output = "gold" in row and "output" in row
        question = str(row.get("question") or "") if is_output else str(field_of(row, "question", where)).strip()
        if not question and not is_output:
            raise InputError(f"{where}: the field 'question' is empty")
        meta = {"solution": _plain(solution)}
        if row.get("model"):
            meta["model"] = str(row["model"])  # of a model's output
        return Example(id=row_id(row, question or str(gold)), question=question, gold=gold, meta=meta)

    def why(self, example: Example) -> str:
        """Return the data set's own solution."""
        solution = example.meta.get("solution", "")
        return f"A right solution: {solution}" if solution else ""

    def demonstrations(self) -> list[Demonstration]:
        """Return two worked problems."""
        return [
            Demonstration(
                question=(
                    "A florist ties bunches of 6 tulips. She starts the day with 15 dozen tulips, throws away 12 that "
                    "have wilted, and sells every bunch she ties for $9. How many dollars does she take in?"
                ),
                reasoning=(
                    "15 dozen are 15 * 12 = 180 tulips. 180 - 12 = 168 are left. They make 168 / 6 = 28 bunches. "
                    "28 * 9 = 252 dollars."
                ),
                answer=252,
                mistaken_reasoning="15 - 12 = 3 dozen are left, 36 tulips. They make 6 bunches. 6 * 9 = 54 dollars.",
                mistaken_answer=54,
                correction="Twelve tulips were thrown away, not twelve dozen: 180 - 12 = 168 tulips are left.",
                personas=[
                    Persona(name="Teacher", expertise="grade school mathematics", stance="solves one step at a time"),
                    Persona(
                        name="Unit Checker", expertise="units and quantities", stance="asks what each number counts"
                    ),
                    Persona(name="Sceptic", expertise="careful reading", stance="compares each step with the text"),
                ],
            ),
            Demonstration(
                question=(
                    "Omar reads 24 pages on Monday and half as many again on Tuesday as he did on Monday. On Wednesday "
                    "he reads a third of Tuesday's number. How many pages does he read in the three days?"
                ),
                reasoning=(
                    "Half as many again as 24 is 24 + 12 = 36 on Tuesday. A third of 36 is 12 on Wednesday. "
                    "24 + 36 + 12 = 72."
                ),
                answer=72,
                mistaken_reasoning="Half of 24 is 12 on Tuesday. A third of 12 is 4. 24 + 12 + 4 = 40.",
                mistaken_answer=40,
                correction='"Half as many again" adds a half to the whole: Tuesday is 24 + 12 = 36, not 12.',
                personas=[
                    Persona(name="Teacher", expertise="grade school mathematics", stance="solves one step at a time"),
                    Persona(name="Linguist", expertise="wording of problems", stance="looks for phrases that mislead"),
                    Persona(name="Estimator", expertise="rough estimates", stance="asks if the size is plausible"),
                ],
            ),
        ]


def _last_line_answer(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    found = _GOLD_LINE.findall(value)
    return found[-1] if found else value.strip()


def _plain(solution: str) -> str:
    """Return a solution without calculator marks and without its last, marked line."""
    return " ".join(_GOLD_LINE.sub("", _CALCULATOR_MARK.sub("", solution)).split())
