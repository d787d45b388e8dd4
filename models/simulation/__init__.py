"""The simulated model's mind, without any transport: what it is asked, and what it answers.

A *responder* is any function from a `Call` to a reply: a mapping (sent as JSON) or a text (sent as it is). The default
one, `Simulation`, fills the JSON schema it is shown with labelled text, and answers questions whose answers it was
given rightly or wrongly, as its `SimulatedBehaviour` says. Every reply depends on the behaviour's seed, the model's
name, the messages and the request's seed only: the same call gives the same reply, in any order, on any machine.

Nothing here is a language model. Whatever comes out is labelled: the model's name starts with "simulated".
"""

from .behaviour import AnswerKey, SimulatedBehaviour, parse_behaviour, parse_name, read_answers
from .calls import FAULTS, LABEL, Call, Fault, FaultError, Reply, Responder
from .chance import chance, draw
from .responders import Scripted, Simulation, fit, spoil, when, with_fields
from .speech import Speaker, Spoken, finish, render, spoilt, tokens

__all__ = [
    "FAULTS",
    "LABEL",
    "AnswerKey",
    "Call",
    "Fault",
    "FaultError",
    "Reply",
    "Responder",
    "Scripted",
    "SimulatedBehaviour",
    "Simulation",
    "Speaker",
    "Spoken",
    "chance",
    "draw",
    "finish",
    "fit",
    "parse_behaviour",
    "parse_name",
    "read_answers",
    "render",
    "spoil",
    "spoilt",
    "tokens",
    "when",
    "with_fields",
]
