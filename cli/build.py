"""From options to the things they name: the task, the models, the adapter, the strategy.

A class `...Choice` holds what was given for the options of one kind (see `options`), and opens what they name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..registry import nearest

if TYPE_CHECKING:
    import dspy

    from ..evaluation.budget import Budget
    from ..programs.base import Strategy
    from ..tasks.base import Example, Task

#: What `--lm` is when it is not given.
DEFAULT_LM = "local"


@dataclass(frozen=True)
class TaskChoice:
    """`--task`, `--data` and the task's own options, as they were given."""

    task: str | None
    data: str | None
    task_option: tuple[tuple[str, str], ...] = ()

    def open(self) -> Task:
        """Return the task that is named.

        Raises:
            InputError: for an unknown task or option, a task that is not named at all, or bad data.
        """
        from ..tasks.access import task
        from ..tasks.base import TASKS

        if self.task is None:
            raise InputError(f"which task? Name it with --task. Known: {', '.join(TASKS.names())}")
        known = TASKS.get(self.task).option_help
        for key, _ in self.task_option:
            if key not in known:
                raise InputError(
                    f"task '{self.task}' has no option '{key}'.{nearest(key, list(known))} Its options: "
                    f"{', '.join(known) or 'none'}"
                )
        return task(self.task, self.data, **dict(self.task_option))

    def with_examples(self) -> Task:
        """Return the task with its data read, so that bad data is found before a model is fetched.

        Raises:
            InputError: as `open`, or when something that scoring needs is missing.
        """
        task = self.open()
        if not _wants_judge(task):
            task.check_scoring()
        _ = task.examples
        return task


def ready_to_score(task: Task, models: Models | None = None) -> None:
    """Give a task its judge, where it has one: the option `judge_lm`'s, else `--judge-lm`'s.

    Raises:
        InputError: when something that scoring needs is missing.
    """
    if _wants_judge(task):
        from ..metrics.factuality import lm_judge
        from ..models.resolve import lm

        name = task.options.get("judge_lm")
        judge = lm(name) if name else models.judge if models is not None else None
        if judge is not None:
            vars(task)["judge"] = lm_judge(judge)
    task.check_scoring()


def _wants_judge(task: Task) -> bool:
    return "judge" in vars(task) and vars(task)["judge"] is None


def example_of(task: Task, wanted: str) -> Example:
    """Return one example by its id, or by its position in the source ("#1" is the first).

    Raises:
        InputError: when there is none; the text gives the nearest id.
    """
    examples = task.examples
    if wanted.startswith("#") and wanted[1:].isdigit():
        number = int(wanted[1:])
        if not 1 <= number <= len(examples):
            raise InputError(f"no example {wanted}: {task.source} has {len(examples)}")
        return examples[number - 1]
    for example in examples:
        if example.id == wanted:
            return example
    ids = [example.id for example in examples]
    hint = nearest(wanted, ids) or f" The first ones are: {', '.join(ids[:3])}"
    raise InputError(f"{task.source}: no example with the id '{wanted}'.{hint}")


@dataclass(frozen=True)
class ProgramChoice:
    """`--strategy`, `--artifact` and the strategy's settings, as they were given."""

    strategy: str
    artifact: str | None
    settings: Mapping[str, Any]

    def open(self, task: Task | None, models: Models, *, answer: Any = str) -> Strategy:
        """Return the program that is named, with its models.

        Args:
            task: whose questions it answers; None for a question of the user's own.
            models: of the agents and the judge.
            answer: the type of the answer, where there is no task and no artifact.

        Raises:
            InputError: for bad settings, or an artifact whose answers are of another type than the task's.
        """
        from ..programs.base import STRATEGIES

        if self.artifact is not None:
            from ..optimize.artifact import load

            loaded = load(self.artifact, answer=task.answer_type if task is not None else None)
            if self.settings:
                loaded = loaded.reconfigured(**self.settings)
            return loaded.with_models(models.panel, models.judge)
        if task is not None:
            from ..evaluation.assembly import program

            return program(task, self.strategy, lms=models.panel, judge_lm=models.judge, **self.settings)
        strategy = STRATEGIES.get(self.strategy)
        return strategy(answer=answer, lms=models.panel, judge_lm=models.judge, **self.settings)


