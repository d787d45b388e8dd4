from __future__ import annotations

import io
import subprocess
import sys

import pytest

from townhall.evaluation.assembly import program
from townhall.evaluation.progress import Bar, Lines, State, automatic, duration, in_words, label
from townhall.evaluation.run import evaluate
from townhall.signatures.transcript import Usage


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_time_left_goes_by_calls_where_calls_are_made():
    # One example of four came from the cache at once; two more of 12 calls each are half done after 60 seconds.
    usage = Usage(calls=12, cached=12)
    state = State("grids", total=4, done=1, usage=usage, elapsed=60.0, paid_now=12, calls_each=12.0)
    assert state.left == 60 / 12 * (48 - 24)
    # A resumed run: 30 calls were made before; now 10 in 20 seconds, and 40 of 80 are to come.
    resumed = State(
        "grids", total=8, done=4, resumed=3, usage=Usage(calls=40), elapsed=20.0, paid_now=10, calls_each=10.0
    )
    assert resumed.left == 80
    assert State("grids", total=4, done=2, usage=Usage(cached=24), elapsed=1.0, calls_each=12.0).left == 1


def test_a_state_says_done_score_calls_tokens_cost_and_time_left():
    usage = Usage(calls=90, cached=12, prompt_tokens=120_000, completion_tokens=3_400, cost=0.1234)
    state = State("grids", total=50, done=20, resumed=10, score=0.45, primary="puzzle", usage=usage, elapsed=30.0)
    # Ten examples in thirty seconds, thirty to go.
    assert in_words(state) == "20/50 done, puzzle 0.450, 90 calls (+12 cached), 123.4k tokens, $0.1234, 1:30 left"


def test_failures_blanks_and_unknown_costs_are_said():
    state = State("sums", total=4, done=4, score=0.5, failed=1, blank=2, usage=Usage(calls=4, cost=None), elapsed=5)
    assert in_words(state) == "4/4 done, score 0.500, 1 failed, 2 blank, 4 calls, 0 tokens, cost unknown, in 5 s"


def test_nothing_is_claimed_before_the_first_example():
    assert in_words(State("sums", total=4)) == "0/4 done, 0 calls, 0 tokens"


def test_simulated_figures_are_labelled():
    assert label(State("sums", total=1, simulated=True)) == "sums [simulated]"
    assert label(State("sums", total=1)) == "sums"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (200, "3:20"), (3599.6, "1:00:00"), (3725, "1:02:05")]
)
def test_durations_read_naturally(seconds, text):
    assert duration(seconds) == text


def test_a_terminal_gets_a_bar_and_a_file_gets_lines():
    assert isinstance(automatic(Terminal()), Bar)
    assert isinstance(automatic(io.StringIO()), Lines)


def test_lines_come_now_and_then(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("townhall.evaluation.progress.time.monotonic", lambda: now[0])
    stream = io.StringIO()
    lines = Lines(stream, every=15)
    lines.start(State("sums", total=100))
    for second in range(1, 41):
        now[0] = 100.0 + second
        lines.update(State("sums", total=100, done=second))
    lines.finish(State("sums", total=100, done=100))
    assert [line.split(",")[0] for line in stream.getvalue().splitlines()] == [
        "sums: 100 examples",
        "sums: 15/100 done",
        "sums: 30/100 done",
        "sums: 100/100 done",
    ]


def test_a_run_draws_its_bar_to_the_end(sums, adder, tmp_path):
    stream = Terminal()
    task = sums(3)
    lm, _ = adder()
    evaluate(program(task, "single"), task, split="all", lm=lm, out=tmp_path / "run", progress=Bar(stream))
    assert "sums, single" in stream.getvalue()
    assert "3/3" in stream.getvalue()
    assert "accuracy 1.000" in stream.getvalue()


def test_nothing_is_cut_off_where_the_terminal_has_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    bar = Bar(stream)
    usage = Usage(calls=12_345, cached=678, prompt_tokens=1_234_567, cost=1.25)
    state = State(
        "arithmetic, reflect-or-debate", 1000, 500, score=0.5, primary="accuracy", failed=3, blank=2, usage=usage,
        elapsed=600, simulated=True,
    )  # fmt: skip
    bar.start(state)
    bar.finish(state)
    for part in (label(state), "500/1000", "accuracy 0.500", "(+678 cached)", "1.2M tokens", "$1.25", "10:00 left"):
        assert part in " ".join(stream.getvalue().split())
    assert "…" not in stream.getvalue()


def test_a_library_call_is_silent(sums, adder, tmp_path, capsys):
    task = sums(2)
    lm, _ = adder()
    evaluate(program(task, "single"), task, split="all", lm=lm, out=tmp_path / "run")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_rich_is_imported_only_when_a_bar_is_drawn():
    code = "import sys, townhall.evaluation.run; print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
