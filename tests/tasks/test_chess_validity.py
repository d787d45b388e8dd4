import json

import pytest

from townhall.errors import InputError
from townhall.metrics.chess import chess_library
from townhall.tasks.access import task

SQUARES = [file + rank for file in "abcdefgh" for rank in "12345678"]
ROW = {"moves": "e2e4 e7e5 g1", "answers": ["f3", "h3", "e2"]}


class TestGenerator:
    def test_makes_as_many_different_games_as_asked(self):
        examples = task("chess-validity", count=40).examples
        assert len({example.question for example in examples}) == 40

    def test_exactly_the_legal_targets_are_right(self):
        chess = chess_library()
        validity = task("chess-validity", count=25, seed=4)
        for row, example in zip(validity.generate(), validity.examples, strict=True):
            *moves, square = row["moves"].split()
            board = chess.Board()
            for move in moves:
                board.push_uci(move)
            origin = chess.parse_square(square)
            for target in SQUARES:
                move = chess.Move(origin, chess.parse_square(target))
                queen = chess.Move(origin, chess.parse_square(target), promotion=chess.QUEEN)
                legal = board.is_legal(move) or board.is_legal(queen)
                assert validity.score(target, example).value == legal, (row["moves"], target)

    def test_a_seed_repeats_and_another_differs(self):
        first = task("chess-validity", count=10, seed=1).fingerprint
        assert task("chess-validity", count=10, seed=1).fingerprint == first
        assert task("chess-validity", count=10, seed=2).fingerprint != first

    def test_games_have_at_most_so_many_plies(self):
        plies = [example.meta["plies"] for example in task("chess-validity", count=30, plies=6).examples]
        assert 3 <= min(plies) <= max(plies) <= 6

    def test_bad_options_are_named(self):
        with pytest.raises(InputError, match="option plies is 2; it must be at least 4"):
            task("chess-validity", plies=2)


class TestRows:
    def test_answers_are_worked_out_where_they_are_missing(self):
        example = task("chess-validity").example({"moves": ROW["moves"]}, "line 1")
        assert example.gold == ["e2", "f3", "h3"]

    def test_big_benchs_own_fields_are_read(self):
        example = task("chess-validity").example({"input": "e2e4 e7e5 g1", "target": ["f3", "h3"]}, "line 1")
        assert example.gold == ["f3", "h3"]

    def test_a_square_alone_asks_about_the_first_move(self):
        assert task("chess-validity").example({"moves": "b1"}, "line 1").gold == ["a3", "c3"]

    @pytest.mark.parametrize(
        ("row", "why"),
        [
            ({"answers": ["f3"]}, "line 7: the field 'moves' is missing"),
            ({"moves": "e2e4 e7e5", "answers": ["f3"]}, "line 7, field moves: must end with the square of a piece"),
            ({"moves": "e4 e5 g1", "answers": ["f3"]}, "line 7, field moves: 'e4', move 1, is not in UCI notation"),
            ({"moves": "e2e5 g8"}, "line 7, field moves: 'e2e5', move 1, is not legal"),
            ({"moves": "e2e4 a1"}, "line 7, field answers: the piece on a1 has no legal move"),
            ({"moves": "e2e4 g8", "answers": ["f9"]}, "line 7, field answers: 'f9' is not a square"),
        ],
    )
    def test_bad_rows_are_named(self, row, why):
        with pytest.raises(InputError, match=why):
            task("chess-validity").example(row, "line 7")


class TestScoring:
    @pytest.fixture
    def example(self):
        return task("chess-validity").example(ROW, "line 1")

    @pytest.mark.parametrize("answer", ["f3", "F3", " f3. ", "g1f3", "g1-f3", "Nf3", "The square f3"])
    def test_a_legal_target_in_many_spellings(self, example, answer):
        assert task("chess-validity").score(answer, example).value == 1

    @pytest.mark.parametrize("answer", ["f4", "g1", "Nf4"])
    def test_another_square_is_wrong(self, example, answer):
        score = task("chess-validity").score(answer, example)
        assert (score.value, score.blank) == (0, False)
        assert "e2, f3, h3" in score.feedback

    @pytest.mark.parametrize("answer", [None, "", "i9", "f3 or h3", "b8c6", "none"])
    def test_no_single_square_is_a_blank(self, example, answer):
        score = task("chess-validity").score(answer, example)
        assert (score.value, score.blank) == (0, True)

    def test_reads_the_square_from_text(self, example):
        validity = task("chess-validity")
        assert validity.extract("The knight can jump to f3.\nAnswer: f3", example) == "f3"

    def test_the_demonstration_is_right(self):
        validity = task("chess-validity")
        (demonstration,) = validity.demonstrations()
        example = validity.example({"moves": "e2e4 d7d5 e4d5 d8"}, "demonstration")
        assert example.question == demonstration.question
        assert validity.score(demonstration.answer, example).value == 1
        assert validity.score(demonstration.mistaken_answer, example).value == 0


def test_every_listed_answer_and_no_other_is_right_on_real_items(shared):
    path = shared / "data/chess/state_tracking_50.jsonl"
    validity = task("chess-validity", path)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(validity.examples) == 50
    for row, example in zip(rows, validity.examples, strict=True):
        assert example.meta["square"] == row["piece_square"]
        right = {square for square in SQUARES if validity.score(square, example).value == 1}
        assert right == set(row["answers"])
        unlisted = validity.example({"moves": row["moves"]}, "again")
        assert unlisted.gold == example.gold
