"""OpenAI-compatible endpoints: formats found out once, seeds and keys on the wire, and every failure in words."""

from __future__ import annotations

import asyncio
import copy
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import dspy
import pytest
from dspy import lm15
from dspy.utils.exceptions import (
    AdapterParseError,
    ContextWindowExceededError,
    LMAuthError,
    LMBillingError,
    LMInvalidRequestError,
    LMNotConfiguredError,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMTransportError,
)

from townhall.errors import InputError
from townhall.models import output_formats
from townhall.models.endpoint import EndpointEngine, normal_base, without_credentials
from townhall.models.output_formats import FormatMemory, complains
from townhall.models.resolve import is_simulated, lm
from townhall.models.server import SimulatedServer
from townhall.models.simulation import Simulation, with_fields

ASKED = {"question": "How many?", "persona": "Ann"}


@pytest.fixture
def memory(tmp_path):
    return FormatMemory(tmp_path / "cache" / "endpoints.json")


def forget(monkeypatch):
    """Start as a new process does: with the file only."""
    monkeypatch.setattr(output_formats, "_NEGOTIATIONS", {})


def ask(debate, server, times=1, **settings):
    model = lm("openai/x", api_base=server.url, **{"cache": False, **settings})
    with dspy.context(lm=model):
        return [debate(**ASKED) for _ in range(times)][-1]


def formats(server):
    return [body.get("response_format", {}).get("type", "none") for body in server.bodies]


# -- output formats ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accepts", "first", "later"),
    [
        ("json_schema", ["json_schema"], "json_schema"),
        ("json_object", ["json_schema", "json_object"], "json_object"),
        ("none", ["json_schema", "json_object", "none"], "none"),
    ],
)
def test_the_format_is_found_out_by_the_first_call_and_remembered(accepts, first, later, debate, memory, monkeypatch):
    with SimulatedServer(accepts=accepts) as server:
        assert isinstance(ask(debate, server, times=3).answer, int)
        assert formats(server) == [*first, later, later]
        assert memory.recall(f"{server.url} x") == later
        forget(monkeypatch)
        ask(debate, server)
        assert formats(server)[-2:] == [later, later]
        assert server.statuses["400"] == len(first) - 1


def test_many_first_calls_find_out_only_once(debate):
    with SimulatedServer(accepts="none") as server, ThreadPoolExecutor(8) as pool:
        model = lm("openai/x", api_base=server.url, cache=False)
        with dspy.context(lm=model):
            asked = [pool.submit(copy_context().run, lambda: debate(**ASKED).answer) for _ in range(8)]
        assert all(isinstance(one.result(), int) for one in asked)
    assert server.statuses == {"400": 2, "200": 8}


def test_many_first_calls_of_an_event_loop_find_out_only_once(debate):
    async def ask_all():
        return await asyncio.gather(*(debate.acall(**ASKED) for _ in range(8)))

    with (
        SimulatedServer(accepts="json_object") as server,
        dspy.context(lm=lm("openai/x", api_base=server.url, cache=False)),
    ):
        assert len(asyncio.run(ask_all())) == 8
        assert len(asyncio.run(ask_all())) == 8  # another loop
    assert server.statuses == {"400": 1, "200": 16}


def test_a_server_that_takes_schemas_but_not_this_one_keeps_getting_the_others(debate):
    class Other(dspy.Signature):
        """Answer."""

        question: str = dspy.InputField()
        forbidden: str = dspy.OutputField()

    with SimulatedServer() as server:
        refuse = server._refusal
        server._refusal = lambda wanted: "unsupported keyword" if "forbidden" in json.dumps(wanted) else refuse(wanted)
        with dspy.context(lm=lm("openai/x", api_base=server.url, cache=False)):
            debate(**ASKED)
            dspy.Predict(Other)(question="Why?")
            dspy.Predict(Other)(question="Why?")
            debate(**ASKED)
    assert formats(server) == ["json_schema", "json_schema", "json_object", "json_object", "json_schema"]


