"""What a run leaves behind: its configuration, one record an example, and a summary. All of it is plain JSON."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..metrics import statistics
from ..metrics.score import Score
from ..signatures.transcript import Transcript, Usage
from ..tasks.base import Example, Scored

FORMAT_VERSION = 1

Status = Literal["complete", "stopped", "interrupted", "failed"]
Outcome = Literal["right", "wrong", "blank", "failed"]


class Record(BaseModel):
    """What came out for one example.

    Attributes:
        index: place of the example in the run, from 0; records stand in the file in the order they finished.
        id: the example's id in its data source.
        fingerprint: its content's hash, see `tasks.base.Example`.
        split: the split it belongs to; None where the examples were given one by one.
        question: as the agents read it.
        gold: the right answer, as JSON data.
        meta: the example's fields to group by.
        answer: what the program answered, as JSON data; None for a blank or a failure.
        score: in [0, 1]; 0 for blanks and failures.
        blank: there was no readable answer. A failure is not a blank.
        parts: further figures by name, see `metrics.score.Score`.
        feedback: what was wrong and what would be right.
        answer_scores: score of each answer stated on the way, by voting bucket; empty where scoring calls a model.
        error: what failed, in one line; None when nothing did. The example is tried again when the run is resumed.
        error_kind: name of the exception's class.
        usage: all that was paid and served for this example, earlier attempts included.
        usage_by_role: likewise, by role.
        full_usage: what the last attempt takes whoever has no cache: what comparisons of cost go by.
        seconds: wall-clock time of the last attempt.
        transcript: all that was said; None where it was not kept or the program has none.
    """

    model_config = ConfigDict(extra="ignore")

    index: int
    id: str
    fingerprint: str
    split: str | None = None
    question: str = ""
    gold: Any = None
    meta: dict[str, Any] = Field(default_factory=dict)
    answer: Any = None
    score: float = 0.0
    blank: bool = False
    parts: dict[str, Any] = Field(default_factory=dict)
    feedback: str = ""
    answer_scores: dict[str, float] = Field(default_factory=dict)
    error: str | None = None
    error_kind: str | None = None
    usage: Usage = Field(default_factory=Usage)
    usage_by_role: dict[str, Usage] = Field(default_factory=dict)
    full_usage: Usage = Field(default_factory=Usage)
    seconds: float = 0.0
    transcript: Transcript | None = None

    @property
    def example(self) -> Example:
        """The example as the record holds it."""
        return Example(id=self.id, question=self.question, gold=self.gold, meta=self.meta)

    @property
    def outcome(self) -> Outcome:
        """What became of the example: "right" is a full score."""
        if self.error is not None:
            return "failed"
        if self.blank:
            return "blank"
        return "right" if self.score >= 1 else "wrong"

    def scored(self) -> Scored:
        """Return what corpus scores are computed from."""
        return Scored(self.example, Score(self.score, self.blank, dict(self.parts), self.feedback))


class Session(BaseModel):
    """One start of a run: a run that was resumed has several.

    Attributes:
        started: UTC time, ISO 8601.
        concurrency: model calls in flight at most.
        versions: of townhall, DSPy, Python and what else shapes the result.
        code_version: commit of townhall's own checkout ("+" when it has local changes); None for an installed package.
        seconds: how long it took; 0 while it runs and when it was killed.
    """

    started: str
    concurrency: int
    seconds: float = 0.0
    versions: dict[str, str] = Field(default_factory=dict)
    code_version: str | None = None


class RunInfo(BaseModel):
    """What a run is (`run.json`). It holds no key and no credential.

    Attributes:
        format_version: of the run folder.
        task: name of the task.
        task_version: raised by the task whenever its rendering, reading or scoring changes.
        task_options: the task's options.
        source: where the examples come from, in words.
        data_fingerprint: hash over the content of all of the task's examples; None where the examples were given.
        examples_fingerprint: hash over the content of the run's examples, in order.
        n: how many examples the run has.
        split: which split; "given" where the examples were given one by one.
        order: "shuffled", "file" or "given".
        limit: at most so many examples; None for all.
        seed: of the shuffle.
        strategy: name of the strategy, or of the module's class.
        settings: the strategy's config.
        program_fingerprint: hash over the roles' prompts, fields and demonstrations.
        models: each agent's model, described; the configured one where the strategy has none of its own.
        judge_model: the judge's model; None where it is not set apart.
        adapter: how fields become messages.
        extract: how answers are read: "typed" (the adapter fills a typed field).
        match: what the run's cost was matched to, see `matching.Match`; None for nothing.
        simulated: some model is simulated: none of the figures say anything about a real one.
        sessions: the run's starts.
    """

    model_config = ConfigDict(extra="ignore")

    format_version: int = FORMAT_VERSION
    task: str
    task_version: int
    task_options: dict[str, Any] = Field(default_factory=dict)
    source: str = ""
    data_fingerprint: str | None = None
    examples_fingerprint: str
    n: int
    split: str
    order: str
    limit: int | None = None
    seed: int = 0
    strategy: str
    settings: dict[str, Any] = Field(default_factory=dict)
    program_fingerprint: str
    models: list[dict[str, Any]] = Field(default_factory=list)
    judge_model: dict[str, Any] | None = None
    adapter: str
    extract: str = "typed"
    match: dict[str, Any] | None = None
    simulated: bool = False
    sessions: list[Session] = Field(default_factory=list)

    @property
    def model_names(self) -> list[str]:
        """The models' names, the judge's last, each once."""
        described = [*self.models, *([self.judge_model] if self.judge_model else [])]
        return list(dict.fromkeys(str(item.get("name") or item.get("model") or "?") for item in described))

    @property
    def changed_settings(self) -> dict[str, Any]:
        """The settings that differ from the strategy's defaults; all of them for a strategy that is not known."""
        from ..programs.base import STRATEGIES  # it brings DSPy, and half a second with it

        if self.strategy not in STRATEGIES.names():
            return self.settings
        defaults = STRATEGIES.get(self.strategy).Config().model_dump(mode="json")
        return {name: value for name, value in self.settings.items() if value != defaults.get(name)}

    def identity(self) -> dict[str, Any]:
        """Return what makes two starts the same run; where it differs, records must not be mixed."""
        # Not the source: the same content at another place is the same data. Nor whether a model is simulated: a server
        # says so only in its replies.
        return self.model_dump(mode="json", exclude={"sessions", "source", "simulated"})

    def differences(self, other: RunInfo) -> list[str]:
        """Return what differs from another run, one "name: ours, not theirs" each."""
        mine, theirs = self.identity(), other.identity()
        found: list[str] = []
        for name in mine:
            if mine[name] == theirs[name]:
                continue
            if isinstance(mine[name], dict) and isinstance(theirs[name], dict):
                keys = [key for key in {**mine[name], **theirs[name]} if mine[name].get(key) != theirs[name].get(key)]
                found += [
                    f"{name}.{key}: {_short(mine[name].get(key))}, not {_short(theirs[name].get(key))}" for key in keys
                ]
            else:
                found.append(f"{name}: {_short(mine[name])}, not {_short(theirs[name])}")
        return found


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


