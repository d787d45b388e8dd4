"""The roles of a town hall debate (Town Hall Debate Prompting, section 3 and appendix A).

Input fields stand from the most shared (question, discussion) to the least (persona): the agents of a round then share
the longest prefix of their prompts, which engines with a prefix cache read once.
"""

from __future__ import annotations

import dspy
from pydantic import BaseModel, ConfigDict, Field

from .transcript import Critique, Persona


class IdentifyPersonas(dspy.Signature):
    """Choose the participants of a town hall debate on the question.

    Name exactly as many participants as `count` says. They must differ from each other in what they know and in how
    they think, and together they should cover what the question needs. Do not answer the question yet.
    """

    question: str = dspy.InputField(desc="the question to be debated")
    count: int = dspy.InputField(desc="how many participants to name")
    guidance: str = dspy.InputField(desc="what kind of participants are wanted")
    personas: list[Persona] = dspy.OutputField(desc="the participants, exactly `count` of them, no two alike")


class Argue(dspy.Signature):
    """Open a town hall debate: give your own solution to the question, as the persona you are.

    Work the solution out step by step from what the question states, and end with one answer.
    """

    question: str = dspy.InputField(desc="the question under debate")
    persona: str = dspy.InputField(desc="who you are")
    argument: str = dspy.OutputField(desc="your solution, step by step, in a few sentences")
    answer: str = dspy.OutputField(desc="your answer to the question")


class Rebut(dspy.Signature):
    """Answer the other participants of a town hall debate, as the persona you are.

    First criticise each of the other participants' arguments: check its steps against the question and say where it
    goes wrong or why it holds. Then reconsider your own argument in the light of what was said against it. Keep it if
    it stands, revise it if it does not; agreeing for the sake of agreement helps nobody. End with one answer.
    """

    question: str = dspy.InputField(desc="the question under debate")
    discussion: str = dspy.InputField(desc="what the participants, you among them, have said")
    persona: str = dspy.InputField(desc="who you are")
    critiques: list[Critique] = dspy.OutputField(desc="one for each other participant")
    argument: str = dspy.OutputField(desc="your argument, restated or revised, in a few sentences")
    answer: str = dspy.OutputField(desc="your answer to the question")


class Vote(dspy.Signature):
    """Vote at the end of a town hall debate, as the persona you are.

    Judge the candidate answers by the arguments for them, checked against the question, not by who or how many
    proposed them. Give your reason first, then the number of one candidate.
    """

    question: str = dspy.InputField(desc="the question under debate")
    candidates: str = dspy.InputField(desc="the numbered candidate answers, each with an argument for it")
    persona: str = dspy.InputField(desc="who you are")
    reason: str = dspy.OutputField(desc="why this candidate is the best answer, in one or two sentences")
    choice: int = dspy.OutputField(desc="the number of the candidate you vote for")


class SolveStepByStep(dspy.Signature):
    """Answer the question. Work it out step by step from what the question states, and end with one answer."""

    question: str = dspy.InputField(desc="the question")
    reasoning: str = dspy.OutputField(desc="the solution, step by step")
    answer: str = dspy.OutputField(desc="the answer to the question")


class Statement(BaseModel):
    """What one participant says in one round of a debate held in a single call."""

    model_config = ConfigDict(frozen=True)

    speaker: str = Field(description="the participant's name")
    statement: str = Field(description="the argument; from the second round on, also criticism of the others")
    answer: str = Field(description="the participant's answer at this point, in brief")


class DebateRound(BaseModel):
    """One round of a debate held in a single call."""

    model_config = ConfigDict(frozen=True)

    statements: list[Statement] = Field(description="one statement of each participant")


class NamedBallot(BaseModel):
    """A vote in a debate held in a single call."""

    model_config = ConfigDict(frozen=True)

    voter: str = Field(description="the participant's name")
    reason: str = Field(description="why")
    vote: str = Field(description="the answer voted for, in brief")


class HoldTownHall(dspy.Signature):
    """Hold a town hall debate on the question, all by yourself, and report the outcome.

    Begin by naming the participants who can contribute to the question, as many as `participants` says. Let them
    debate for as many rounds as `rounds` says: in the first round each presents its own solution; in every further
    round each criticises and rebuts the others where there is reason to, and restates or revises its own solution.
    After the last round each participant votes for one answer and says why. The answer with the most votes is the
    final answer.
    """

    question: str = dspy.InputField(desc="the question to be debated")
    participants: int = dspy.InputField(desc="how many participants debate")
    rounds: int = dspy.InputField(desc="how many rounds they debate before the vote")
    personas: list[Persona] = dspy.OutputField(desc="the participants")
    debate: list[DebateRound] = dspy.OutputField(desc="the rounds, in order")
    ballots: list[NamedBallot] = dspy.OutputField(desc="one vote of each participant")
    answer: str = dspy.OutputField(desc="the answer with the most votes, in full")