def test_a_refusal_for_another_reason_is_raised_and_nothing_is_remembered(debate, memory):
    with SimulatedServer() as server:
        server._refusal = lambda wanted: "temperature is too high"
        with pytest.raises(LMInvalidRequestError, match="temperature is too high"):
            ask(debate, server)
        assert memory.recall(f"{server.url} x") is None


def test_what_dspy_asks_for_does_not_change_with_what_was_found_out(debate):
    with SimulatedServer(accepts="none") as server:
        model = lm("openai/x", api_base=server.url)
        with dspy.context(lm=model):
            first, again = debate(**ASKED), debate(**ASKED)
        assert again.argument == first.argument
        assert server.statuses["200"] == 1  # the second one came from the cache
        assert model.supports_response_schema
        assert "response_format" in model.supported_params


def test_findings_are_forgotten_after_a_month_and_a_broken_file_costs_nothing_else(memory, monkeypatch):
    memory.remember("http://a/v1 x", "none")
    assert memory.recall("http://a/v1 x") == "none"
    now = time.time()
    monkeypatch.setattr(output_formats.time, "time", lambda: now + 31 * 24 * 3600)
    assert memory.recall("http://a/v1 x") is None
    memory.file.write_text("{", encoding="utf-8")
    assert memory.recall("http://a/v1 x") is None
    memory.remember("http://a/v1 x", "json_object")
    assert memory.recall("http://a/v1 x") == "json_object"


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    FormatMemory(tmp_path / "file" / "endpoints.json").remember("e", "none")


@pytest.mark.parametrize(
    ("error", "about"),
    [
        (lm15.InvalidRequestError("anything", status=400), True),
        (lm15.InvalidRequestError("anything", status=422), True),
        (lm15.InvalidRequestError("conflict", status=409), False),
        (lm15.InvalidRequestError("maximum context length is 4096 tokens", status=400), False),
        (lm15.ContextLengthError("too long", status=400), False),
        (lm15.UnsupportedModelError("no such model", status=404), False),
        (lm15.ServerError("failed to parse grammar", status=500), True),
        (lm15.ServerError("overloaded", status=503), False),
        (lm15.RateLimitError("response_format", status=429), False),
    ],
)
def test_which_errors_may_be_about_the_format(error, about):
    assert complains(error) is about


# -- what goes over the wire -------------------------------------------------------------------------------------


def test_seed_temperature_and_limit_reach_the_server_and_the_rollout_id_does_not(debate):
    with SimulatedServer() as server:
        model = lm("openai/org/model", api_base=server.url, temperature=0.2, max_tokens=99, seed=5)
        with dspy.context(lm=model):
            debate(**ASKED)
            debate(**ASKED, config={"seed": 7, "temperature": 0.9, "rollout_id": 3})
    first, second = server.bodies
    assert (first["seed"], first["temperature"], first["max_tokens"], first["model"]) == (5, 0.2, 99, "org/model")
    assert (second["seed"], second["temperature"]) == (7, 0.9)
    assert "rollout_id" not in second
    assert first["messages"][0]["role"] == "system"


def test_keyless_servers_get_a_placeholder_and_keys_come_from_the_environment(debate, monkeypatch):
    with SimulatedServer() as server:
        ask(debate, server)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-one")
        ask(debate, server)
        monkeypatch.setenv("LAB_KEY", "sk-two")
        ask(debate, server, api_key_env="LAB_KEY")
    assert server.authorizations == ["Bearer no-key", "Bearer sk-one", "Bearer sk-two"]


def test_two_servers_with_a_model_of_the_same_name_do_not_share_the_cache(debate):
    one, two = (SimulatedServer(with_fields(Simulation(), answer=number)) for number in (1, 2))
    with one, two:
        assert [ask(debate, server, cache=True).answer for server in (one, two)] == [1, 2]


def test_a_simulated_model_behind_a_server_is_recognised_by_its_reply(debate):
    with SimulatedServer() as server:
        model = lm("openai/gpt-x", api_base=server.url)
        assert not is_simulated(model)
        with dspy.context(lm=model):
            debate(**ASKED)
        assert is_simulated(model)
        assert is_simulated(lm("openai/simulated-x", api_base=server.url))


# -- failures ----------------------------------------------------------------------------------------------------


