"""Teleprompters that write instructions: COPRO, MIPROv2, and rules inferred from examples."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import dspy
from dspy.teleprompt.infer_rules import RulesInductionProgram
from dspy.utils.exceptions import AdapterParseError, ContextWindowExceededError
from pydantic import Field

from ...errors import InputError
from ...programs.base import Strategy
from ...signatures.answers import display
from ..freezing import roles_of
from .base import NO_LIMIT, TELEPROMPTERS, Sizes, Teleprompter, Work, merged, use_demos
from .bootstrap import BootstrapSizes, bootstrapped, fresh, note_empty


class COPROSizes(Sizes):
    """Sizes of `copro`; see also `Sizes`.

    Attributes:
        breadth: how many instructions of a role are tried at each depth, its present one among them.
        depth: how many times new ones are proposed from the scores of the old.
        temperature: at which they are proposed.
    """

    dev: int | None = Field(default=6, ge=1)
    breadth: int = Field(default=3, ge=2, le=50)
    depth: int = Field(default=1, ge=1, le=10)
    temperature: float = Field(default=1.4, ge=0, le=2)


@TELEPROMPTERS.register("copro")
class COPRO(Teleprompter):
    """`dspy.COPRO`: coordinate ascent over each role's instructions.

    Every candidate of every role is a debate on each dev example at every depth: the dearest of all for its size.
    """

    name: ClassVar[str] = "copro"
    summary: ClassVar[str] = "proposes instructions for one role after the other and keeps the best on the dev examples"
    Sizes: ClassVar[type[Sizes]] = COPROSizes
    needs_dev: ClassVar[bool] = True

    def most_debates(self, sizes: Any, *, roles: int, train: int, dev: int) -> int:
        """See `Teleprompter.most_debates`."""
        return int(roles * dev * sizes.breadth * sizes.depth * (sizes.depth + 1) // 2)

    def run(self, work: Work) -> Strategy:
        """See `Teleprompter.run`."""
        sizes = work.sizes
        teleprompter = dspy.COPRO(
            prompt_model=work.prompt_lm,
            metric=work.metric,
            breadth=sizes.breadth,
            depth=sizes.depth,
            init_temperature=sizes.temperature,
        )
        settings = {"num_threads": work.threads, "display_progress": False, "display_table": 0}
        with dspy.context(max_errors=NO_LIMIT):
            return teleprompter.compile(fresh(work.program), trainset=work.dev, eval_kwargs=settings)


class MIPROv2Sizes(Sizes):
    """Sizes of `miprov2`; see also `Sizes`.

    Attributes:
        candidates: how many instructions, and how many sets of demonstrations, there are of each role.
        trials: how many combinations are tried.
        demos: most bootstrapped demonstrations of each role in a set.
        worked: roles with fewer demonstrations are filled up with worked ones to this many.
        minibatch: dev examples a trial; None for all. With it the best are evaluated on all now and then.
        temperature: at which instructions are proposed.
    """

    candidates: int = Field(default=4, ge=2, le=50)
    trials: int = Field(default=8, ge=1, le=500)
    demos: int = Field(default=2, ge=1, le=16)
    worked: int = Field(default=1, ge=0, le=16)
    minibatch: int | None = Field(default=None, ge=1)
    temperature: float = Field(default=1.0, ge=0, le=2)


class DebateMIPROv2(dspy.MIPROv2):
    """`dspy.MIPROv2` over the demonstrations of `bootstrap`; the first set is what the program came with."""

    def __init__(self, work: Work, **settings: Any) -> None:
        super().__init__(**settings)
        self.work = work

    def _bootstrap_fewshot_examples(
        self,
        program: Strategy,
        trainset: list[dspy.Example],
        seed: int,
        teacher: Strategy | None,
        *,
        num_fewshot_candidates: int,
        max_bootstrapped_demos: int,
        max_labeled_demos: int,
        max_errors: int | None,
        metric_threshold: float | None,
    ) -> dict[int, list[list[Any]]]:
        zero_shot = max_bootstrapped_demos == 0 and max_labeled_demos == 0
        # Zero-shot: demonstrations are still made, for the proposer to look at, and thrown away afterwards.
        most = 3 if zero_shot else max_bootstrapped_demos
        sets = [{name: list(predictor.demos) for name, predictor in roles_of(program).items()}]
        for number in range(num_fewshot_candidates - 1):
            if self.work.spending.stopped:
                break
            size = most if number == 0 else random.Random(f"{seed}/size/{number}").randint(1, most)
            shuffle = None if number == 0 else number
            sets.append(bootstrapped(self.work, demos=size, worked=max_labeled_demos, shuffle=shuffle))
            if number == 0 and not zero_shot:
                note_empty(self.work, sets[-1])
        return {index: [demos[name] for demos in sets] for index, name in enumerate(roles_of(program))}


@TELEPROMPTERS.register("miprov2")
class MIPROv2(Teleprompter):
    """`dspy.MIPROv2`: instructions and demonstrations of all roles, searched together."""

    name: ClassVar[str] = "miprov2"
    summary: ClassVar[str] = "proposes instructions from the data and searches them together with demonstrations"
    Sizes: ClassVar[type[Sizes]] = MIPROv2Sizes
    needs_dev: ClassVar[bool] = True
    zero_shot: ClassVar[bool] = False

    def check(self, sizes: Any, train: Sequence[Any], dev: Sequence[Any]) -> None:
        """See `Teleprompter.check`."""
        super().check(sizes, train, dev)
        if sizes.minibatch is not None and sizes.minibatch > len(dev):
            raise InputError(f"{self.name}: minibatch is {sizes.minibatch}; there are only {len(dev)} dev examples")

    def most_debates(self, sizes: Any, *, roles: int, train: int, dev: int) -> int:
        """See `Teleprompter.most_debates`."""
        return int(train * (sizes.candidates - 1) + self._evaluations(sizes, dev))

    @staticmethod
    def _evaluations(sizes: Any, dev: int) -> int:
        if sizes.minibatch is None:
            return int(dev * (sizes.trials + 1))
        # DSPy evaluates on all examples at the start, after every fifth trial and at the end.
        return int(sizes.minibatch * sizes.trials + dev * (2 + sizes.trials // 5))

    def run(self, work: Work) -> Strategy:
        """See `Teleprompter.run`."""
        sizes = work.sizes
        program = fresh(work.program)
        if self.zero_shot:
            for predictor in roles_of(program).values():
                predictor.demos = []
        teleprompter = DebateMIPROv2(
            work,
            metric=work.metric,
            prompt_model=work.prompt_lm,
            task_model=dspy.settings.lm or work.program.lm_of(0),
            max_bootstrapped_demos=0 if self.zero_shot else sizes.demos,
            max_labeled_demos=0 if self.zero_shot else sizes.worked,
            auto=None,
            num_candidates=sizes.candidates,
            num_threads=work.threads,
            max_errors=NO_LIMIT,
            seed=work.seed,
            init_temperature=sizes.temperature,
            metric_threshold=work.threshold,
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*multivariate.*")
            return teleprompter.compile(
                program,
                trainset=work.train,
                valset=work.dev,
                num_trials=sizes.trials,
                minibatch=sizes.minibatch is not None,
                minibatch_size=sizes.minibatch or 1,
            )


@TELEPROMPTERS.register("miprov2-zero-shot")
class ZeroShotMIPROv2(MIPROv2):
    """`dspy.MIPROv2` without demonstrations: instructions only. Tuned roles lose the demonstrations they had."""

    name: ClassVar[str] = "miprov2-zero-shot"
    summary: ClassVar[str] = "MIPROv2 over instructions only; no role shows a demonstration"
    zero_shot: ClassVar[bool] = True


class InferRulesSizes(BootstrapSizes):
    """Sizes of `infer-rules`; see also `BootstrapSizes`.

    Attributes:
        candidates: how many sets of rules are tried.
        rules: how many rules a set has for each role.
        examples: how many of a role's replies in won debates the rules are inferred from.
    """

    candidates: int = Field(default=3, ge=1, le=50)
    rules: int = Field(default=5, ge=1, le=30)
    examples: int = Field(default=4, ge=1, le=32)


@TELEPROMPTERS.register("infer-rules")
class InferRules(Teleprompter):
    """`dspy.InferRules` for roles: rules come from what each role said in debates that were won.

    DSPy infers them from the fields that training examples share with a role, which for most roles is the question
    alone; and it writes the rules into the signature class, which all copies of a program share, and every other
    program made from that class. Here rules come from the role's own bootstrapped replies, and each candidate has
    signatures of its own. A role that no won debate shows gets no rules.
    """

    name: ClassVar[str] = "infer-rules"
    summary: ClassVar[str] = (
        "bootstraps demonstrations, infers rules from them and adds the best set to the instructions"
    )
    Sizes: ClassVar[type[Sizes]] = InferRulesSizes
    needs_dev: ClassVar[bool] = True

    def most_debates(self, sizes: Any, *, roles: int, train: int, dev: int) -> int:
        """See `Teleprompter.most_debates`."""
        return int(train * sizes.rounds + dev * (sizes.candidates + 1))

    def run(self, work: Work) -> Strategy:
        """See `Teleprompter.run`."""
        sizes = work.sizes
        pool = bootstrapped(work, demos=max(sizes.examples, sizes.demos), worked=0, rounds=sizes.rounds)
        note_empty(work, pool)
        shown = {
            name: merged(demos[: sizes.demos], work.worked.get(name, []), sizes.worked) for name, demos in pool.items()
        }
        base = use_demos(fresh(work.program), shown)
        best, best_score = fresh(work.program), work.evaluate(fresh(work.program))
        induction = RulesInductionProgram(sizes.rules, teacher_settings={"lm": work.prompt_lm})
        induction.rng = random.Random(work.seed)
        for _ in range(sizes.candidates):
            if work.spending.stopped:
                break
            program = fresh(base)
            for name, predictor in roles_of(program).items():
                if rules := _infer(induction, predictor.signature, pool[name][: sizes.examples], work, name):
                    text = f"{predictor.signature.instructions}\n\nKeep to these rules:\n{rules}"
                    predictor.signature = predictor.signature.with_instructions(text)
            score = work.evaluate(program)
            if score > best_score and not work.spending.stopped:
                best, best_score = program, score
        return best


def _infer(
    induction: RulesInductionProgram, signature: type[dspy.Signature], demos: Sequence[Any], work: Work, role: str
) -> str:
    """Return rules inferred from a role's replies; "" when there are none, or none could be read.

    Replies that do not fit into the prompt model's context are left out, the last first.
    """
    for count in range(len(demos), 0, -1):
        try:
            return str(induction(_examples_text(signature, demos[:count])))
        except ContextWindowExceededError:
            continue
        except AdapterParseError:
            work.notes.append(f"{role}: the prompt model's rules could not be read")
            return ""
    return ""


def _examples_text(signature: type[dspy.Signature], demos: Sequence[Any]) -> str:
    parts = []
    for number, demo in enumerate(demos, start=1):
        read = "\n".join(f"{name}: {display(demo[name])}" for name in signature.input_fields if name in demo)
        wrote = "\n".join(f"{name}: {display(demo[name])}" for name in signature.output_fields if name in demo)
        parts.append(f"Example {number}\nWhat the role read:\n{read}\n\nWhat it wrote:\n{wrote}")
    return "\n\n".join(parts)
