import csv
import json
import random
from collections import Counter

import pytest

from townhall.errors import InputError
from townhall.tasks.access import task
from townhall.tasks.normad import LABELS

ROW = {
    "id": 5,
    "country": "japan",
    "rule_of_thumb": "Bow when greeting an elder.",
    "story": "Kim bowed to her grandmother at the door. Was that acceptable?",
    "gold_label": "yes",
}


def written(tmp_path, rows, name="stories.jsonl"):
    path = tmp_path / name
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    return path


def made_up(count, seed=0):
    rng = random.Random(seed)
    countries = ["japan", "egypt", "chile", "france"]
    return [
        {
            **ROW,
            "id": number,
            "country": rng.choice(countries),
            "story": f"Story {number}.",
            "gold_label": rng.choice(["yes", "no", "neutral"]),
        }
        for number in range(count)
    ]


class TestRows:
    def test_neutral_means_neither(self):
        assert task("normad").example({**ROW, "gold_label": "neutral"}, "line 1").gold == "neither"

    def test_country_group_and_label_are_there_to_group_by(self):
        meta = task("normad").example(ROW, "line 1").meta
        assert (meta["country"], meta["group"], meta["label"]) == ("japan", "Confucian", "yes")

    def test_the_hubs_field_names_are_read(self):
        row = {
            "ID": 3,
            "Country": "japan",
            "Rule-of-Thumb": ROW["rule_of_thumb"],
            "Value": "Respect for age.",
            "Story": ROW["story"],
            "Gold Label": "yes",
        }
        example = task("normad", context="value").example(row, "hub row 1")
        assert example.id == "3"
        assert "Value: Respect for age." in example.question

    def test_countries_are_found_in_other_spellings(self):
        for spelling in ("united_states_of_america", "United States of America", "united-states of america"):
            assert task("normad").example({**ROW, "country": spelling}, "x").meta["group"] == "English Speaking"
        assert task("normad").example({**ROW, "country": "timor_leste"}, "x").meta["group"] == "West and South Asia"

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"gold_label": "maybe"}, "line 3, field gold_label: 'maybe' is none of yes, no, neutral"),
            ({"country": "atlantis"}, "line 3: the country 'atlantis' has no group in the shipped"),
            ({"story": None}, "line 3: the field 'story' is missing"),
            ({"rule_of_thumb": ""}, "line 3: the context 'rot' needs the field 'rule_of_thumb'"),
        ],
    )
    def test_bad_rows_are_named(self, change, why):
        with pytest.raises(InputError, match=why):
            task("normad").example({**ROW, **change}, "line 3")


class TestContext:
    def test_shows_no_more_than_asked(self):
        shown = {context: task("normad", context=context).example(ROW, "x").question for context in ("none", "country")}
        shown["rot"] = task("normad").example(ROW, "x").question
        assert "Japan" not in shown["none"]
        assert "Japan" in shown["country"]
        assert "Bow when" not in shown["country"]
        assert "Bow when" in shown["rot"]

    def test_a_context_that_the_data_lacks_is_an_error(self):
        with pytest.raises(InputError, match="line 1: the context 'value' needs the field 'value'"):
            task("normad", context="value").example(ROW, "line 1")

    def test_an_unknown_context_is_an_error(self):
        with pytest.raises(InputError, match=r"option context: unknown 'rule'.*Known: none, country, value, rot"):
            task("normad", context="rule")

    def test_runs_with_different_contexts_take_the_same_stories(self, tmp_path):
        path = written(tmp_path, made_up(60))
        ids = [
            [example.id for example in task("normad", path, context=context).split("dev", limit=8)]
            for context in ("none", "country", "rot")
        ]
        assert ids[0] == ids[1] == ids[2]

    def test_demonstrations_show_the_same_context(self):
        assert "Rule of thumb" in task("normad").demonstrations()[0].question
        assert "Rule of thumb" not in task("normad", context="country").demonstrations()[0].question
        assert [demonstration.answer for demonstration in task("normad").demonstrations()] == ["yes", "neither"]


class TestGroups:
    def test_a_file_replaces_the_groups(self, tmp_path):
        groups = tmp_path / "groups.csv"
        groups.write_text("country,group\nJapan,Islands\n")
        normad = task("normad", groups=str(groups))
        assert normad.example(ROW, "x").meta["group"] == "Islands"

    def test_a_country_that_the_file_lacks_is_named(self, tmp_path):
        groups = tmp_path / "groups.csv"
        groups.write_text("country,group\nchile,South\n")
        with pytest.raises(InputError, match=r"line 8: the country 'japan' has no group in .*groups.csv"):
            task("normad", groups=str(groups)).example(ROW, "line 8")

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            ("land,group\njapan,x\n", "groups.csv, line 2: the column 'country' is missing"),
            ("country,group\njapan,\n", "groups.csv, line 2: the column 'group' is missing or empty"),
            ("country,group\njapan,x\nJapan,y\n", "groups.csv, line 3: country 'Japan' has two groups, 'x' and 'y'"),
            ("", "groups.csv: the file is empty"),
        ],
    )
    def test_bad_files_are_named(self, tmp_path, content, why):
        groups = tmp_path / "groups.csv"
        groups.write_text(content)
        with pytest.raises(InputError, match=why):
            task("normad", groups=str(groups)).example(ROW, "x")

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(InputError, match=r"none.csv: no such file"):
            task("normad", groups=tmp_path / "none.csv").example(ROW, "x")