def test_a_rate_limit_is_waited_out_as_long_as_the_server_says(debate, fast_retries):
    with SimulatedServer(faults={1: "429:0.7", 2: "429:3"}) as server:
        assert isinstance(ask(debate, server).answer, int)
    assert fast_retries == [0.7, 3.0]
    assert server.requests == 3


def test_a_rate_limit_that_stays_is_an_error(debate, fast_retries):
    with SimulatedServer(faults=["429:0.1"] * 4) as server, pytest.raises(LMRateLimitError) as caught:
        ask(debate, server)
    assert caught.value.retry_after == 0.1


def test_a_rate_limit_for_hours_ends_the_call_instead_of_sleeping(debate, fast_retries):
    with SimulatedServer(faults={1: "429:7200"}) as server, pytest.raises(LMBillingError, match="wait 7200 seconds"):
        ask(debate, server)
    assert fast_retries == []


@pytest.mark.parametrize("fault", ["500", "refuse", "half-body"])
def test_passing_failures_are_tried_again(fault, debate, fast_retries):
    with SimulatedServer(faults={1: fault, 2: fault}) as server:
        assert isinstance(ask(debate, server).answer, int)
    assert fast_retries == [1, 2]
    assert server.completed == 1


def test_a_server_error_that_stays_is_an_error(debate, fast_retries):
    with SimulatedServer(faults=["500"] * 4) as server, pytest.raises(LMServerError, match="simulated server error"):
        ask(debate, server)


def test_a_server_that_is_not_there_is_named(debate, fast_retries):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (
        dspy.context(lm=lm("x", api_base=f"http://127.0.0.1:{port}")),
        pytest.raises(LMTransportError, match=f"x@127.0.0.1:{port}/v1: the server is not reached .*is it running"),
    ):
        debate(**ASKED)
    assert len(fast_retries) == 3


def test_a_server_that_stalls_is_given_up_and_tried_again(debate, fast_retries):
    started = time.monotonic()
    with SimulatedServer(faults={1: "stall"}) as server:
        assert isinstance(ask(debate, server, timeout=0.3).answer, int)
    assert time.monotonic() - started < 5
    assert server.requests == 2


def test_a_server_that_stalls_for_ever_is_an_error_that_says_so(debate, fast_retries):
    with (
        SimulatedServer(faults=["stall"] * 4) as server,
        pytest.raises(LMTimeoutError, match=r"sent nothing for 0\.2 seconds"),
    ):
        ask(debate, server, timeout=0.2)


def test_calls_that_wait_for_a_stalled_first_one_do_not_stall_one_after_another(debate):
    started = time.monotonic()
    with SimulatedServer(faults=["stall"] * 6) as server, ThreadPoolExecutor(6) as pool:
        with dspy.context(lm=lm("openai/x", api_base=server.url, timeout=0.4, num_retries=0)):
            asked = [pool.submit(copy_context().run, lambda: debate(**ASKED)) for _ in range(6)]
        assert all(isinstance(one.exception(), LMTimeoutError) for one in asked)
    assert time.monotonic() - started < 2.2  # 0.4 for the first and 0.4 for the rest, not 6 * 0.4


@pytest.mark.parametrize("fault", ["empty", "half-json"])
def test_an_empty_or_broken_text_is_a_parse_failure_never_an_empty_field(fault, debate):
    with SimulatedServer(faults={1: fault}) as server, pytest.raises(AdapterParseError):
        ask(debate, server)


def test_a_wrong_or_missing_key_names_the_variable(debate, monkeypatch):
    with SimulatedServer(api_key="right") as server:
        with pytest.raises(LMAuthError, match="OPENAI_API_KEY is not set"):
            ask(debate, server)
        monkeypatch.setenv("LAB_KEY", "sk-wrong")
        with pytest.raises(LMAuthError, match="LAB_KEY is not accepted") as caught:
            ask(debate, server, api_key_env="LAB_KEY")
        assert "sk-wrong" not in str(caught.value)
        model = lm("x", api_base=server.url, api_key_env="LAB_KEY")
        model.engine.close()
        monkeypatch.delenv("LAB_KEY")
        with dspy.context(lm=model), pytest.raises(LMNotConfiguredError, match="LAB_KEY is not set"):
            debate(**ASKED)


