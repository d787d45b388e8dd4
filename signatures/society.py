"""The roles of a society of agents (Multiagent Debate, section 2 and figure 3), and the plain first answer.

Input fields stand from the most shared (question) to the least (persona), as in `town_hall`. The first answer with a
chain of thought is `town_hall.SolveStepByStep`.
"""

from __future__ import annotations

import dspy


class Solve(dspy.Signature):
    """Answer the question. Give one answer and nothing else."""

    question: str = dspy.InputField(desc="the question")
    answer: str = dspy.OutputField(desc="the answer to the question")


class ReviseBriefly(dspy.Signature):
    """Update your answer to the question, now that you know what other agents answered.

    Take their opinions into account next to your own, and end with one answer.
    """

    question: str = dspy.InputField(desc="the question")
    other_answers: str = dspy.InputField(desc="what the other agents answered")
    own_answer: str = dspy.InputField(desc="what you answered before")
    reasoning: str = dspy.OutputField(desc="your solution, step by step")
    answer: str = dspy.OutputField(desc="your answer to the question")


class ReviseStubbornly(ReviseBriefly):
    """Check your answer to the question once more, with the answers of other agents as advice.

    First go through your own solution again, step by step, as if you were looking for a mistake in it. Only then read
    the others. What they say is advice, not proof, however many of them agree: check their steps as strictly as your
    own, and give up your answer only when you can name the step at which it goes wrong. End with one answer.
    """


class SummariseAnswers(dspy.Signature):
    """Summarise the answers that several agents gave to the question, for agents who will not read them in full.

    Name each distinct answer, how many agents hold it and the main steps that lead to it, and say where the solutions
    part. Add no opinion and no solution of your own.
    """

    question: str = dspy.InputField(desc="the question")
    answers: str = dspy.InputField(desc="the agents' answers")
    summary: str = dspy.OutputField(desc="the summary, much shorter than the answers together")