class TestSplits:
    def test_each_group_and_label_is_split_half_a_quarter_a_quarter(self, tmp_path):
        normad = task("normad", written(tmp_path, made_up(400)))
        splits = normad.assign_splits(normad.examples)
        strata = Counter((example.meta["group"], example.gold) for example in normad.examples)
        for stratum, size in strata.items():
            here = Counter(
                split
                for example, split in zip(normad.examples, splits, strict=True)
                if (example.meta["group"], example.gold) == stratum
            )
            assert abs(here["train"] - size / 2) <= 1
            assert abs(here["dev"] - size / 4) <= 1
            assert abs(here["test"] - size / 4) <= 1

    def test_the_order_of_the_file_does_not_matter(self, tmp_path):
        rows = made_up(80)
        forward = task("normad", written(tmp_path, rows))
        backward = task("normad", written(tmp_path, rows[::-1], "back.jsonl"))
        assert [e.id for e in forward.split("test")] == [e.id for e in backward.split("test")]

    def test_a_story_told_of_two_countries_is_in_one_split(self, tmp_path):
        rows = made_up(80)
        twins = [{**row, "id": 1000 + row["id"], "country": "kenya", "gold_label": "no"} for row in rows]
        normad = task("normad", written(tmp_path, rows + twins))
        split = {}
        for name in ("train", "dev", "test"):
            for example in normad.split(name):
                assert split.setdefault(example.meta["story"], name) == name

    def test_a_split_is_shuffled(self, tmp_path):
        rows = sorted(made_up(200), key=lambda row: row["gold_label"])
        labels = [example.gold for example in task("normad", written(tmp_path, rows)).split("train")]
        assert labels != sorted(labels)
        assert set(labels[:30]) == set(LABELS)


class TestScoring:
    @pytest.fixture
    def example(self):
        return task("normad").example({**ROW, "gold_label": "neutral"}, "x")

    @pytest.mark.parametrize("answer", ["neither", "Neither", "neutral", "neither."])
    def test_the_right_label(self, example, answer):
        assert task("normad").score(answer, example).value == 1

    def test_a_wrong_label_is_told_the_right_one_and_the_rule(self, example):
        score = task("normad").score("no", example)
        assert (score.value, score.blank) == (0, False)
        assert "The right answer is neither, for Japan. The rule there: Bow" in score.feedback

    @pytest.mark.parametrize("answer", [None, "", "I do not know", "acceptable-ish"])
    def test_no_label_is_a_blank(self, example, answer):
        score = task("normad").score(answer, example)
        assert (score.value, score.blank) == (0, True)

    @pytest.mark.parametrize(
        ("text", "label"),
        [
            ("Yes.", "yes"),
            ("Answer: no", "no"),
            ("Neither yes nor no", "neither"),
            ("neutral", "neither"),
            ("I do not know", None),
            ("No, but yesterday it was", "no"),
            ("not unacceptable", None),
        ],
    )
    def test_reads_the_label_from_text(self, example, text, label):
        assert task("normad").extract(text, example) == label


@pytest.fixture(scope="module")
def normad(shared):
    return task("normad", shared / "data/normad/normad_eti.jsonl")


class TestSharedData:
    def test_all_rows_load_with_their_labels(self, normad):
        assert len(normad.examples) == 2633
        assert Counter(example.gold for example in normad.examples) == {"yes": 943, "no": 875, "neither": 815}

    def test_groups_have_their_published_sizes(self, normad):
        assert Counter(example.meta["group"] for example in normad.examples) == {
            "African-Islamic": 687,
            "West and South Asia": 652,
            "Orthodox Europe": 253,
            "Catholic Europe": 252,
            "Latin America": 232,
            "English Speaking": 209,
            "Protestant Europe": 183,
            "Confucian": 165,
        }

    def test_counts_by_country_equal_the_table(self, normad, shared):
        with (shared / "data/normad/counts_by_country.csv").open(encoding="utf-8-sig", newline="") as lines:
            table = list(csv.DictReader(lines))
        counts = Counter((example.meta["country"], example.gold) for example in normad.examples)
        groups = {example.meta["country"]: example.meta["group"] for example in normad.examples}
        assert len(table) == len(groups) == 75
        for row in table:
            country = row["country"]
            assert groups[country] == row["iw_bin"]
            assert [counts[country, label] for label in LABELS] == [int(row[k]) for k in ("yes", "no", "neutral")]

    def test_splits_keep_the_proportions_of_groups_and_labels(self, normad):
        total = len(normad.examples)
        stories = {}
        for name, share in (("train", 0.5), ("dev", 0.25), ("test", 0.25)):
            here = normad.split(name)
            assert abs(len(here) / total - share) < 0.02
            for field in ("group", "label"):
                whole = Counter(example.meta[field] for example in normad.examples)
                part = Counter(example.meta[field] for example in here)
                for value, size in whole.items():
                    assert abs(part[value] / len(here) - size / total) < 0.02, (name, value)
            for example in here:
                assert stories.setdefault(example.meta["story"], name) == name

    def test_every_context_that_the_file_has_loads_all_rows(self, shared, normad):
        for context in ("none", "country"):
            other = task("normad", shared / "data/normad/normad_eti.jsonl", context=context)
            assert len(other.examples) == 2633
            assert other.fingerprint == normad.fingerprint
