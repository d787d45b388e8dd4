import json
import re

import pytest

from townhall.errors import InputError, MissingDependencyError, RunError
from townhall.metrics import chess as scoring
from townhall.metrics.chess import PAWN_CAP, find_engine
from townhall.tasks.access import task
from townhall.tasks.base import Scored

#: Morphy's game at the opera, Paris 1858; 17 moves.
OPERA = """[Event "Paris"]
[White "Morphy"]
[Black "Duke and Count"]
[Result "1-0"]

1. e4 e5 2. Nf3 d6 3. d4 Bg4 4. dxe5 Bxf3 5. Qxf3 dxe5 6. Bc4 Nf6 7. Qb3 Qe7
8. Nc3 c6 9. Bg5 {Black is tied up.} b5 10. Nxb5 cxb5 11. Bxb5+ Nbd7 12. O-O-O Rd8
13. Rxd7 Rxd7 14. Rd1 Qe6 15. Bxd7+ Nxd7 16. Qb8+ Nxb8 17. Rd8# 1-0
"""
SHORT = """[White "Quick"]
[Black "Quicker"]

1. f3 e5 2. g4 Qh4# 0-1
"""
ILLEGAL = """[White "Careless"]
[Black "Carefree"]

1. e4 e5 2. Ke3 Nc6 *
"""
AFTER_14 = "4kb1r/p2r1ppp/4qn2/1B2p1B1/4P3/1Q6/PPP2PPP/2KR4 w k - 2 15"


@pytest.fixture
def stockfish_path():
    try:
        return find_engine()
    except MissingDependencyError:
        pytest.skip("Stockfish is not installed")


