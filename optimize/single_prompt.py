"""Folding a tuned town hall into the paper's single prompt."""

from __future__ import annotations

from ..errors import InputError
from ..programs.base import Strategy
from ..programs.town_hall import GUIDANCE, TownHall
from ..programs.town_hall_prompt import TownHallPrompt
from ..tasks.base import Task

#: How each role's tuned instructions are introduced in the single prompt.
PARTS = {
    "identify": "How to name the participants",
    "argue": "How a participant opens",
    "rebut": "How a participant answers the others",
    "vote": "How a participant votes",
}


def as_single_prompt(program: Strategy, task: Task | None = None) -> TownHallPrompt:
    """Return the single-prompt town hall that does what a town hall was tuned to do.

    It has the town hall's number of personas and rounds and its models. Instructions of roles that were tuned are
    folded into its own; roles that nobody tuned add nothing to what it says already. Who takes part follows the persona
    style. Demonstrations are whole debates, made from the task's worked problems: those of single roles do not fit.

    Args:
        program: a `town-hall`.
        task: gives worked problems; without it the prompt has none.

    Raises:
        InputError: for another strategy.
    """
    if not isinstance(program, TownHall):
        raise InputError(f"only a town-hall can be folded into a single prompt; this is a '{program.name}'")
    config = program.config
    spliced = TownHallPrompt(
        answer=program.answer_type,
        lms=program.lms,
        personas=config.personas,
        rounds=config.rounds,
        shots=config.shots,
        seed=config.seed,
        temperature=config.temperature,
    )
    untuned = dict(TownHall(answer=program.answer_type).named_predictors())
    parts = [spliced.hold.signature.instructions, *_participants(program)]
    for name, predictor in program.named_predictors():
        instructions = predictor.signature.instructions
        if instructions != untuned[name].signature.instructions:
            parts.append(f"{PARTS[name]}:\n{instructions}")
    spliced.hold.signature = spliced.hold.signature.with_instructions("\n\n".join(parts))
    return spliced.demonstrate(task.demonstrations()) if task is not None else spliced


def _participants(program: TownHall) -> list[str]:
    config = program.config
    if config.persona_style == "listed":
        listed = "\n".join(f"- {persona}" for persona in config.persona_list)
        return [f"The participants are, in turn when there are fewer than asked for:\n{listed}"]
    if config.persona_style == "none":
        return ["The participants have no persona: call them Participant 1, Participant 2 and so on."]
    if config.persona_style == "devils-advocate":
        return ["One of the participants is a devil's advocate, who argues against whatever most others believe."]
    return [] if config.persona_style == "chosen" else [f"The participants are {GUIDANCE[config.persona_style]}."]