def test_a_prompt_that_is_too_long_is_told_apart(debate):
    with SimulatedServer() as server:
        server._refusal = lambda wanted: "request exceeds the available context size (4096 tokens)"
        with pytest.raises(ContextWindowExceededError, match="context size"):
            ask(debate, server)
        assert server.requests == 1


@pytest.mark.parametrize("fault", ["429:0.1", "500", "refuse", "half-body"])
def test_the_asynchronous_twin_tries_again_too(fault, debate, fast_retries):
    with SimulatedServer(faults={1: fault}) as server, dspy.context(lm=lm("openai/x", api_base=server.url)):
        assert isinstance(asyncio.run(debate.acall(**ASKED)).answer, int)
    assert len(fast_retries) == 1


def test_the_asynchronous_twin_gives_up_a_stall(debate):
    with (
        SimulatedServer(faults=["stall"]) as server,
        dspy.context(lm=lm("openai/x", api_base=server.url, timeout=0.2, num_retries=0)),
        pytest.raises(LMTimeoutError, match="sent nothing"),
    ):
        asyncio.run(debate.acall(**ASKED))


# -- addresses, saving -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("http://h:1", "http://h:1/v1"),
        ("http://h:1/", "http://h:1/v1"),
        ("https://h/v1/", "https://h/v1"),
        ("https://h/v1/chat/completions", "https://h/v1"),
        ("https://h/api/v3", "https://h/api/v3"),
    ],
)
def test_an_address_has_one_spelling(given, base):
    assert normal_base(given) == base


@pytest.mark.parametrize("address", ["localhost:8000", "ftp://h/v1", "http://", "x"])
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(InputError, match="is not an address such as"):
        normal_base(address)


@pytest.mark.parametrize("address", ["http://me:secret@h/v1", "http://h/v1?key=secret"])
def test_an_address_with_a_password_is_refused_without_repeating_it(address):
    with pytest.raises(InputError, match="must carry no user name") as caught:
        normal_base(address)
    assert "secret" not in str(caught.value)
    assert without_credentials(address) == "http://h/v1"


@pytest.mark.parametrize("timeout", [0, -1, float("inf")])
def test_a_timeout_must_be_a_time(timeout):
    with pytest.raises(InputError, match="positive number of seconds"):
        EndpointEngine("x", "http://h", timeout=timeout)


def test_a_program_is_saved_with_it_without_the_key_and_loaded(tmp_path, debate, monkeypatch):
    monkeypatch.setenv("LAB_KEY", "sk-secret")
    with SimulatedServer(api_key="sk-secret") as server:
        debate.lm = lm("openai/x", api_base=server.url, api_key_env="LAB_KEY", temperature=0.5, timeout=30)
        before = debate(**ASKED)
        debate.save(tmp_path / "program.json")
        assert "sk-secret" not in (tmp_path / "program.json").read_text(encoding="utf-8")
        fresh = dspy.Predict(debate.signature)
        fresh.load(tmp_path / "program.json", allow_unsafe_lm_state=True)
        assert fresh.lm.engine.dump_state() == debate.lm.engine.dump_state()
        assert fresh.lm.engine.timeout == 30
        assert fresh(**ASKED).argument == before.argument
        assert asyncio.run(fresh.acall(**ASKED)).argument == before.argument


def test_copies_share_connections_and_the_key_is_in_no_text(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    model = lm("x", api_base="http://h", num_retries=1)
    assert "sk-secret" not in repr(model.engine._connect()) + repr(vars(model)) + repr(vars(model.engine))
    assert copy.deepcopy(model).engine is model.engine
    assert model.copy(temperature=1).engine is model.engine
    assert model.model == "x@h/v1"


def test_threads_share_one_client(debate):
    with SimulatedServer() as server:
        model = lm("openai/x", api_base=server.url, cache=False)
        clients = set()

        def connect():
            clients.add(id(model.engine._connect()))

        threads = [threading.Thread(target=connect) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(clients) == 1
