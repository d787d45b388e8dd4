from __future__ import annotations

import json

import dspy
import pytest

from townhall.errors import InputError
from townhall.evaluation.assembly import program
from townhall.evaluation.run import evaluate
from townhall.evaluation.training_data import export_data
from townhall.programs.adapter import DebateAdapter

#: By the first operand: each agent's answers in the opening and in the revision.
COURSE = {
    0: [(1, 1, 1), (1, 1, 1)],  # unanimous from the start, right
    1: [(9, 3, 3), (3, 3, 3)],  # agent 0 is won over, right
    2: [(8, 8, 5), (8, 8, 8)],  # unanimous, wrong
    3: [(7, 7, 6), (7, 7, 6)],  # a majority, right
    4: [(1, 2, 3), (1, 2, 3)],  # nobody agrees
}


@pytest.fixture
def debate(sums, scripted_lm, asked, tmp_path):
    task = sums(5)
    seeds: dict[int, int] = {}

    def script(messages, seed):
        a, _ = asked(messages)
        agent = next(n for n in range(3) if f"You are Agent{n}." in messages[-1][1])
        later = "other_answers" in messages[-1][1]
        return {"reasoning": f"agent {agent}, {'later' if later else 'first'}", "answer": COURSE[a][later][agent]}

    lm, _ = scripted_lm(script)
    society = program(task, "society", agents=3, rounds=2, persona_list=[{"name": f"Agent{n}"} for n in range(3)])
    return evaluate(society, task, split="all", order="file", lm=lm, out=tmp_path / "run"), seeds


def test_unanimous_answers_are_kept_with_the_first_own_solution(debate):
    run, _ = debate
    data = export_data(run, "dspy")
    assert data.rows == [
        {"question": "What is 0 + 1?", "reasoning": "agent 0, first", "answer": 1},
        {"question": "What is 1 + 2?", "reasoning": "agent 1, first", "answer": 3},
        {"question": "What is 2 + 3?", "reasoning": "agent 0, first", "answer": 8},
    ]
    assert data.about["left_out"] == {"no agreement": 2}
    assert data.about["gold"] == "not looked at"


def test_a_majority_is_enough_when_asked_for(debate):
    run, _ = debate
    data = export_data(run, "dspy", agreement="majority")
    assert [row["answer"] for row in data.rows] == [1, 3, 8, 7]
    assert data.about["left_out"] == {"no agreement": 1}


def test_gold_filtering_is_optional_and_stated(debate):
    run, _ = debate
    data = export_data(run, "dspy", agreement="majority", only_right=True)
    assert [row["answer"] for row in data.rows] == [1, 3, 7]
    assert data.about["left_out"] == {"no agreement": 1, "wrong": 1}
    assert "right by the gold" in data.about["gold"]


def test_messages_are_those_that_a_single_model_is_asked_with(debate, sums, adder):
    run, _ = debate
    rows = export_data(run, "openai-chat").rows
    lm, engine = adder()
    single = program(sums(5), "single")
    with dspy.context(lm=lm, trace=None):
        single(question="What is 0 + 1?")
    sent = [{"role": role, "content": text} for role, text in engine.requests[0][0]]
    *prompt, reply = rows[0]["messages"]
    # The tiny task is not registered, so that its answer is exported as text.
    assert prompt[0]["content"].replace("(str)", "(int)").splitlines()[0] == sent[0]["content"].splitlines()[0]
    assert [message["role"] for message in prompt] == [message["role"] for message in sent] == ["system", "user"]
    assert reply["role"] == "assistant"
    assert json.loads(reply["content"]) == {"reasoning": "agent 0, first", "answer": 1}
    fields = DebateAdapter().parse(single.solve.signature, reply["content"])
    assert fields == {"reasoning": "agent 0, first", "answer": 1}


def test_hugging_face_rows_are_prompt_and_completion(debate):
    run, _ = debate
    row = export_data(run, "hf").rows[0]
    assert [message["role"] for message in row["prompt"]] == ["system", "user"]
    assert [message["role"] for message in row["completion"]] == ["assistant"]


def test_rows_and_how_they_were_made_are_written(debate, tmp_path):
    run, _ = debate
    data = export_data(run, "openai-chat")
    beside = data.write(tmp_path / "train.jsonl")
    lines = (tmp_path / "train.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == data.rows
    about = json.loads(beside.read_text())
    assert about["agreement"] == "unanimous"
    assert about["examples"] == 3
    assert sum(about["splits"].values()) == 3
    with pytest.raises(InputError, match="cannot be written"):
        data.write(tmp_path / "nowhere" / "train.jsonl")


def test_a_single_agent_agrees_with_nobody(sums, adder, tmp_path):
    task = sums(2)
    lm, _ = adder()
    run = evaluate(program(task, "single"), task, split="all", lm=lm, out=tmp_path / "alone")
    with pytest.raises(InputError, match="has one agent"):
        export_data(run)
    bare = evaluate(program(task, "majority"), task, split="all", lm=lm, out=tmp_path / "bare", keep_transcripts=False)
    with pytest.raises(InputError, match="transcripts were not kept"):
        export_data(bare)


def test_unknown_names_are_refused(debate):
    run, _ = debate
    with pytest.raises(InputError, match=r"unknown format 'csv'. Known: openai-chat, dspy, hf"):
        export_data(run, "csv")
    with pytest.raises(InputError, match="unknown agreement 'most'"):
        export_data(run, agreement="most")