def pgn(tmp_path, text, name="games.pgn"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


class TestPGN:
    def test_shows_the_first_14_moves_and_knows_the_next(self, tmp_path):
        (example,) = task("chess-move", pgn(tmp_path, OPERA)).examples
        assert example.meta["fen"] == AFTER_14
        assert example.gold == "Bxd7+"
        assert example.question.endswith("13. Rxd7 Rxd7 14. Rd1 Qe6")
        assert "Bxd7" not in example.question
        assert "White's turn" in example.question
        assert (example.id, example.meta["white"]) == ("games-1", "Morphy")

    def test_games_that_are_too_short_are_left_out(self, tmp_path):
        assert len(task("chess-move", pgn(tmp_path, SHORT + "\n" + OPERA)).examples) == 1

    def test_fewer_moves_can_be_shown(self, tmp_path):
        examples = task("chess-move", pgn(tmp_path, OPERA), moves="2").examples
        assert examples[0].gold == "d4"

    def test_an_illegal_move_names_file_and_game(self, tmp_path):
        path = pgn(tmp_path, OPERA + "\n" + ILLEGAL)
        with pytest.raises(
            InputError, match=r"games.pgn, game 2 \(Careless - Carefree\): illegal san: 'Ke3'"
        ) as raised:
            _ = task("chess-move", path).examples
        assert "\n" not in str(raised.value)

    def test_a_game_from_a_set_up_position_shows_it(self, tmp_path):
        text = '[White "A"]\n[Black "B"]\n[SetUp "1"]\n[FEN "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"]\n\n1. e4 Ke7 2. Kf2 *\n'
        (example,) = task("chess-move", pgn(tmp_path, text), moves=1).examples
        assert "Position (FEN): 8/4k3/8/8/4P3/8/8/4K3 w - - 1 2" in example.question

    @pytest.mark.parametrize(("text", "why"), [("", "no game in it"), (SHORT, "no game of more than 14 full moves")])
    def test_a_file_without_a_usable_game_is_an_error(self, tmp_path, text, why):
        with pytest.raises(InputError, match=f"games.pgn: {why}"):
            _ = task("chess-move", pgn(tmp_path, text)).examples

    def test_a_missing_file_is_an_error(self, tmp_path):
        with pytest.raises(InputError, match=r"none.pgn: no such file"):
            _ = task("chess-move", tmp_path / "none.pgn").examples

    def test_latin_1_files_are_read(self, tmp_path):
        path = tmp_path / "games.pgn"
        path.write_bytes(OPERA.replace("Morphy", "Morphÿ").encode("latin-1"))
        assert task("chess-move", path).examples[0].meta["white"] == "Morphÿ"


class TestRows:
    def test_moves_alone_give_the_position(self):
        example = task("chess-move").example({"moves": "1. e4 e5", "next_move_uci": "g1f3"}, "line 1")
        assert example.meta["fen"].startswith("rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w")
        assert example.gold == "Nf3"
        assert "FEN" not in example.question

    def test_a_position_alone_is_shown(self):
        fen = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"
        example = task("chess-move").example({"fen": fen}, "line 1")
        assert f"Position (FEN): {fen}" in example.question
        assert example.gold is None

    @pytest.mark.parametrize(
        ("row", "why"),
        [
            ({"white": "A"}, "line 2: neither 'fen' nor 'moves' is there"),
            ({"fen": "", "moves": ""}, "line 2: neither 'fen' nor 'moves' is there"),
            ({"fen": "8/8/8 w"}, "line 2, field fen: not a FEN"),
            ({"moves": "1. e4 e5 2. Ke3"}, r"line 2: the move 2\. Ke3 is not legal"),
            ({"moves": "1. e4", "fen": "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"}, "line 2, field fen: not the position"),
            ({"moves": "1. e4", "next_move_san": "e4"}, "line 2, field next_move_san: 'e4' is not a legal move"),
        ],
    )
    def test_bad_rows_are_named(self, row, why):
        with pytest.raises(InputError, match=why):
            task("chess-move").example(row, "line 2")

    def test_there_is_no_data_without_a_file(self):
        with pytest.raises(InputError, match="use --data with a PGN or JSONL file"):
            _ = task("chess-move").examples


class TestOptions:
    def test_settings_reach_the_engine(self):
        settings = task("chess-move", engine="stockfish", nodes="5000", threads="2", hash=16).settings
        assert (settings.path, settings.nodes, settings.threads, settings.hash_mb) == ("stockfish", 5000, 2, 16)

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ({"depth": 0}, "option depth is 0; it must be at least 1"),
            ({"depth": 5, "nodes": 5}, "options depth and nodes: give one of them"),
            ({"threads": "x"}, "option threads is 'x'"),
        ],
    )
    def test_bad_ones_are_named(self, options, why):
        with pytest.raises(InputError, match=why):
            task("chess-move", **options)

    def test_a_missing_engine_is_found_out_before_a_run(self, monkeypatch):
        monkeypatch.setenv("PATH", "")
        monkeypatch.setattr(scoring, "_USUAL_PLACES", ())
        with pytest.raises(MissingDependencyError, match="apt install stockfish"):
            task("chess-move").check_scoring()


class TestReading:
    @pytest.fixture
    def opera(self, tmp_path):
        chess = task("chess-move", pgn(tmp_path, OPERA))
        return chess, chess.examples[0]

    @pytest.mark.parametrize("text", ["Bxd7+", "15. Bxd7+", "I would play Bxd7+ here.", "Answer: b5d7"])
    def test_reads_the_move_from_text(self, opera, text):
        chess, example = opera
        assert chess.extract(text, example) in ("Bxd7", "Bxd7+", "b5d7")

    def test_prose_without_a_move_is_a_blank(self, opera):
        chess, example = opera
        assert chess.extract("White is much better here.", example) is None


