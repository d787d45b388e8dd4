"""The roles of self-reflection and of a debate between two agents (Debate for Equitable Cultural Alignment, method).

In all of them `own_answer` is the speaker's own answer and `other_answer` the other agent's; feedback is *received*
from the other agent and *given* to it.
"""

from __future__ import annotations

from typing import Literal

import dspy


class ReflectOnAnswer(dspy.Signature):
    """Reflect on your own answer to the question.

    Look for what speaks against it: conditions of the question that it overlooks, steps or assumptions that do not
    hold, readings of the question that you did not consider. Say what you find, or why the answer stands. Do not give
    a new answer yet.
    """

    question: str = dspy.InputField(desc="the question")
    own_answer: str = dspy.InputField(desc="what you answered")
    reflection: str = dspy.OutputField(desc="your criticism of your own answer, in a few sentences")


class ReviseAfterReflection(dspy.Signature):
    """Answer the question again, after you reflected on your answer.

    Keep your answer if it stands, change it if your reflection shows that it does not. End with one answer.
    """

    question: str = dspy.InputField(desc="the question")
    own_answer: str = dspy.InputField(desc="what you answered before")
    reflection: str = dspy.InputField(desc="your reflection on that answer")
    reasoning: str = dspy.OutputField(desc="your solution, step by step")
    answer: str = dspy.OutputField(desc="your answer to the question")


class GiveFeedback(dspy.Signature):
    """Give another agent feedback on its answer to the question.

    Check its answer against the question and against what you know. Say what is wrong or missing in it and why, or
    which of its points convince you. Speak to the other agent; do not restate your own answer.
    """

    question: str = dspy.InputField(desc="the question")
    own_answer: str = dspy.InputField(desc="what you answered")
    other_answer: str = dspy.InputField(desc="what the other agent answered")
    feedback: str = dspy.OutputField(desc="your feedback to the other agent, in a few sentences")


class ReviseAfterFeedback(dspy.Signature):
    """Answer the question again, after you and another agent gave each other feedback.

    Weigh the feedback by its reasons. Keep your answer if it stands, change it if it does not. End with one answer.
    """

    question: str = dspy.InputField(desc="the question")
    own_answer: str = dspy.InputField(desc="what you answered before")
    other_answer: str = dspy.InputField(desc="what the other agent answered before")
    feedback_received: str = dspy.InputField(desc="the other agent's feedback on your answer")
    feedback_given: str = dspy.InputField(desc="your feedback on the other agent's answer")
    reasoning: str = dspy.OutputField(desc="your solution, step by step")
    answer: str = dspy.OutputField(desc="your answer to the question")


class ChooseMove(dspy.Signature):
    """Choose your next move in a discussion of the question with another agent.

    "reflect": you look for mistakes in your own answer. "debate": you give the other agent feedback on its answer.
    Choose the move that is more likely to bring out the right answer, and say why.
    """

    question: str = dspy.InputField(desc="the question")
    own_answer: str = dspy.InputField(desc="what you answered")
    other_answer: str = dspy.InputField(desc="what the other agent answered")
    reason: str = dspy.OutputField(desc="why this move, in one sentence")
    choice: Literal["reflect", "debate"] = dspy.OutputField(desc="your move")


class ReviseAfterMoves(dspy.Signature):
    """Answer the question again, after you and another agent each reflected on the own answer or gave feedback.

    Weigh what was said by its reasons. Keep your answer if it stands, change it if it does not. End with one answer.
    """

    question: str = dspy.InputField(desc="the question")
    own_answer: str = dspy.InputField(desc="what you answered before")
    other_answer: str = dspy.InputField(desc="what the other agent answered before")
    own_move: str = dspy.InputField(desc="your reflection on your answer, or your feedback on the other's")
    other_move: str = dspy.InputField(desc="the other agent's reflection on its answer, or its feedback on yours")
    reasoning: str = dspy.OutputField(desc="your solution, step by step")
    answer: str = dspy.OutputField(desc="your answer to the question")


class JudgeDebate(dspy.Signature):
    """Decide a debate whose two sides still disagree about the question.

    Judge by the reasons that were given and by what you know, not by which side speaks first or at greater length.
    Say why, then name the side whose final answer is right, or nearer to it.
    """

    question: str = dspy.InputField(desc="the question under debate")
    debate: str = dspy.InputField(desc="all that the two sides said, up to their final answers")
    reason: str = dspy.OutputField(desc="why, in one or two sentences")
    side: Literal["first", "second"] = dspy.OutputField(desc="the side whose final answer wins")