@dataclass(frozen=True)
class Models:
    """The models that a command names.

    Attributes:
        lms: the agents' models, in the order given.
        judge: the judge's model; None when it is not set apart.
        adapter: how typed fields are written and read; None for the strategies' own.
    """

    lms: tuple[dspy.LM, ...]
    judge: dspy.LM | None
    adapter: dspy.Adapter | None

    @property
    def first(self) -> dspy.LM:
        """The configured model: the first one named."""
        return self.lms[0]

    @property
    def panel(self) -> tuple[dspy.LM, ...]:
        """The agents' models where they differ; nothing where all agents use the configured one."""
        return self.lms if len(self.lms) > 1 else ()

    @property
    def names(self) -> list[str]:
        """Each model's name as the user gave it, the judge's last."""
        from ..models.resolve import origin_of

        return [origin_of(lm).name for lm in self.every]

    @property
    def every(self) -> tuple[dspy.LM, ...]:
        """All models, the judge's last."""
        return (*self.lms, *([self.judge] if self.judge is not None else []))

    @property
    def simulated(self) -> bool:
        """Whether any of them is simulated, so that no figure says anything about a real model."""
        from ..models.resolve import is_simulated

        return any(is_simulated(lm) for lm in self.every)

    @property
    def concurrency(self) -> int:
        """How many calls under way at once suit the models."""
        from ..models.resolve import default_concurrency

        return min(default_concurrency(lm) for lm in self.lms)


@dataclass(frozen=True)
class ModelChoice:
    """`--lm` and whatever else says which models are asked and how, as it was given."""

    lms: tuple[str, ...]
    judge_lm: str | None
    models_file: str | None
    api_base: str | None
    reply_tokens: int | None
    adapter: str | None

    def open(self) -> Models:
        """Return the models that are named, each made once.

        Raises:
            InputError: for a name that no model has, or a models file that cannot be read.
        """
        names = self.lms or (DEFAULT_LM,)
        made = self.named([*names, *([self.judge_lm] if self.judge_lm else [])])
        return Models(
            lms=tuple(made[name] for name in names),
            judge=made[self.judge_lm] if self.judge_lm else None,
            adapter=adapter_of(self.adapter),
        )

    def named(self, names: Sequence[str]) -> dict[str, dspy.LM]:
        """Return models by name, with the server, the file of models and the reply's length that were given."""
        from ..models.resolve import lm

        return {
            name: lm(name, api_base=self.api_base, models_file=self.models_file, max_tokens=self.reply_tokens)
            for name in dict.fromkeys(names)
        }


@dataclass(frozen=True)
class HelperChoice:
    """The models that help to tune prompts, as they were given."""

    prompt_lm: str | None
    teacher_lm: str | None
    reflection_lm: str | None

    def open(self, models: ModelChoice) -> dict[str, Any]:
        """Return each helper's model, None where none is named."""
        return {role: models.named([name])[name] if name else None for role, name in vars(self).items()}


@dataclass(frozen=True)
class SplitChoice:
    """`--split`, `--limit`, `--order` and `--shuffle-seed`, as they were given."""

    split: str | None
    limit: int | None
    order: Any
    shuffle_seed: int

    @property
    def arguments(self) -> dict[str, Any]:
        """What an evaluation takes. No split named: all of a file that is read in its order, else test."""
        split = self.split or ("all" if self.order == "file" else "test")
        return {"split": split, "limit": self.limit, "order": self.order, "seed": self.shuffle_seed}


@dataclass(frozen=True)
class TuningChoice:
    """`--seed`, `--test`, `--test-limit`, `--out` and `--overwrite` of the commands that tune, as they were given."""

    tuning_seed: int
    test: bool
    test_limit: int | None
    out: str | None
    overwrite: bool


def budget_of(max_calls: int | None, max_tokens: int | None, max_cost: float | None) -> Budget:
    """Return the budget that `--max-calls`, `--max-tokens` and `--max-cost` name."""
    from ..evaluation.budget import Budget

    return Budget(calls=max_calls, tokens=max_tokens, cost=max_cost)


def adapter_of(name: str | None) -> dspy.Adapter | None:
    """Return the adapter that `--adapter` names; None for the strategies' own, which is JSON."""
    if name in (None, "json"):
        return None
    import dspy

    return dspy.ChatAdapter() if name == "chat" else dspy.XMLAdapter()
