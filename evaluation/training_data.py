"""Self-improvement data: what debates agreed on, with the reasoning that led there, as fine-tuning examples.

Multiagent Debate (Du et al., arXiv 2305.14325) proposes debate answers as new training data. A question is kept when
its debate agreed; the reasoning is that of the first agent that held the agreed answer from the opening on (its own
solution, written without the others'), else the last words of the first agent that holds it in the end.

The examples train a model to answer alone, as the strategies `chain-of-thought` and `single` ask it: the messages are
those that these send, the adapter's format included.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import InputError
from ..signatures.transcript import Transcript, Turn, states_answer
from ..tasks.base import TASKS
from .records import Record
from .run_folder import Run, load_run

Format = Literal["openai-chat", "dspy", "hf"]
Agreement = Literal["unanimous", "majority"]
FORMATS: tuple[Format, ...] = ("openai-chat", "dspy", "hf")
AGREEMENTS: tuple[Agreement, ...] = ("unanimous", "majority")
#: Output fields that hold an agent's solution.
_SOLUTIONS = ("reasoning", "argument")


@dataclass(frozen=True)
class TrainingData:
    """Fine-tuning examples made from a run.

    Attributes:
        rows: JSON data, one an example, in the run's order.
        about: how they were made: the run, the format, the agreement asked for, whether the gold was looked at, how
            many examples were left out and why, and from which splits they come.
    """

    rows: list[dict[str, Any]]
    about: dict[str, Any]

    def write(self, path: Path | str) -> Path:
        """Write the rows to a JSONL file, and `about` to a file beside it that ends in `.about.json`.

        Returns:
            the second file.

        Raises:
            InputError: when they cannot be written.
        """
        file = Path(path)
        beside = file.with_name(f"{file.name}.about.json")
        try:
            with file.open("w", encoding="utf-8") as lines:
                for row in self.rows:
                    lines.write(json.dumps(row, ensure_ascii=False) + "\n")
            beside.write_text(json.dumps(self.about, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{file}: cannot be written ({error.strerror or error})") from None
        return beside


def export_data(
    run: Run | Path | str,
    format: Format = "openai-chat",
    agreement: Agreement = "unanimous",
    only_right: bool = False,
) -> TrainingData:
    """Return a run's agreed answers as fine-tuning examples.

    Args:
        run: with transcripts of debates, or of several samples.
        format: "openai-chat": `{"messages": [system, user, assistant]}` (OpenAI and most others);
            "hf": `{"prompt": [...], "completion": [...]}`, conversational, as Hugging Face's TRL takes it;
            "dspy": `{"question", "reasoning", "answer"}`, for `dspy.Example(**row).with_inputs("question")`, such as a
            training set of `dspy.BootstrapFinetune`.
        agreement: "unanimous": every agent held the answer in the end, none abstained; "majority": more than half of
            the agents did.
        only_right: also leave out what is not right by the gold answer. The data then holds what the gold says, and is
            no longer made by the debates alone.

    Raises:
        InputError: for an unknown format or agreement, a run without transcripts, or one with a single agent.
    """
    for name, value, known in (("format", format, FORMATS), ("agreement", agreement, AGREEMENTS)):
        if value not in known:
            raise InputError(f"unknown {name} '{value}'. Known: {', '.join(known)}")
    run = run if isinstance(run, Run) else load_run(run)
    if run.records and not any(record.transcript for record in run.records):
        raise InputError(f"{run.folder}: its transcripts were not kept, so that no reasoning can be exported")
    if all(_agents(record.transcript) < 2 for record in run.records if record.transcript):
        raise InputError(f"{run.folder}: each question has one agent, so that nobody agreed; export a debate's run")
    left_out: Counter[str] = Counter()
    kept: list[tuple[Record, str]] = []
    for record in run.records:
        reasoning, why_not = _reasoning(record, agreement)
        if reasoning is not None and only_right and record.score < 1:
            reasoning, why_not = None, "wrong"
        if reasoning is None:
            left_out[why_not] += 1
        else:
            kept.append((record, reasoning))
    about = {
        "run": str(run.folder),
        "task": run.info.task,
        "strategy": run.info.strategy,
        "models": run.info.models,
        "simulated": run.info.simulated,
        "format": format,
        "agreement": agreement,
        "gold": "only answers that are right by the gold" if only_right else "not looked at",
        "examples": len(kept),
        "left_out": dict(left_out),
        "splits": dict(Counter(record.split or run.info.split for record, _ in kept)),
    }
    return TrainingData(list(_rows(run, kept, format)), about)


def _reasoning(record: Record, agreement: Agreement) -> tuple[str | None, str]:
    """Return the reasoning for the agreed answer, or None and why there is none."""
    transcript = record.transcript
    if record.error is not None or transcript is None:
        return None, "failed"
    decision = transcript.decision
    if decision is None or decision.bucket is None or record.answer is None:
        return None, "blank"
    if _agents(transcript) < 2:
        return None, "one agent"
    final = [buckets[-1] if buckets else None for buckets in transcript.trajectory()]
    holders = [agent for agent, bucket in enumerate(final) if bucket == decision.bucket]
    enough = len(holders) == len(final) if agreement == "unanimous" else 2 * len(holders) > len(final)
    if not enough:
        return None, "no agreement"
    for opening in (True, False):
        for agent in holders:
            turns = [turn for turn in transcript.of(agent=agent) if states_answer(turn)]
            turn = turns[0] if opening else turns[-1]
            if turn.bucket == decision.bucket and (solution := _solution(turn)):
                return solution, ""
    return None, "no reasoning"


def _agents(transcript: Transcript | None) -> int:
    return 0 if transcript is None else len(transcript.trajectory())


def _solution(turn: Turn) -> str:
    return next((str(turn.said[name]).strip() for name in _SOLUTIONS if turn.said.get(name)), "")


def _rows(run: Run, kept: list[tuple[Record, str]], format: Format) -> Iterator[dict[str, Any]]:
    if format == "dspy":
        for record, reasoning in kept:
            yield {"question": record.question, "reasoning": reasoning, "answer": record.answer}
        return
    from ..programs.adapter import DebateAdapter
    from ..signatures.town_hall import SolveStepByStep

    adapter = DebateAdapter()
    signature = SolveStepByStep
    if run.info.task in TASKS.names():
        signature = signature.with_updated_fields("answer", type_=TASKS.get(run.info.task).answer_type)
    for record, reasoning in kept:
        prompt = adapter.format(signature, [], {"question": record.question})
        said = adapter.format_assistant_message_content(signature, {"reasoning": reasoning, "answer": record.answer})
        reply = {"role": "assistant", "content": said}
        yield {"messages": [*prompt, reply]} if format == "openai-chat" else {"prompt": prompt, "completion": [reply]}
