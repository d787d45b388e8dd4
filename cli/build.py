"""From options to the things they name: the task, the models, the adapter, the strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..registry import nearest
from .options import DEFAULT_LM

if TYPE_CHECKING:
    import dspy

    from ..evaluation.budget import Budget
    from ..programs.base import Strategy
    from ..tasks.base import Example, Task


def task_of(name: str | None, data: str | None, options: Sequence[tuple[str, str]]) -> Task:
    """Return the task that the options name.

    Raises:
        InputError: for an unknown task or option, a task that is not named at all, or bad data.
    """
    from ..tasks.access import task
    from ..tasks.base import TASKS

    if name is None:
        raise InputError(f"which task? Name it with --task. Known: {', '.join(TASKS.names())}")
    known = TASKS.get(name).option_help
    for key, _ in options:
        if key not in known:
            raise InputError(
                f"task '{name}' has no option '{key}'.{nearest(key, list(known))} Its options: "
                f"{', '.join(known) or 'none'}"
            )
    return task(name, data, **dict(options))


def with_examples(task: Task) -> Task:
    """Read a task's data now, so that bad data is found before a model is fetched; returns the task.

    Raises:
        InputError: for bad data, or when something that scoring needs is missing.
    """
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


def program_of(
    task: Task | None,
    strategy: str,
    settings: Mapping[str, Any],
    models: Models,
    *,
    artifact: str | None = None,
    answer: Any = str,
) -> Strategy:
    """Return the program that the options name, with its models.

    Args:
        task: whose questions it answers; None for a question of the user's own.
        strategy: its name.
        settings: that were given.
        models: of the agents and the judge.
        artifact: a folder with a tuned program, to take instead of the strategy as it comes.
        answer: the type of the answer, where there is no task and no artifact.

    Raises:
        InputError: for bad settings, or an artifact whose answers are of another type than the task's.
    """
    from ..programs.base import STRATEGIES

    if artifact is not None:
        from ..optimize.artifact import load

        loaded = load(artifact, answer=task.answer_type if task is not None else None)
        if settings:
            loaded = loaded.reconfigured(**settings)
        return loaded.with_models(models.panel, models.judge)
    if task is not None:
        from ..evaluation.assembly import program

        return program(task, strategy, lms=models.panel, judge_lm=models.judge, **settings)
    return STRATEGIES.get(strategy)(answer=answer, lms=models.panel, judge_lm=models.judge, **settings)


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


def models_of(
    lms: Sequence[str],
    judge_lm: str | None = None,
    api_base: str | None = None,
    models_file: str | None = None,
    reply_tokens: int | None = None,
    adapter: str | None = None,
) -> Models:
    """Return the models that the options name, each made once.

    Raises:
        InputError: for a name that no model has, or a models file that cannot be read.
    """
    from ..models.resolve import lm

    names = list(lms) or [DEFAULT_LM]
    made = {
        name: lm(name, api_base=api_base, models_file=models_file, max_tokens=reply_tokens)
        for name in dict.fromkeys([*names, *([judge_lm] if judge_lm else [])])
    }
    return Models(
        lms=tuple(made[name] for name in names),
        judge=made[judge_lm] if judge_lm else None,
        adapter=adapter_of(adapter),
    )


def budget_of(calls: int | None, tokens: int | None, cost: float | None) -> Budget:
    """Return the budget that `--max-calls`, `--max-tokens` and `--max-cost` name."""
    from ..evaluation.budget import Budget

    return Budget(calls=calls, tokens=tokens, cost=cost)


def adapter_of(name: str | None) -> dspy.Adapter | None:
    """Return the adapter that `--adapter` names; None for the strategies' own, which is JSON."""
    if name in (None, "json"):
        return None
    import dspy

    return dspy.ChatAdapter() if name == "chat" else dspy.XMLAdapter()
