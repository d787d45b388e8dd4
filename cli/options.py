"""The options that several commands share, each declared once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import click

from .build import (
    DEFAULT_LM,
    ModelChoice,
    ProgramChoice,
    SplitChoice,
    TaskChoice,
    TuningChoice,
    budget_of,
)
from .params import KeyValue, Number, Option

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]

#: What `--strategy` is when it is not given.
DEFAULT_STRATEGY = "town-hall"


def option(*names: str, **settings: Any) -> Decorator[Any]:
    """Return the decorator of an option whose help states its default and range, see `params.Option`."""
    return click.option(*names, cls=Option, **settings)


def combined(*options: Decorator[Any]) -> Decorator[Any]:
    """Return one decorator that applies several, so that help shows them in the order given."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def gathered(argument: str, kind: Callable[..., Any], *options: Decorator[Any]) -> Decorator[Any]:
    """Return one decorator of several options, whose values reach the command as one argument.

    Args:
        argument: its name.
        kind: makes it of the options' values; its parameters have their names.
        options: the options.
    """
    names = list(inspect.signature(kind).parameters)

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def called(**values: Any) -> Any:
            own = {name: values.pop(name) for name in names}
            return command(**values, **{argument: kind(**own)})

        return combined(*options)(called)

    return decorate


json_option = option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
verbose_option = option(
    "-v", "--verbose", is_flag=True, expose_value=False, help="Show other libraries' logs and warnings too."
)
output_options = combined(json_option, verbose_option)

data_option = option(
    "--data",
    metavar="SOURCE",
    help="Where examples come from: a JSONL, JSON, CSV or Parquet file; 'hub' or 'hub:REPO'; 'generated'.",
    when_absent="the task's own generator, else its data set on the hub",
)
task_options = gathered(
    "chosen_task",
    TaskChoice,
    option("--task", metavar="NAME", help="The task; `townhall list tasks` names them all."),
    data_option,
    option(
        "-T",
        "--task-option",
        "task_option",
        type=KeyValue(),
        multiple=True,
        help="An option of the task, such as -T sizes=2x2,3x3 (or --sizes 2x2,3x3); repeat it for more. "
        "`--task NAME --help` lists the task's options.",
    ),
)

strategy_option = option(
    "--strategy",
    metavar="NAME",
    default=DEFAULT_STRATEGY,
    show_default=True,
    help="The strategy; `townhall list strategies` names them all. `--strategy NAME --help` lists its settings.",
)
artifact_option = option(
    "--artifact",
    metavar="FOLDER",
    type=click.Path(),
    help="A tuned program in place of --strategy; its settings can be changed as the strategy's.",
)
program_options = gathered("chosen_program", ProgramChoice, strategy_option, artifact_option)
#: Settings that every strategy has; the others become options once `--strategy` is known (see `settings`).
temperature_option = option(
    "--temperature",
    type=Number(float, 0, 2),
    help="Of all roles; at 0 the agents' identical requests get one reply.",
    when_absent="the model's own",
)
common_settings = combined(
    option(
        "--seed", type=Number(int, 0), help="Another seed gives other samples of the same debates.", when_absent="0"
    ),
    temperature_option,
)

lm_option = option(
    "--lm",
    "lms",
    metavar="NAME",
    multiple=True,
    help="A model: local, local/NAME, local/FILE.gguf, simulated, any DSPy name (openai/gpt-4o, ...) or a name in "
    "--models-file. Repeat it for agents with different models, assigned in turn.",
    when_absent=DEFAULT_LM,
)
single_model_options = combined(
    option(
        "--api-base",
        metavar="URL",
        help="An OpenAI-compatible server that has the models; its key comes from the environment (OPENAI_API_KEY).",
    ),
    option("--reply-tokens", type=Number(int, 1), help="Most tokens of one reply.", when_absent="the model's own"),
    option(
        "--adapter",
        type=click.Choice(["json", "chat", "xml"]),
        help="How typed fields are written into prompts and read from replies.",
        when_absent="json",
    ),
)
model_options = gathered(
    "named_models",
    ModelChoice,
    lm_option,
    option("--judge-lm", metavar="NAME", help="The judge's model.", when_absent="the first --lm"),
    option(
        "--models-file",
        metavar="FILE",
        type=click.Path(),
        help="A YAML file of named models: model, api_base, temperature, max_tokens, prices.",
        when_absent="models.yaml, where there is one",
    ),
    single_model_options,
)

no_cache_option = option(
    "--no-cache", is_flag=True, help="Ask the model again even where its reply to the same request is kept."
)

split_options = gathered(
    "chosen_split",
    SplitChoice,
    option(
        "--split",
        type=click.Choice(["train", "dev", "test", "all"]),
        help="Which examples: half are train, a quarter dev, a quarter test, by a hash of their content.",
        when_absent="test; all with --order file",
    ),
    option("--limit", type=Number(int, 1), help="At most so many examples."),
    option(
        "--order",
        type=click.Choice(["shuffled", "file"]),
        default="shuffled",
        show_default=True,
        help="A fixed shuffle, or the source's order (`--limit 200 --order file` is its first 200 rows).",
    ),
    option(
        "--shuffle-seed",
        type=Number(int, 0),
        default=0,
        show_default=True,
        help="Of the shuffle; the splits do not depend on it.",
    ),
)

budget_options = gathered(
    "budget",
    budget_of,
    option("--max-calls", type=Number(int, 1), help="Stop after so many model calls."),
    option("--max-tokens", type=Number(int, 1), help="Stop after so many tokens, sent and received."),
    option("--max-cost", type=Number(float, 0, above=True), help="Stop after so many US dollars."),
)
concurrency_option = option(
    "--concurrency", type=Number(int, 1), help="Model calls under way at once.", when_absent="what suits the model"
)


#: Of the commands that tune a program and evaluate it held out.
tuning_options = gathered(
    "tuning",
    TuningChoice,
    option(
        "--seed",
        "tuning_seed",
        type=Number(int, 0),
        default=0,
        show_default=True,
        help="Of everything that is drawn: examples, candidates, trials.",
    ),
    option("--test/--no-test", default=True, show_default=True, help="Evaluate the result on the test split."),
    option("--test-limit", type=Number(int, 1), help="At most so many test examples."),
    option("--out", metavar="FOLDER", type=click.Path(), help="The artifact's folder.", when_absent="below artifacts/"),
    option("--overwrite", is_flag=True, help="Replace another program's artifact that is there."),
)
