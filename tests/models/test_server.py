"""The simulated server speaks the protocol, counts, and goes wrong in every way it can be told to."""

from __future__ import annotations

import http.client
import json
import socket
import time
from urllib.parse import urlsplit

import pytest

from townhall.errors import InputError
from townhall.models.server import SimulatedProcess, SimulatedServer, main
from townhall.models.simulation import SimulatedBehaviour

SCHEMA = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}


def post(server, timeout=5, connection=None, path="/v1/chat/completions", **body):
    body = {"model": "x", "messages": [{"role": "user", "content": "How many?"}], **body}
    connection = connection or http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=timeout)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read()


def json_schema(schema=SCHEMA):
    return {"type": "json_schema", "json_schema": {"name": "r", "schema": schema, "strict": True}}


def test_a_completion_follows_the_schema_and_names_a_simulated_model():
    with SimulatedServer() as server:
        status, _, raw = post(server, response_format=json_schema(), seed=3)
        reply = json.loads(raw)
    assert status == 200
    assert isinstance(json.loads(reply["choices"][0]["message"]["content"])["answer"], int)
    assert reply["model"] == "simulated/x"
    assert reply["usage"]["total_tokens"] == reply["usage"]["prompt_tokens"] + reply["usage"]["completion_tokens"]
    assert server.bodies[0]["seed"] == 3


def test_requests_on_one_connection_are_counted():
    with SimulatedServer() as server:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=5)
        for _ in range(3):
            assert post(server, connection=connection)[0] == 200
        connection.request("GET", "/v1/stats")
        stats = json.loads(connection.getresponse().read())
    assert stats == {"requests": 3, "completed": 3, "statuses": {"200": 3}}


def test_models_are_listed_and_other_paths_are_not_found():
    with SimulatedServer() as server:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=5)
        connection.request("GET", "/v1/models")
        assert json.loads(connection.getresponse().read())["data"][0]["id"] == "simulated"
        assert post(server, path="/v1/other")[0] == 404
        assert post(server, messages="none")[0] == 400


def test_a_stream_carries_the_text_and_ends():
    with SimulatedServer(lambda call: "hello") as server:
        raw = post(server, stream=True)[2].decode()
    events = [line.removeprefix("data: ") for line in raw.splitlines() if line]
    assert json.loads(events[0])["choices"][0]["delta"]["content"] == "hello"
    assert events[-1] == "[DONE]"


@pytest.mark.parametrize(
    ("accepts", "format_", "status"),
    [
        ("json_schema", json_schema(), 200),
        ("json_object", json_schema(), 400),
        ("json_object", {"type": "json_object"}, 200),
        ("none", {"type": "json_object"}, 400),
        ("none", {"type": "text"}, 200),
        ("json_schema", {"type": "grammar"}, 400),
    ],
)
def test_response_formats_are_refused_beyond_what_it_accepts(accepts, format_, status):
    with SimulatedServer(accepts=accepts) as server:
        assert post(server, response_format=format_)[0] == status


def test_faults_come_at_their_request_and_only_there():
    faults = {1: "429:0.5", 2: "500", 3: "empty", 4: "half-json"}
    with SimulatedServer(faults=faults) as server:
        status, headers, _ = post(server)
        assert (status, headers["Retry-After"]) == (429, "0.5")
        assert post(server)[0] == 500
        assert json.loads(post(server)[2])["choices"][0]["message"]["content"] == ""
        half = json.loads(post(server, response_format=json_schema())[2])["choices"][0]["message"]["content"]
        assert half.startswith("{")
        assert not half.endswith("}")
        assert post(server)[0] == 200
    assert server.stats() == {"requests": 5, "completed": 3, "statuses": {"429": 1, "500": 1, "200": 3}}


def test_connections_are_cut_and_bodies_break_off():
    with SimulatedServer(faults=["refuse", "half-body"]) as server:
        with pytest.raises((ConnectionError, http.client.BadStatusLine)):
            post(server)
        with pytest.raises(http.client.IncompleteRead):
            post(server)
        assert post(server)[0] == 200
    assert server.statuses == {"cut": 2, "200": 1}


def test_a_stalled_request_does_not_hold_up_others_nor_the_end():
    started = time.monotonic()
    with SimulatedServer(faults={1: "stall"}) as server:
        with pytest.raises(TimeoutError):
            post(server, timeout=0.2)
        assert post(server)[0] == 200
    assert time.monotonic() - started < 5


def test_a_server_that_is_down_refuses_connections_and_comes_back_on_its_port():
    with SimulatedServer() as server:
        url = server.url
        with server.refusing(), pytest.raises(ConnectionRefusedError):
            post(server)
        assert server.url == url
        assert post(server)[0] == 200


def test_a_key_is_demanded_when_there_is_one():
    with SimulatedServer(api_key="secret") as server:
        assert post(server)[0] == 401


def test_latency_is_waited_for_at_the_same_time_by_many():
    with SimulatedServer(behaviour=SimulatedBehaviour(latency=0.2)) as server:
        connections = [http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=5) for _ in range(20)]
        body = json.dumps({"model": "x", "messages": [{"role": "user", "content": "?"}]})
        started = time.monotonic()
        for connection in connections:
            connection.request("POST", "/v1/chat/completions", body)
        assert all(connection.getresponse().status == 200 for connection in connections)
        assert 0.2 <= time.monotonic() - started < 2


def test_what_a_responder_raises_is_kept_for_its_author():
    with SimulatedServer(lambda call: 1 / 0) as server:
        status, _, raw = post(server)
    assert status == 500
    assert "division by zero" in raw.decode()
    assert isinstance(server.errors[0], ZeroDivisionError)


def test_wrong_settings_are_refused_in_words():
    with pytest.raises(InputError, match="accepts is 'all'"):
        SimulatedServer(accepts="all")
    with pytest.raises(InputError, match="unknown fault 'fire'"):
        SimulatedServer(faults=["fire"])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="cannot be opened"):
            SimulatedServer(port=taken.getsockname()[1]).start()


def test_the_command_runs_it_in_a_process_of_its_own():
    with SimulatedProcess("latency=0.01", ["--fault", "1=500", "--every", "3=429:0.1"]) as server:
        statuses = [post(server)[0] for _ in range(4)]
        assert statuses == [500, 200, 429, 200]
        assert server.stats()["requests"] == 4


@pytest.mark.parametrize("arguments", [["--fault", "x=500"], ["--fault", "1=fire"], ["--behaviour", "speed=1"]])
def test_the_command_refuses_wrong_arguments_with_exit_code_2(arguments, capsys):
    assert main(["--port", "0", *arguments]) == 2
    assert capsys.readouterr().err.startswith("error: ")
