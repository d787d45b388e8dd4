"""What leaves is what DSPy sends: byte for byte, call for call, and with the same answer."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import sys

import dspy
import pytest

from townhall.evaluation.assembly import program as assemble
from townhall.models.resolve import lm as model
from townhall.models.server import SimulatedServer
from townhall.models.simulation import SimulatedBehaviour, Simulation
from townhall.optimize.export import export
from townhall.optimize.templates import render
from townhall.programs.base import STRATEGIES

#: Settings under which every role speaks.
SETTINGS = {
    "town-hall": {"personas": 3, "rounds": 2, "vote_when_unanimous": True},
    "town-hall-prompt": {"personas": 3, "rounds": 2},
    "society": {"agents": 3, "rounds": 3, "summarise": True, "history": "all"},
}
#: The strategies whose exported file is held against DSPy in further settings.
VARIANTS = [
    ("town-hall", {"personas": 3, "rounds": 3, "history": "all", "persona_style": "devils-advocate"}),
    ("town-hall", {"personas": 3, "persona_style": "listed", "persona_list": [{"name": "Ann", "expertise": "sums"}]}),
    ("town-hall", {"personas": 2, "rounds": 1, "show_names": False, "decision": "supermajority", "temperature": 0.3}),
    ("society", {"agents": 4, "topology": "ring", "prompt_style": "short", "cot": False}),
    ("debate-only", {"adjudication": "confident", "rounds": 3, "stop_when_unanimous": True}),
    ("debate-only", {"adjudication": "abstain", "cot": False}),
    ("majority", {"samples": 7, "temperatures": {"solve": 1.1}}),
]
COMMAND = ["--model", "known", "--seeds", "--concurrency", "1", "--response-format", "json_schema"]


@pytest.fixture
def server(arithmetic):
    """A capturing server: agents are right half of the time, one reply in ten is empty; same request, same reply."""
    answers = {example.question: example.gold for example in arithmetic.examples}
    speak = Simulation(SimulatedBehaviour(accuracy=0.5, conform=0.3, answers=answers))

    def responder(call):
        digest = hashlib.sha256(f"{call.seed}{call.text}".encode()).digest()
        return "" if digest[0] < 26 else speak(call)

    with SimulatedServer(responder) as running:
        yield running


@pytest.fixture
def reliable_server(arithmetic):
    answers = {example.question: example.gold for example in arithmetic.examples}
    with SimulatedServer(behaviour=SimulatedBehaviour(accuracy=0.5, answers=answers)) as running:
        yield running


@pytest.fixture
def questions(arithmetic):
    return [example.question for example in arithmetic.split("test", limit=3)]


def body_key(body):
    return json.dumps([body["messages"], body.get("seed"), body.get("temperature")], sort_keys=True)


def calls_of(program, question, lm):
    """Return the prediction and the (role, inputs) of its readable calls, in order."""
    with dspy.context(lm=lm, trace=[]):
        prediction = program(question=question)
        names = {id(predictor): name for name, predictor in program.named_predictors()}
        calls = [(names[id(predictor)], inputs) for predictor, inputs, _ in dspy.settings.trace]
    return prediction, calls


@pytest.mark.parametrize("strategy", STRATEGIES.names())
def test_rendered_messages_are_what_a_server_receives_byte_for_byte(strategy, arithmetic, server, questions, tmp_path):
    program = assemble(arithmetic, strategy, **{"shots": 1, **SETTINGS.get(strategy, {})})
    export(program, tmp_path / "messages.json", format="messages", task=arithmetic)
    roles = json.loads((tmp_path / "messages.json").read_text())["roles"]
    lm = model("openai/known", api_base=server.url, cache=False)
    spoken = set()
    for question in questions:
        before = len(server.bodies)
        prediction, calls = calls_of(program, question, lm)
        received = [json.dumps(body["messages"]) for body in server.bodies[before:]]
        # A strategy of one call has no readable one where the server was silent twice.
        assert calls or prediction.decision.abstentions == 1
        for role, inputs in calls:
            rendered = json.dumps(render(roles[role]["messages"], inputs))
            assert rendered in received
            received.remove(rendered)
            spoken.add(role)
        # What is left are replies that could not be read: the same requests, made twice.
        assert set(received) <= {json.dumps(body["messages"]) for body in server.bodies[before:]}
    assert spoken == set(roles) or strategy in ("debate-only", "reflect-or-debate")


@pytest.mark.parametrize(
    ("strategy", "settings"), [*((name, SETTINGS.get(name, {})) for name in STRATEGIES.names()), *VARIANTS]
)
def test_the_python_file_sends_the_same_requests_and_comes_to_the_same_answer(
    strategy, settings, arithmetic, server, questions, tmp_path, capsys
):
    program = assemble(arithmetic, strategy, **settings)
    export(program, tmp_path, format="python", task=arithmetic)
    debate = load_file(tmp_path / "debate.py")
    lm = model("openai/known", api_base=server.url, cache=False)
    for question in questions:
        before = len(server.bodies)
        prediction, _ = calls_of(program, question, lm)
        sent = [body_key(body) for body in server.bodies[before:]]
        before = len(server.bodies)
        arguments = [*COMMAND, "--api-base", server.url, "--json", question]
        assert debate.main(debate.DEBATE, "", None, arguments) == 0
        ours = [body_key(body) for body in server.bodies[before:]]
        assert sorted(ours) == sorted(sent)
        result = json.loads(capsys.readouterr().out)
        assert result["answer"] == prediction.answer
        assert result["decision"] == prediction.decision.model_dump(mode="json")
        assert server.errors == []


def load_file(path):
    spec = importlib.util.spec_from_file_location("exported_debate", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Pydantic looks annotations up in it
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("strategy", ["town-hall", "society", "debate-only"])
def test_the_python_file_sends_a_steps_requests_in_the_order_of_the_agents(
    strategy, arithmetic, reliable_server, questions, tmp_path, capsys
):
    server = reliable_server
    program = assemble(arithmetic, strategy, **SETTINGS.get(strategy, {}))
    export(program, tmp_path, format="python")
    export(program, tmp_path, format="messages")
    roles = json.loads((tmp_path / "messages.json").read_text())["roles"]
    debate = load_file(tmp_path / "debate.py")
    lm = model("openai/known", api_base=server.url, cache=False)
    _, calls = calls_of(program, questions[0], lm)
    expected = [render(roles[role]["messages"], inputs) for role, inputs in calls]
    before = len(server.bodies)
    arguments = [*COMMAND, "--api-base", server.url, questions[0]]
    assert debate.main(debate.DEBATE, "", None, arguments) == 0
    assert [body["messages"] for body in server.bodies[before:]] == expected


def test_the_python_file_runs_by_itself_in_a_process_that_has_no_townhall(arithmetic, server, questions, tmp_path):
    program = assemble(arithmetic, "town-hall", personas=2, rounds=2)
    [path] = export(program, tmp_path / "out" / "hall.py", format="python", task=arithmetic)
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    for package in ("townhall", "dspy", "json_repair", "litellm"):
        (blocked / f"{package}.py").write_text("raise ImportError('not here')")
    environment = {"PYTHONPATH": str(blocked), "PATH": ""}
    asked = subprocess.run([sys.executable, path, "--help"], capture_output=True, text=True, env=environment)
    assert asked.returncode == 0
    for option in ("--api-base", "--model", "--file", "--transcript"):
        assert option in asked.stdout
    lines = tmp_path / "questions.jsonl"
    lines.write_text("".join(json.dumps({"question": question}) + "\n" for question in questions[:2]))
    done = subprocess.run(
        [sys.executable, path, *COMMAND, "--api-base", server.url, "--file", lines],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert len([int(line) for line in done.stdout.split()]) == 2


def test_the_python_file_names_the_server_that_does_not_answer(arithmetic, tmp_path, capsys):
    [path] = export(assemble(arithmetic, "single"), tmp_path / "one.py", format="python", task=arithmetic)
    debate = load_file(path)
    arguments = [*COMMAND, "--api-base", "http://127.0.0.1:9/v1", "What is 2 + 3?"]
    assert debate.main(debate.DEBATE, "", None, arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error: http://127.0.0.1:9/v1: APIConnectionError: Connection error.\n"


def test_the_python_file_ends_quietly_when_nobody_reads_its_answers(arithmetic, server, questions, tmp_path):
    [path] = export(assemble(arithmetic, "single"), tmp_path / "one.py", format="python", task=arithmetic)
    lines = tmp_path / "questions.jsonl"
    lines.write_text("".join(json.dumps({"question": question}) + "\n" for question in questions[:3]))
    command = [sys.executable, str(path), *COMMAND, "--api-base", server.url, "--file", str(lines)]
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    reader.stdout.close()
    assert reader.stderr.read() == ""
    assert reader.wait(30) == 1


def test_an_artifacts_messages_survive_saving_and_loading_byte_for_byte(arithmetic, tmp_path):
    from townhall.optimize.artifact import load, save_artifact
    from townhall.optimize.templates import template

    for strategy in STRATEGIES.names():
        program = assemble(arithmetic, strategy, **{"shots": 1, **SETTINGS.get(strategy, {})})
        save_artifact(program, arithmetic, tmp_path / strategy)
        loaded = dict(load(tmp_path / strategy).named_predictors())
        for name, predictor in program.named_predictors():
            assert template(predictor) == template(loaded[name])
