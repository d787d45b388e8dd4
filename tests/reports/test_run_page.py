"""The pages of a run and of a debate: what they show, and that nothing in them runs."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from townhall.errors import InputError
from townhall.evaluation.records import Group, Interval, Record, RunInfo, Summary
from townhall.evaluation.run_folder import Run
from townhall.reports.debate_page import DebateView, write_debate_page
from townhall.reports.run_page import write_run_page
from townhall.signatures.transcript import Candidate, Decision, Persona, Transcript, Turn, Usage


class Reader(HTMLParser):
    """The texts and tags of a page, and each element's classes."""

    def __init__(self):
        super().__init__()
        self.texts, self.tags, self.classes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.classes += [(tag, name) for name in (dict(attrs).get("class") or "").split()]

    def handle_data(self, data):
        self.texts.append(data)


def read(page):
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    return " ".join(" ".join(reader.texts).split()), reader


def turn(agent, round_, answer, role="argue", **said):
    name = f"Agent {agent + 1}"
    return Turn(round=round_, agent=agent, name=name, role=role, model="some/model", said=said or {"argument": "so"},
                answer=answer, bucket=None if answer is None else str(answer), abstained=answer is None)  # fmt: skip


def transcript(*turns, answer=4, **changes):
    decision = Decision(
        rule="majority",
        answer=answer,
        candidates=[Candidate(number=1, answer=4, bucket="4", supporters=[0], votes=1),
                    Candidate(number=2, answer=5, bucket="5", supporters=[1], votes=1)],
        tie=True,
        tie_break="first agent",
    )  # fmt: skip
    return Transcript(**{"strategy": "society", "question": "2 + 2?", "turns": turns, "decision": decision, **changes})


DEBATE = transcript(turn(0, 1, 5), turn(1, 1, None), turn(0, 2, 4, "rebut"), turn(1, 2, 5, "rebut"))


def record(index, score, said=DEBATE, **changes):
    fields = {
        "id": f"sum-{index}",
        "fingerprint": f"{index:064}",
        "question": "2 + 2?",
        "gold": 4,
        "answer": 4 if score else 5,
        "answer_scores": {"4": 1.0, "5": 0.0},
        "usage": Usage(calls=3, cached=1, prompt_tokens=100, completion_tokens=20),
        **changes,
    }
    return Record(index=index, score=score, transcript=said, **fields)


def run(records, **changes):
    info = RunInfo(task="arithmetic", task_version=1, examples_fingerprint="e" * 64, n=9, split="test", order="file",
                   strategy="society", settings={"agents": 2, "rounds": 2}, program_fingerprint="p" * 64,
                   models=[{"name": "some/model"}], adapter="json", source="sums.jsonl")  # fmt: skip
    fields = {
        "scores": {"accuracy": 0.25, "hard": None},
        "intervals": {"accuracy": Interval(low=0.1, high=0.5, method="wilson", n=4)},
        "usage": Usage(calls=12, cost=None),
        "usage_by_role": {"argue": Usage(calls=12, cost=None)},
        "dynamics": {"agreement": [0.5, 1.0], "accuracy": [0.0, 0.5], "flips": {"wrong -> right": [3]}},
        **changes,
    }
    summary = Summary(task="arithmetic", n=len(records), total=9, status=fields.pop("status", "complete"),
                      primary="accuracy", **fields)  # fmt: skip
    return Run(Path("runs/mine"), info, records, summary)


def test_a_run_shows_scores_with_intervals_rounds_costs_and_each_example(tmp_path):
    records = [record(0, 1.0), record(1, 0.0), record(2, 0.0, blank=True), record(3, 0.0, error="no reply")]
    text, page = read(write_run_page(run(records), tmp_path / "run.html"))
    for part in (
        "arithmetic · society",
        "test split, 4 of 9 examples from sums.jsonl.",
        "Models: some/model. agents=2",
        "accuracy 0.250 0.100 to 0.500 4",
        "hard n/a",
        "agents that are right 0.000 0.500",
        "wrong -> right 3",
        "argue 12 0 0 0 n/a",
        "all 4 1 right 1 wrong 1 blank 1 failed",
        "4 calls, 120 tokens paid for.",
        "Decided by majority; a tie, broken by: first agent.",
        "failed (None): no reply",
    ):
        assert part in text, part
    shown = [name for tag, name in page.classes if tag == "details"]
    assert shown == ["right", "wrong", "blank", "failed"]
    assert "Simulated" not in text