class TestScoring:
    @pytest.fixture
    def opera(self, tmp_path, stockfish_path):
        chess = task("chess-move", pgn(tmp_path, OPERA), engine=stockfish_path, depth=8)
        return chess, chess.examples[0]

    @pytest.mark.parametrize("answer", ["Bxd7+", "b5d7", "15. Bxd7+!", "Bxd7+, since the rook is pinned"])
    def test_a_move_is_read_in_any_notation(self, opera, answer):
        chess, example = opera
        score = chess.score(answer, example)
        assert score.parts["move"] == "b5d7"
        assert score.parts["pawn_score"] > 2
        assert score.value > 0.4

    def test_a_blunder_scores_little_and_is_told_what_was_played(self, opera):
        chess, example = opera
        blunder = chess.score("Qb4", example)  # the queen is taken by the bishop on f8
        assert blunder.value < 0.2
        assert blunder.parts["pawn_loss"] > 3
        assert "In the game Bxd7+ was played." in blunder.feedback

    def test_an_illegal_move_is_wrong_and_a_blank_is_blank(self, opera):
        chess, example = opera
        illegal, blank = chess.score("Qxh8", example), chess.score(None, example)
        assert (illegal.value, illegal.blank, illegal.parts["pawn_score"]) == (0, False, -PAWN_CAP)
        assert (blank.value, blank.blank, blank.parts["pawn_score"]) == (0, True, -PAWN_CAP)

    def test_corpus_scores(self, opera):
        chess, example = opera
        best, illegal, blank = (chess.score(answer, example) for answer in ("Bxd7+", "Qxh8", None))
        scores = chess.aggregate([Scored(example, score) for score in (best, illegal, blank)])
        assert scores["legal"] == pytest.approx(1 / 3)
        assert scores["blank"] == pytest.approx(1 / 3)
        assert scores["accuracy"] == pytest.approx(best.value / 3)
        assert scores["pawn_score_legal"] == best.parts["pawn_score"]
        assert scores["pawn_score"] == pytest.approx((best.parts["pawn_score"] - 2 * PAWN_CAP) / 3)

    def test_no_legal_answer_leaves_the_legal_mean_out(self, opera):
        chess, example = opera
        scores = chess.aggregate([Scored(example, chess.score(None, example))])
        assert scores["pawn_score_legal"] is None
        assert task("chess-move").aggregate([])["pawn_loss"] is None

    def test_an_engine_that_cannot_run_is_an_error_not_a_score(self, tmp_path):
        chess = task("chess-move", pgn(tmp_path, OPERA), engine="/bin/true")
        with pytest.raises((InputError, RunError), match="/bin/true"):
            chess.score("Bxd7+", chess.examples[0])


def test_the_demonstrations_moves_are_legal(stockfish_path):
    chess = task("chess-move", engine=stockfish_path, depth=10)
    (demonstration,) = chess.demonstrations()
    moves = re.search(r"Moves so far: (.*)", demonstration.question).group(1)
    example = chess.example({"moves": moves}, "demonstration")
    right, mistaken = (chess.score(move, example) for move in (demonstration.answer, demonstration.mistaken_answer))
    assert right.value > 0.95
    assert mistaken.parts["legal"] == 1
    assert mistaken.value < right.value - 0.15


class TestSharedData:
    def test_pgn_and_rows_give_the_same_positions(self, shared):
        games = task("chess-move", shared / "data/chess/games_60.pgn").examples
        rows = task("chess-move", shared / "data/chess/next_move_60.jsonl").examples
        assert len(games) == 60
        assert [example.question for example in games] == [example.question for example in rows]
        assert [example.gold for example in games] == [example.gold for example in rows]

    def test_grandmasters_are_within_half_a_pawn_of_the_engine(self, shared, stockfish_path):
        chess = task("chess-move", shared / "data/chess/next_move_60.jsonl", engine=stockfish_path, depth=8)
        with (shared / "data/chess/next_move_60.jsonl").open(encoding="utf-8") as lines:
            played = [json.loads(line)["next_move_uci"] for line in lines]
        scored = [Scored(e, chess.score(move, e)) for e, move in zip(chess.examples, played, strict=True)]
        scores = chess.aggregate(scored)
        assert scores["legal"] == 1
        assert 0 <= scores["pawn_loss"] < 0.5
        assert scores["accuracy"] > 0.85
