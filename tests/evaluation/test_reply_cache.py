from __future__ import annotations

import sqlite3
import threading

import dspy
import pytest
from pydantic import BaseModel, ConfigDict

from townhall.errors import InputError
from townhall.evaluation.reply_cache import ReplyCache, replies


def ask(lm, text):
    with dspy.context(lm=lm):
        return lm(text)


def test_a_reply_is_served_to_the_next_process_and_nothing_is_billed(scripted_lm, tmp_path):
    lm, engine = scripted_lm(lambda messages, seed: "seven", cache=True)
    with replies(tmp_path):
        assert ask(lm, "3 + 4?") == ["seven"]
    # Another process has its own connection to the same file.
    found = ReplyCache(tmp_path)
    assert len(found) == 1
    found.close()
    with replies(tmp_path), dspy.track_usage() as usage:
        assert ask(lm, "3 + 4?") == ["seven"]
    assert len(engine.requests) == 1
    assert not usage.get_total_tokens()


def test_other_requests_rollouts_and_servers_have_replies_of_their_own(scripted_lm, tmp_path):
    cache = ReplyCache(tmp_path)
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "temperature": 0.7}
    cache.put(request, {"text": "one"})
    assert cache.get(request) == {"text": "one"}
    assert cache.get({**request, "rollout_id": 2}) is None
    assert cache.get({**request, "temperature": 0.8}) is None
    # DSPy's own cache would serve this one: it leaves the address out.
    assert cache.get({**request, "api_base": "http://elsewhere:8000/v1"}) is None
    assert cache.get({**request, "api_key": "sk-1"}) == {"text": "one"}
    cache.close()


def test_no_key_is_stored(tmp_path):
    cache = ReplyCache(tmp_path)
    cache.put({"model": "m", "api_key": "sk-very-secret"}, {"text": "one"})
    cache.close()
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"sk-very-secret" not in stored


def test_a_fresh_block_asks_again_and_keeps_the_new_reply(scripted_lm, tmp_path):
    answers = iter(["one", "two"])
    lm, _ = scripted_lm(lambda messages, seed: next(answers), cache=True)
    with replies(tmp_path):
        assert ask(lm, "hi") == ["one"]
    with replies(tmp_path, serve=False):
        assert ask(lm, "hi") == ["two"]
    with replies(tmp_path):
        assert ask(lm, "hi") == ["two"]


def test_the_users_own_cache_is_back_afterwards_also_out_of_nested_blocks(tmp_path):
    own = dspy.cache
    with replies(tmp_path / "a") as outer:
        assert dspy.cache is outer
        with replies(tmp_path / "a") as again:
            assert again is outer
        with replies(tmp_path / "b") as inner:
            assert dspy.cache is inner
        assert dspy.cache is outer
    assert dspy.cache is own


def test_blocks_in_several_threads_leave_the_users_own_cache_behind(tmp_path):
    own = dspy.cache
    both_in = threading.Barrier(2)

    def work(name):
        with replies(tmp_path / name):
            both_in.wait(10)

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert dspy.cache is own


def test_many_threads_write_and_read_at_once(tmp_path):
    cache = ReplyCache(tmp_path)
    wrong = []

    def work(worker):
        for number in range(50):
            request = {"messages": f"{worker}/{number}"}
            cache.put(request, {"text": f"{worker}/{number}"})
            if cache.get(request) != {"text": f"{worker}/{number}"}:
                wrong.append(request)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(cache) == 400
    cache.close()


class Choice(BaseModel):
    message: dict[str, str]


class LegacyResponse(BaseModel):
    """Shaped as LiteLLM's responses are."""

    model_config = ConfigDict(extra="allow")

    model: str
    choices: list[Choice]
    usage: dict[str, int]


def test_responses_of_the_litellm_path_come_back_readable_and_unbilled(tmp_path):
    cache = ReplyCache(tmp_path)
    response = LegacyResponse(
        model="m", choices=[Choice(message={"content": "seven"})], usage={"prompt_tokens": 3, "completion_tokens": 1}
    )
    object.__setattr__(response, "_hidden_params", {"response_cost": 0.002})
    cache.put({"model": "m"}, response)
    found = cache.get({"model": "m"})
    assert found.choices[0].message.content == "seven"
    assert found.usage == {}
    assert found.cache_hit
    assert found._hidden_params["response_cost"] == 0.002
    cache.close()


def test_what_is_not_json_lives_as_long_as_the_process(tmp_path):
    cache = ReplyCache(tmp_path)
    cache.put({"texts": ["a"]}, {1.5, 2.5})
    assert cache.get({"texts": ["a"]}) == {1.5, 2.5}
    assert len(cache) == 0
    cache.close()


def test_a_disk_that_fails_does_not_lose_a_reply_that_was_paid_for(tmp_path):
    cache = ReplyCache(tmp_path)
    cache.close()
    cache.put({"model": "m"}, {"text": "dear"})
    assert cache.get({"model": "m"}) == {"text": "dear"}


def test_a_cache_that_cannot_be_opened_is_an_input_error(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(InputError, match="TOWNHALL_CACHE"):
        ReplyCache(file)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "replies.sqlite").write_text("this is no database, but it is long enough to look at" * 50)
    with pytest.raises(InputError, match="cannot be opened"):
        ReplyCache(broken)


def test_replies_are_plain_text(tmp_path):
    cache = ReplyCache(tmp_path)
    cache.put({"model": "m"}, {"text": "sept, 七"})
    cache.close()
    with sqlite3.connect(tmp_path / "replies.sqlite") as connection:
        [(reply,)] = connection.execute("SELECT reply FROM replies").fetchall()
    assert reply == '{"text": "sept, 七"}'
