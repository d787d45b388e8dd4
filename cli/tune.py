"""`townhall tune`: a search for the best shape of a debate, and one evaluation of it on held-out examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import BudgetExceededError, InputError
from . import interrupt, screen
from .build import ModelChoice, ProgramChoice, TaskChoice, TuningChoice, ready_to_score
from .options import (
    budget_options,
    combined,
    concurrency_option,
    model_options,
    option,
    output_options,
    program_options,
    task_options,
    tuning_options,
)
from .params import CommaSeparated, KeyValue, Number, Option
from .settings import PREFIX, attribute_helps, checked
from .staged import StagesChoice, staged_options
from .staged import run as tune_in_stages
from .strategy_command import Chosen, StrategyCommand

if TYPE_CHECKING:
    from ..evaluation.budget import Budget
    from ..optimize.study import StudyResult


class TuneCommand(StrategyCommand):
    """The command's parser: a setting's option takes what is searched, not one value."""

    def setting_options(self, strategy: str, taken: set[str]) -> list[click.Option]:
        """See `StrategyCommand.setting_options`."""
        from ..optimize.space import COUNTS, declared
        from ..programs.base import STRATEGIES

        kind = STRATEGIES.get(strategy)
        helps = attribute_helps(kind.Config)
        made: list[click.Option] = []
        for name, dimension in declared(kind).items():
            flag = f"--{name.replace('_', '-')}"
            numbers = dimension.kind != "choice"
            values = f"{dimension.low:g}:{dimension.high:g}" if numbers else ",".join(map(str, dimension.choices))
            text = helps.get(name, "")
            made.append(
                Option(
                    [flag if flag not in taken else f"--strategy-{flag[2:]}", f"{PREFIX}{name}"],
                    metavar="LOW:HIGH" if numbers else "A,B,...",
                    help=f"{text[:1].upper()}{text[1:]} It can be {values}.",
                    when_absent="all of them" if name in COUNTS else "not searched",
                )
            )
        return made

    def settings_of(self, params: dict[str, Any], chosen: Chosen) -> dict[str, Any]:
        """See `StrategyCommand.settings_of`; ranges are checked by the search itself."""
        own = [option.name for option in chosen.options]
        ranges = {name.removeprefix(PREFIX): params.pop(name) for name in own if name is not None}
        return {name: value for name, value in ranges.items() if value is not None}


@click.command(
    name="tune",
    cls=TuneCommand,
    epilog="Examples:\n\n"
    "\b\n"
    "  townhall tune --task arithmetic --strategy society --agents 2:7 --rounds 1:4 --trials 20\n"
    "  townhall tune --task gsm8k --data train.jsonl --personas 2:9 --rounds 1:3 \\\n"
    "      --fix persona_style=experts --objectives score,calls --trials 30\n"
    "  townhall tune ... --staged --teleprompter miprov2 --max-calls 5000\n"
    "  townhall tune ... --storage postgresql://user@host/db --worker\n"
    "  townhall tune --strategy town-hall --help",
)
@combined(task_options, program_options)
@option(
    "--trials", type=Number(int, 1), default=30, show_default=True, help="How many in all, earlier starts included."
)
@option(
    "--objectives",
    type=CommaSeparated(str),
    default="score",
    show_default=True,
    help="score, or score with what is to be small: calls, tokens, cost, seconds. Then there is a Pareto front.",
)
@option(
    "--sampler",
    metavar="NAME",
    default="gp",
    show_default=True,
    help="How shapes are chosen: gp (a model of the scores, for few trials), tpe, nsga2, nsga3, cmaes, grid, random.",
)
@option(
    "--pruner",
    type=click.Choice(["wilcoxon", "halving", "none"]),
    default="wilcoxon",
    show_default=True,
    help="How trials that will not win are stopped early.",
)
@option("--split", type=click.Choice(["dev", "train"]), default="dev", show_default=True, help="What trials answer.")
@option("--limit", type=Number(int, 1), help="At most so many examples a trial.")
@option("--fix", type=KeyValue(), multiple=True, help="A setting that is not searched, such as --fix history=all.")
@option("--search", metavar="NAME", multiple=True, help="Search this setting too; 'all' searches everything.")
@option("--demos", type=Number(int, 1), help="Search the number of demonstrations a role shows, up to this.")
@option(
    "--role-lm",
    metavar="ROLE=NAME,NAME",
    type=KeyValue(),
    multiple=True,
    help="Search which of these models speaks a role.",
)
@option("--name", metavar="STUDY", help="Of the study.", when_absent="TASK-STRATEGY")
@option(
    "--studies", metavar="FOLDER", type=click.Path(), default="studies", show_default=True, help="Where studies are."
)
@option(
    "--storage",
    metavar="URL",
    help="A database (postgresql://...), 'journal', or a file that ends in .journal.",
    when_absent="an SQLite file in the study's folder",
)
@option("--worker", is_flag=True, help="Only help with the trials that another process has put into the storage.")
@combined(staged_options, model_options, concurrency_option, budget_options, tuning_options, output_options)
def command(
    chosen_task: TaskChoice,
    chosen_program: ProgramChoice,
    trials: int,
    objectives: list[str],
    sampler: str,
    pruner: str,
    split: Any,
    limit: int | None,
    fix: tuple[tuple[str, str], ...],
    search: tuple[str, ...],
    demos: int | None,
    role_lm: tuple[tuple[str, str], ...],
    name: str | None,
    studies: str,
    storage: str | None,
    worker: bool,
    stages: StagesChoice,
    named_models: ModelChoice,
    concurrency: int | None,
    budget: Budget,
    tuning: TuningChoice,
    as_json: bool,
) -> int:
    """Search how many speak and for how long (and whatever else is a choice), and evaluate the best held out.

    A setting's option takes what is searched: --personas 2:9, or --history last,all. The same command again goes on
    with its study; several processes share one with --worker. The best program is saved as an artifact.
    """
    from ..optimize.artifact import save_artifact
    from ..optimize.held_out import hold_out
    from ..optimize.search import tune
    from ..programs.base import STRATEGIES
    from .final import judge
    from .study import study_json, study_view
    from .tuning_progress import searching

    stages.check()
    if stages.staged and (worker or split != "dev"):
        raise InputError("--staged measures on the dev split, in one process: leave out --split and --worker")
    source = chosen_task.with_examples()
    strategy, tuned = chosen_program.strategy, chosen_program.artifact is not None
    splits = None
    if tuning.test and not worker:
        splits = hold_out(source, dev_limit=limit, test_limit=tuning.test_limit, seed=tuning.tuning_seed)
    fixed = _typed(dict(fix), strategy)
    study_name = name or f"{source.name}-{strategy}"
    folder = Path(tuning.out or f"artifacts/{study_name}{'-staged' if stages.staged else ''}")
    if strategy not in STRATEGIES.names():
        raise InputError(f"{chosen_program.artifact}: the shape of '{strategy}' cannot be searched")
    models = named_models.open()
    ready_to_score(source, models)
    plain = replace(chosen_program, settings=fixed).open(source, models)
    shared: dict[str, Any] = {
        "trials": trials,
        "objectives": objectives,
        "sampler": sampler,
        "pruner": pruner,
        "fixed": fixed,
        "search": "all" if "all" in search else list(search),
        "demos": demos,
        "role_lms": _role_models(role_lm, named_models),
        "lms": models.panel,
        "judge_lm": models.judge,
        "lm": models.first,
        "adapter": models.adapter,
        "folder": studies,
        "storage": storage,
        "concurrency": concurrency,
        "budget": budget,
        "seed": tuning.tuning_seed,
        **chosen_program.settings,
    }
    if stages.staged:
        return tune_in_stages(
            source,
            plain if tuned else strategy,
            plain,
            stages,
            {**shared, "name": f"{study_name}-staged"},
            splits=splits or hold_out(source, dev_limit=limit, test_limit=tuning.test_limit, seed=tuning.tuning_seed),
            models=models,
            named_models=named_models,
            artifact_given=tuned,
            tuning=tuning,
            folder=folder,
            as_json=as_json,
        )
    interrupt.set_hint("what is finished is kept; the same command goes on with the study")
    with searching() as progress:
        result = tune(
            source,
            plain if tuned else strategy,
            split=split,
            limit=limit,
            # Without the questions that the test split asks too.
            examples=splits.dev if splits is not None and split == "dev" else None,
            name=study_name,
            worker=worker,
            progress=progress,
            **shared,
        )
    if not as_json:
        screen.show(*study_view(result, {}))
    if worker:
        if as_json:
            screen.print_json(study_json(result, {}))
        return 0
    if result.stopped is not None and not result.finished:
        raise BudgetExceededError(f"stopped: {result.stopped}; the study is kept in {result.folder}")
    best = result.best
    record = tuning_record(result, sampler, pruner, tuning.tuning_seed)
    save_artifact(best, source, folder, tuning=record, overwrite=tuning.overwrite)
    if not as_json:
        screen.notice(f"artifact of trial {result.best_trial.number} written to {folder}")
    if result.stopped is not None and (reached := budget.reached(result.used)):
        raise BudgetExceededError(f"stopped: {reached}; the best shape so far is in {folder}")
    held_out = None
    if splits is not None:
        held_out = judge(
            best,
            splits,
            folder,
            plain=plain,
            artifact_given=tuned,
            models=models,
            concurrency=concurrency,
            budget=budget.minus(result.used),
            as_json=as_json,
            ledger=result.folder / "held_out.jsonl",
        )
    if as_json:
        screen.print_json({**study_json(result, {}), "artifact": str(folder), "held_out": held_out})
    return 0


def _typed(fixed: Mapping[str, str], strategy: str) -> dict[str, Any]:
    """Return fixed settings with the types of the config.

    Raises:
        InputError: for a value that it refuses.
    """
    from ..programs.base import STRATEGIES, build_config

    if not fixed:
        return {}
    config = STRATEGIES.get(strategy).Config
    checked(fixed, config, strategy, {})
    built = build_config(config, dict(fixed), strategy)
    return {name: getattr(built, name) for name in fixed}


def _role_models(named: tuple[tuple[str, str], ...], models: ModelChoice) -> dict[str, Any]:
    found = {}
    for role, names in named:
        wanted = [name.strip() for name in names.split(",") if name.strip()]
        if len(wanted) < 2:
            raise InputError(f"--role-lm {role}={names}: name at least two models to choose from")
        made = models.named(wanted)
        found[role] = [made[name] for name in wanted]
    return found


def tuning_record(result: StudyResult, sampler: str, pruner: str, seed: int) -> dict[str, Any]:
    """Return what an artifact says of the search that found its shape."""
    best = result.best_trial
    return {
        "study": result.name,
        "storage": result.storage,
        "sampler": sampler,
        "pruner": pruner,
        "seed": seed,
        "objectives": result.description.objectives,
        "space": [str(dimension) for dimension in result.description.space],
        "fixed": result.description.fixed,
        "examples": result.description.n,
        "trials": len(result.finished),
        "best_trial": best.number,
        "settings": best.settings,
        "score": best.score,
        "costs": best.costs,
        "calls": sum(trial.calls for trial in result.trials),
        "cached_share": result.saved,
    }