class Interval(BaseModel):
    """A confidence interval of a score.

    Attributes:
        low: its lower end.
        high: its upper end.
        method: how it was computed ("wilson", "bootstrap").
        n: examples in the score's denominator.
        level: its confidence, 0.95 for 95 %.
    """

    low: float
    high: float
    method: str
    n: int
    level: float = 0.95

    @classmethod
    def of(cls, found: statistics.Interval) -> Interval:
        """Return an interval as records hold it; its estimate stands among the scores."""
        return cls(low=found.low, high=found.high, method=found.method, n=found.n, level=found.level)


class Group(BaseModel):
    """The scores of the examples that share a value of the `by` field; see `scoring`.

    Attributes:
        n: its examples.
        scores: the task's corpus scores, `accuracy` and `parity`.
        intervals: of `accuracy`, and of the main score where that is the same.
        flags: "tiny" (few examples: the figures mean little), "zero" (none right); see `metrics.parity`.
    """

    n: int
    scores: dict[str, float | None] = Field(default_factory=dict)
    intervals: dict[str, Interval] = Field(default_factory=dict)
    flags: list[str] = Field(default_factory=list)


class Summary(BaseModel):
    """What a run came to (`summary.json`).

    Attributes:
        task: name of the task.
        n: examples with a record; blanks and failures are in every denominator.
        total: examples the run has in all.
        status: "complete" (all have a record), "stopped" (by a budget), "interrupted", or "failed" (by an error).
        reason: why it is not complete, in one line.
        primary: name of the task's main score.
        scores: corpus scores by name, fractions in [0, 1]; None for "n/a".
        intervals: a confidence interval for each score that has one.
        by: the field grouped by.
        groups: per value of that field.
        usage: all that was paid for and served from the cache, unfinished examples included.
        usage_by_role: likewise, by role.
        failed: examples whose program or provider failed; they score 0.
        blank: examples without a readable answer; they score 0.
        seconds: wall-clock time of all sessions that ended.
        dynamics: what the debates' transcripts show, see `metrics.dynamics`.
        simulated: see `RunInfo`.
    """

    model_config = ConfigDict(extra="ignore")

    task: str
    n: int
    total: int
    status: Status
    reason: str | None = None
    primary: str
    scores: dict[str, float | None] = Field(default_factory=dict)
    intervals: dict[str, Interval] = Field(default_factory=dict)
    by: str | None = None
    groups: dict[str, Group] = Field(default_factory=dict)
    usage: Usage = Field(default_factory=Usage)
    usage_by_role: dict[str, Usage] = Field(default_factory=dict)
    failed: int = 0
    blank: int = 0
    seconds: float = 0.0
    dynamics: dict[str, Any] = Field(default_factory=dict)
    simulated: bool = False
