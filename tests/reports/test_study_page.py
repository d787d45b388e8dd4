"""The page of a study: what it shows, what it leaves out, and that nothing in it runs."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest

from townhall.errors import InputError
from townhall.optimize.space import Dimension
from townhall.optimize.study import StudyDescription, StudyResult, TrialResult
from townhall.reports.study_page import write_study_page

pytest.importorskip("matplotlib")


def trial(number, right, personas, rounds, *, n=20, state="complete", **settings):
    return TrialResult(
        number=number,
        state=state,
        settings={"personas": personas, "rounds": rounds, **settings},
        score=right / n,
        n=n,
        costs={"calls": float(personas * rounds), "tokens": 1234.0, "cost": None},
        calls=100,
        cached=300,
        scores={index: float(index < right) for index in range(n)},
    )


def study(*trials, **changes):
    description = StudyDescription(
        task="sums",
        task_version=1,
        task_fingerprint="a" * 64,
        split="dev",
        examples="b" * 64,
        n=20,
        strategy="town-hall",
        program="c" * 64,
        space=[Dimension("personas", "int", 1, 9), Dimension("rounds", "int", 1, 4)],
        fixed={},
        objectives=["score"],
        models=["some/model"],
    )
    return StudyResult(
        changes.pop("name", "my study"),
        Path("studies/mine"),
        changes.pop("storage", "study.db"),
        description.model_copy(update=changes),
        list(trials),
        lambda settings: settings,
    )


TRIALS = [
    trial(0, 8, 3, 2),
    trial(1, 14, 5, 3),
    trial(2, 12, 4, 3),
    trial(3, 11, 7, 3),
    trial(4, 1, 1, 1, n=6, state="pruned"),
]


class Text(HTMLParser):
    def __init__(self):
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attributes)
        assert not any("javascript:" in (value or "") for _, value in attributes)

    def handle_data(self, data):
        self.words.append(data)


def read(page):
    parser = Text()
    parser.feed(page.read_text(encoding="utf-8"))
    return " ".join(" ".join(parser.words).split()), parser.tags


def test_the_page_shows_the_choice_the_trials_and_four_plots(tmp_path):
    page = write_study_page(study(*TRIALS), {"personas": 0.7, "rounds": 0.3}, tmp_path / "deep" / "page.html")
    text, tags = read(page)
    assert "Chosen: #1 personas=5 rounds=3 , 70.0 % (95 % interval 48 to 85), 15 calls per question." in text
    for title in ("Score by personas and rounds", "Score against cost", "What mattered", "The course of the search"):
        assert title in text
    assert tags.count("svg") == 4
    assert "75.0 % of all replies came from the cache" in text
    assert "#4 pruned personas=1 rounds=1" in text
    assert "16.7 %" in text
    assert "$" not in text  # no price is known
    assert "Simulated" not in text


def test_the_drawings_are_well_formed_and_say_what_they_show(tmp_path):
    page = write_study_page(study(*TRIALS), {"personas": 0.7, "rounds": 0.3}, tmp_path / "page.html").read_text()
    by_shape, front, mattered, course = (
        "".join(ElementTree.fromstring(svg).itertext()) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    )
    assert "3 rounds" in by_shape
    assert "2 rounds" in by_shape
    assert "15" in by_shape  # calls of the chosen shape
    assert "Pareto front" in front
    assert "#1" in front
    assert "personas" in mattered
    assert "highest so far" in course


def test_a_lucky_trial_is_named_beside_the_chosen_one(tmp_path):
    shares = {1: 20, 2: 31, 3: 22, 4: 27, 5: 30, 6: 30, 7: 30, 8: 28, 9: 26}
    trials = [trial(number, right, personas, 2, n=40) for number, (personas, right) in enumerate(shares.items())]
    found = study(*trials)
    text, _ = read(write_study_page(found, {}, tmp_path / "page.html"))
    assert found.best_trial.number != 1
    assert "the highest score, 77.5 % of #1, is expected to be luck in part" in text
    assert "What mattered" not in text


def test_names_from_outside_are_escaped(tmp_path):
    bad = "<script>alert(1)</script>"
    found = study(
        *TRIALS, trial(5, 9, 5, 2, style=bad), name=bad, models=[bad], storage=f"postgresql://{bad}", task=bad
    )
    page = write_study_page(found, {bad: 1.0}, tmp_path / "page.html")
    assert "script" not in read(page)[1]
    assert bad not in page.read_text()


def test_a_page_loads_nothing_from_elsewhere(tmp_path):
    page = write_study_page(study(*TRIALS), {"personas": 1.0}, tmp_path / "page.html").read_text()
    links = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(link.startswith("#") for link in links)


def test_simulated_figures_are_labelled(tmp_path):
    page = write_study_page(study(*TRIALS, models=["simulated-model"]), {}, tmp_path / "page.html")
    assert "Simulated: these figures come from a simulated model" in read(page)[0]


def test_a_space_without_counts_has_no_plot_of_them(tmp_path):
    trials = [
        TrialResult(number, "complete", {"style": style}, right / 10, 10, {"calls": 3.0, "cost": 0.01}, 30, 0,
                    scores={index: float(index < right) for index in range(10)})
        for number, (style, right) in enumerate([("a", 3), ("b", 6)])
    ]  # fmt: skip
    found = study(*trials, space=[Dimension("style", "choice", choices=("a", "b"))])
    text, tags = read(write_study_page(found, {}, tmp_path / "page.html"))
    assert tags.count("svg") == 2
    assert "Score by" not in text
    assert "$0.0100" in text


def test_the_same_study_makes_the_same_page(tmp_path):
    one, two = (
        write_study_page(study(*TRIALS), {"personas": 1.0}, tmp_path / name).read_bytes() for name in ("one", "two")
    )
    assert one == two


def test_a_page_that_cannot_be_made_says_why(tmp_path):
    with pytest.raises(InputError, match="study 'my study' has no finished trial yet"):
        write_study_page(study(), {}, tmp_path / "page.html")
    with pytest.raises(InputError, match="has no finished trial yet"):
        write_study_page(study(TRIALS[4]), {}, tmp_path / "page.html")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_study_page(study(*TRIALS), {}, tmp_path / "file" / "page.html")
