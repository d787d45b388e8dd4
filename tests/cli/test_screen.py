from __future__ import annotations

import math

import pytest

from townhall.cli import screen
from townhall.cli.text import clean, one_line


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("plain\ntext", "plain\ntext"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "31mred"),
        ("a\x00b\x08c\rd", "abcd"),
        ("a\r\nb", "a\nb"),
        ("tab\tbed", "tab    bed"),
        ("\u202egnp.exe\u2066", "gnp.exe"),
        ("half \ud83d a character", "half  a character"),
        ("Zoë 東京 😀", "Zoë 東京 😀"),
        ("[red]markup[/red]", "[red]markup[/red]"),
    ],
)
def test_what_others_wrote_is_cleaned(text, safe):
    assert clean(text) == safe


def test_one_line_is_one_line():
    assert one_line(" a\n\n b\tc ") == "a b c"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (8.12, "8.1 s"), (125, "2 min 05 s"), (11_220, "3 h 07 min"), (None, "n/a")]
)
def test_durations(seconds, text):
    assert screen.seconds(seconds) == text


@pytest.mark.parametrize(
    ("dollars", "text"), [(0, "$0.00"), (0.00123, "$0.0012"), (1.5, "$1.50"), (1234.5, "$1,234.50"), (None, "unknown")]
)
def test_money(dollars, text):
    assert screen.money(dollars) == text


def test_scores_that_nothing_is_behind_are_not_zero():
    assert screen.fraction(None) == "n/a"
    assert screen.interval(None, 0.5) == "n/a"


def test_json_has_no_numbers_that_json_has_not(capsys):
    screen.print_json({"a": math.nan, "b": [math.inf, 1.5], "c": (1, 2)})
    assert (
        capsys.readouterr().out
        == '{\n  "a": null,\n  "b": [\n    null,\n    1.5\n  ],\n  "c": [\n    1,\n    2\n  ]\n}\n'
    )


def test_half_characters_do_not_break_json(capsys):
    screen.print_json({"text": "half \ud83d"})
    assert '"half \\ud83d"' in capsys.readouterr().out


def test_markup_of_models_is_shown_as_it_is(capsys):
    made = screen.rows(screen.table("x"), [("[bold]not bold[/bold] :smile:",)])
    screen.show(made)
    assert "[bold]not bold[/bold] :smile:" in capsys.readouterr().out