def test_each_agents_answers_are_shown_by_round_as_right_wrong_or_blank():
    view = DebateView(DEBATE, {"4": 1.0, "5": 0.0})
    assert view.course == [
        ("Agent 1", [("5", "wrong"), ("4", "right")]),
        ("Agent 2", [("(none)", "blank"), ("5", "wrong")]),
    ]
    assert DebateView(DEBATE).course[0] == ("Agent 1", [("5", ""), ("4", "")])
    assert [(title, len(turns)) for title, turns in view.parts] == [("Round 1", 2), ("Round 2", 2)]


def test_only_the_records_that_are_asked_for_are_shown(tmp_path):
    found = run([record(0, 1.0), record(1, 0.0)])
    text, page = read(write_run_page(found, tmp_path / "run.html", [found.records[1]]))
    assert "sum-1" in text
    assert "sum-0" not in text
    assert "input" not in page.tags  # nothing to choose from
    assert "2 of 9 examples" in text


def test_what_models_and_data_say_is_text(tmp_path):
    bad = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    said = transcript(
        turn(0, 1, bad, argument=bad, critiques=[{"target": bad, "critique": bad}]),
        Turn(round=1, role="judge", name=bad, said={"reason": bad}),
        question=bad,
        personas=[Persona(name=bad, expertise=bad, stance=bad)],
        answer={"header": [bad], "rows": [[bad]]},
    )
    found = run([record(0, 0.0, said, id=bad, feedback=bad, gold=bad, answer=bad), record(1, 0.0, error=bad)],
                status="stopped", reason=bad)  # fmt: skip
    for page in (
        write_run_page(found, tmp_path / "run.html"),
        write_debate_page(said, tmp_path / "debate.html", notes=[bad]),
    ):
        assert {"script", "img"}.isdisjoint(read(page)[1].tags)
        assert bad not in page.read_text(encoding="utf-8")


def test_half_a_character_is_written_as_a_question_mark(tmp_path):
    page = write_debate_page(transcript(turn(0, 1, 4, argument="odd \ud83d end")), tmp_path / "d.html", notes=[])
    assert "odd ? end" in read(page)[0]


def test_a_page_loads_nothing_from_elsewhere(tmp_path):
    page = write_run_page(run([record(0, 1.0)]), tmp_path / "run.html").read_text(encoding="utf-8")
    assert not re.search(r"(?:src|href)=|url\(|@import", page)


def test_a_grid_is_a_table_and_named_personas_stand_above_the_turns(tmp_path):
    grid = {"header": ["House", "Name"], "rows": [["1", "Eric"], ["2", "Arnold"]]}
    said = transcript(
        Turn(round=0, role="identify", name="Moderator", said={"personas": []}),
        turn(0, 1, 4),
        answer=grid,
        personas=[Persona(name="Ada", expertise="logic")],
    )
    text, _ = read(write_debate_page(said, tmp_path / "d.html", notes=["Models: m"], simulated=True))
    assert "House Name 1 Eric 2 Arnold" in text
    assert "Participants Ada · logic" in text
    assert "identify" not in text
    assert "Simulated: these words come from a simulated model" in text


def test_groups_simulated_figures_and_an_early_stop_are_said(tmp_path):
    groups = {"X": Group(n=2, scores={"accuracy": 0.5, "parity": 1.0}, flags=["tiny"])}
    found = run([record(0, 1.0)], status="stopped", reason="12 of 12 calls", simulated=True, by="kind", groups=groups)
    text, _ = read(write_run_page(found, tmp_path / "run.html"))
    assert "Stopped: 12 of 12 calls" in text
    assert "By kind" in text
    assert "X (tiny) 2 0.500 1.000" in text
    assert "Simulated: these figures" in text


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/page\.html: cannot be written"):
        write_run_page(run([record(0, 1.0)]), tmp_path / "file" / "page.html")
