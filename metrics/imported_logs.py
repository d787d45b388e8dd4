"""Reading the debates of other systems' logs as transcripts, so that their dynamics compare with ours."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..signatures.answers import canonical
from ..signatures.transcript import Candidate, Decision, Transcript, Turn
from .extraction import extract_choice


@dataclass(frozen=True)
class ImportedDebate:
    """A debate from another system's logs.

    Attributes:
        id: the log's id.
        transcript: what was said.
        group: what the log groups by (a subject); None where it does not.
        correct: whether the log says that the system's answer was right; None where it does not.
    """

    id: str
    transcript: Transcript
    group: str | None
    correct: bool | None


def read_dylan(path: str | Path, *, letters: str = "log") -> Iterator[ImportedDebate]:
    """Yield the debates of a DyLAN log on multiple-choice questions (arXiv 2310.02170), in order.

    A line is a JSON object with `id`, `responses[agent][round]` (null where an agent was not asked), `letters` of the
    same shape, and perhaps `subject` and `correct`. The logs hold neither the questions nor the right answers.

    An agent that was asked and gave no letter abstained in that round. The decision is the letter that most agents hold
    at last (of tied ones the lowest agent's): what DyLAN answers, though the logs do not say it.

    Args:
        path: a JSONL file.
        letters: "log" takes the log's own reading of the responses (the last "(X)"); "flexible" reads them anew with
            `extract_choice`.

    Raises:
        InputError: for a file, line or field that is not as above, or an unknown reading.
    """
    if letters not in ("log", "flexible"):
        raise InputError(f"unknown reading of letters '{letters}'. Known: log, flexible")
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{where}: not a JSON object: {error}") from None
            yield _dylan_debate(row, where, letters)


def _dylan_debate(row: Any, where: str, letters: str) -> ImportedDebate:
    if not isinstance(row, dict):
        raise InputError(f"{where}: a JSON {type(row).__name__}; it must be an object")
    responses = _table(row, "responses", where)
    read = _table(row, "letters", where)
    if [len(one) for one in responses] != [len(one) for one in read]:
        raise InputError(f"{where}, field letters: its shape differs from that of responses")
    turns = []
    for round_number in range(1, max((len(one) for one in responses), default=0) + 1):
        for agent, said in enumerate(responses):
            text = said[round_number - 1] if round_number <= len(said) else None
            if text is None:
                continue
            letter = read[agent][round_number - 1] if letters == "log" else extract_choice(text, 4)
            turns.append(
                Turn(
                    round=round_number,
                    agent=agent,
                    name=f"Agent {agent + 1}",
                    role="argue" if round_number == 1 else "rebut",
                    said={"text": text},
                    answer=letter,
                    bucket=None if letter is None else canonical(letter),
                    abstained=letter is None,
                    problem="no letter in the response" if letter is None else None,
                )
            )
    transcript = Transcript(strategy="dylan", turns=turns, models=[None] * len(responses), source="dylan")
    transcript.decision = _last_plurality(transcript)
    correct = row.get("correct")
    return ImportedDebate(
        id=str(row.get("id", where)),
        transcript=transcript,
        group=None if row.get("subject") is None else str(row["subject"]),
        correct=correct if isinstance(correct, bool) else None,
    )


def _table(row: dict[str, Any], name: str, where: str) -> list[list[str | None]]:
    value = row.get(name)
    if not isinstance(value, list) or not all(isinstance(one, list) for one in value) or not value:
        raise InputError(f"{where}, field {name}: it must be a list of lists, one an agent")
    if not all(cell is None or isinstance(cell, str) for one in value for cell in one):
        raise InputError(f"{where}, field {name}: a cell must be a text or null")
    return value


def _last_plurality(transcript: Transcript) -> Decision:
    held = [row[-1] for row in transcript.trajectory() if row]
    counts = Counter(bucket for bucket in held if bucket is not None)
    letters = {turn.bucket: turn.answer for turn in transcript.turns if turn.bucket is not None}
    candidates = [
        Candidate(
            number=number,
            answer=letters[bucket],
            bucket=bucket,
            supporters=[agent for agent, cell in enumerate(held) if cell == bucket],
            votes=count,
        )
        for number, (bucket, count) in enumerate(counts.items(), start=1)
    ]
    most = max(counts.values(), default=0)
    winners = [candidate for candidate in candidates if candidate.votes == most]
    winner = winners[0] if winners else None
    return Decision(
        rule="last plurality",
        answer=winner.answer if winner else None,
        bucket=winner.bucket if winner else None,
        candidates=candidates,
        abstentions=sum(cell is None for cell in held),
        unanimous=len(counts) == 1 and counts.total() == len(held),
        tie=len(winners) > 1,
        tie_break="the lowest agent's answer" if len(winners) > 1 else None,
    )
