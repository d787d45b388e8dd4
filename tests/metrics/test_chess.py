import os
import signal
import stat
import sys
import threading

import pytest

from townhall.errors import InputError, MissingDependencyError, RunError
from townhall.metrics import chess as scoring
from townhall.metrics.chess import (
    PAWN_CAP,
    EngineSettings,
    Stockfish,
    check_fen,
    find_engine,
    legal_targets,
    looks_like_move,
    move_accuracy,
    read_move,
    replay,
    score_move,
    stockfish,
    win_percentage,
)

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
#: White can take an undefended queen on d5 with the knight on c3.
FREE_QUEEN = "rnb1kbnr/ppp1pppp/8/3q4/8/2N5/PPPP1PPP/R1BQKBNR w KQkq - 0 4"
#: Black mates with Qh4.
FOOLS_MATE = "rnbqkbnr/pppp1ppp/8/4p3/6P1/5P2/PPPPP2P/RNBQKBNR b KQkq - 0 2"
#: Qc7 is stalemate; many other moves win.
STALEMATE_TRAP = "k7/8/8/8/8/8/2Q5/7K w - - 0 1"


@pytest.fixture(scope="module")
def engine():
    try:
        path = find_engine()
    except MissingDependencyError:
        pytest.skip("Stockfish is not installed")
    engine = Stockfish(EngineSettings(path=path, depth=8))
    yield engine
    engine.close()


@pytest.fixture
def scripted_engine(tmp_path):
    """A UCI engine in a few lines that dies or hangs in its first `failures` searches, over all its processes."""

    def make(failures, how="sys.exit(3)"):
        counter = tmp_path / "searches"
        script = tmp_path / "engine.py"
        script.write_text(f"""#!{sys.executable}
import pathlib, sys, time
counter = pathlib.Path({str(counter)!r})
for line in sys.stdin:
    word = (line.split() or [""])[0]
    if word == "uci":
        print("id name Scripted\\nuciok", flush=True)
    elif word == "isready":
        print("readyok", flush=True)
    elif word == "quit":
        break
    elif word == "go":
        done = int(counter.read_text()) if counter.exists() else 0
        counter.write_text(str(done + 1))
        if done < {failures}:
            {how}
        print("info depth 8 score cp 42 pv e2e4\\nbestmove e2e4", flush=True)
""")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return str(script), counter

    return make


class TestWinChances:
    def test_an_even_position_is_fifty_percent(self):
        assert win_percentage(0) == 50

    def test_a_pawn_up_is_what_lichess_publishes(self):
        assert win_percentage(1) == pytest.approx(59.10, abs=0.01)

    def test_both_sides_add_up(self):
        assert win_percentage(2.5) + win_percentage(-2.5) == pytest.approx(100)

    def test_the_best_move_has_accuracy_one(self):
        assert move_accuracy(0.3, 0.3) == 1
        assert move_accuracy(0.3, 0.5) == 1

    def test_accuracy_falls_with_the_loss_and_stays_in_range(self):
        values = [move_accuracy(0, -loss / 2) for loss in range(21)]
        assert values == sorted(values, reverse=True)
        assert all(0 <= value <= 1 for value in values)
        assert move_accuracy(PAWN_CAP, -PAWN_CAP) == 0

    def test_half_a_pawn_in_an_even_position(self):
        # W falls from 50 to 45.41: 103.1668 * exp(-0.04354 * 4.589) - 3.1669 = 81.3
        assert move_accuracy(0, -0.5) == pytest.approx(0.813, abs=0.001)


class TestReadingMoves:
    @pytest.mark.parametrize(
        "text", ["e4", "e2e4", "E2E4", "e2-e4", "1. e4", "1.e4", "1... e4", "**e4**", " e4! ", "e4.", '"e4"', "(e4)"]
    )
    def test_reads_a_move_in_many_spellings(self, text):
        assert read_move(text, START) == "e2e4"

    @pytest.mark.parametrize(("text", "move"), [("Nf3", "g1f3"), ("nf3", "g1f3"), ("g1f3", "g1f3"), ("Nf3+", "g1f3")])
    def test_reads_piece_moves(self, text, move):
        assert read_move(text, START) == move

    @pytest.mark.parametrize("text", ["O-O", "0-0", "o-o", "e1g1"])
    def test_reads_castling(self, text):
        assert read_move(text, "4k3/8/8/8/8/8/8/4K2R w K - 0 1") == "e1g1"

    @pytest.mark.parametrize("text", ["e8=Q", "e8Q", "e7e8q", "e7e8=Q", "e8=Q+"])
    def test_reads_promotions(self, text):
        assert read_move(text, "8/4P1k1/8/8/8/8/8/4K3 w - - 0 1") == "e7e8q"

    def test_a_small_b_is_a_pawn_where_a_pawn_can_take(self):
        both = "4k3/8/8/8/8/2p5/1P1B4/4K3 w - - 0 1"
        assert read_move("bxc3", both) == "b2c3"
        assert read_move("Bxc3", both) == "d2c3"

    @pytest.mark.parametrize("text", ["", "--", "Ke3", "e5", "bxc3", "resign", "e4 e5"])
    def test_no_legal_move_is_none(self, text):
        assert read_move(text, START) is None

    @pytest.mark.parametrize("text", ["Ke3", "14. Qxh7#", "e2e5", "O-O", "bxc3", "a8=Q"])
    def test_knows_the_form_of_a_move(self, text):
        assert looks_like_move(text)

    @pytest.mark.parametrize("text", ["", "resign", "I do not know", "42", "e"])
    def test_prose_has_not_the_form_of_a_move(self, text):
        assert not looks_like_move(text)


class TestReplay:
    def test_san_with_numbers_and_result(self):
        assert replay("1. e4 e5 2.Nf3 1/2-1/2", "here").fullmove_number == 2

    def test_uci(self):
        assert replay("e2e4 e7e5 g1f3", "here").piece_at(21).symbol() == "N"  # f3

    def test_an_illegal_move_is_named_with_its_number(self):
        with pytest.raises(InputError, match=r"games.pgn, line 3: the move 2\. Nf6 is not legal"):
            replay("1. e4 e5 2. Nf6", "games.pgn, line 3")

    @pytest.mark.parametrize(
        ("fen", "why"),
        [
            ("nonsense", "not a FEN"),
            ("8/8/8/8/8/8/8/8 w - - 0 1", "not a possible position"),
            ("rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3", "the game is over"),
        ],
    )
    def test_positions_that_cannot_be_played_on_are_errors(self, fen, why):
        with pytest.raises(InputError, match=rf"row 1, field fen: {why}"):
            check_fen(fen, "row 1")

    def test_legal_targets_of_a_pinned_piece_and_a_free_one(self):
        pinned = "4r1k1/8/8/8/8/8/4N3/4K3 w - - 0 1"
        assert legal_targets(pinned, "e2") == []
        assert legal_targets(START, "g1") == ["f3", "h3"]


class TestScoring:
    def test_winning_a_queen_beats_a_quiet_move(self, engine):
        take = score_move("Nxd5", FREE_QUEEN, engine)
        quiet = score_move("h3", FREE_QUEEN, engine)
        assert take.value == 1
        assert take.parts["legal"] == 1
        assert take.parts["move"] == "c3d5"
        assert take.parts["pawn_score"] > 4
        assert quiet.value < 0.5
        assert quiet.parts["pawn_loss"] > 4
        assert "best move" in quiet.feedback

    def test_a_mate_counts_as_the_cap(self, engine):
        score = score_move("Qh4#", FOOLS_MATE, engine)
        assert score.parts["pawn_score"] == PAWN_CAP
        assert score.value == 1

    def test_stalemate_is_zero_pawns(self, engine):
        score = score_move("Qc7", STALEMATE_TRAP, engine)
        assert score.parts["pawn_score"] == 0
        assert score.parts["best_pawn_score"] > 4

    def test_an_illegal_move_counts_as_a_lost_game_but_is_no_blank(self, engine):
        score = score_move("Ke3", START, engine)
        assert (score.value, score.blank) == (0, False)
        assert score.parts["legal"] == 0
        assert score.parts["pawn_score"] == -PAWN_CAP
        assert score.parts["pawn_loss"] == pytest.approx(score.parts["best_pawn_score"] + PAWN_CAP)
        assert "not a legal move" in score.feedback

    @pytest.mark.parametrize("answer", [None, "I resign"])
    def test_no_move_is_a_blank(self, engine, answer):
        score = score_move(answer, START, engine)
        assert (score.value, score.blank, score.parts["legal"]) == (0, True, 0)

    def test_figures_do_not_depend_on_what_was_searched_before(self, engine):
        other = Stockfish(engine.settings)
        try:
            first = other.evaluate(FREE_QUEEN, "h2h3")
        finally:
            other.close()
        engine.evaluate(START)
        engine.evaluate(FREE_QUEEN)
        assert engine.evaluate(FREE_QUEEN, "h2h3") == first

    def test_one_engine_process_serves_all_threads(self, engine):
        results = []
        threads = [threading.Thread(target=lambda: results.append(engine.evaluate(START, "e2e4"))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(results)) == 1

    def test_nodes_may_limit_the_search(self, engine):
        by_nodes = Stockfish(EngineSettings(path=engine.path, nodes=2000))
        try:
            assert -1 < by_nodes.evaluate(START) < 1
        finally:
            by_nodes.close()

    def test_a_killed_engine_is_restarted(self, engine):
        engine.evaluate(START)
        os.kill(engine._transport.get_pid(), signal.SIGKILL)
        assert engine.evaluate(START, "d2d4") > -1


class TestFailingEngines:
    def test_an_engine_that_dies_once_in_mid_run_is_restarted(self, scripted_engine):
        path, counter = scripted_engine(failures=1)
        engine = Stockfish(EngineSettings(path=path))
        assert engine.evaluate(START) == 0.42
        assert counter.read_text() == "2"
        engine.close()

    def test_an_engine_that_dies_twice_is_one_clear_error(self, scripted_engine):
        path, _ = scripted_engine(failures=2)
        engine = Stockfish(EngineSettings(path=path))
        with pytest.raises(RunError, match="failed twice on the position rnbqkbnr/") as raised:
            engine.evaluate(START)
        assert "\n" not in str(raised.value)
        # The next position is tried afresh.
        assert engine.evaluate(START, "e2e4") == 0.42
        engine.close()

    def test_an_engine_that_hangs_is_ended_and_restarted(self, scripted_engine, monkeypatch):
        monkeypatch.setattr(scoring, "_SEARCH_SECONDS", 0.7)
        path, _ = scripted_engine(failures=1, how="time.sleep(60)")
        engine = Stockfish(EngineSettings(path=path))
        assert engine.evaluate(START) == 0.42
        engine.close()

    def test_an_evaluation_is_asked_once(self, scripted_engine):
        path, counter = scripted_engine(failures=0)
        engine = Stockfish(EngineSettings(path=path))
        for _ in range(3):
            engine.evaluate(START, "e2e4")
        assert counter.read_text() == "1"
        engine.close()

    def test_a_program_that_is_no_engine_is_bad_input(self):
        with pytest.raises(InputError, match="does not start as a UCI engine"):
            Stockfish(EngineSettings(path="/bin/true", depth=1)).evaluate(START)

    def test_a_missing_engine_says_how_to_install_it(self, monkeypatch):
        monkeypatch.setenv("PATH", "")
        monkeypatch.setattr(scoring, "_USUAL_PLACES", ())
        with pytest.raises(MissingDependencyError, match=r"apt install stockfish.*brew install stockfish.*engine=PATH"):
            find_engine()

    def test_a_wrong_path_is_named(self):
        with pytest.raises(MissingDependencyError, match="engine=/nowhere/stockfish: no such program"):
            find_engine("/nowhere/stockfish")

    def test_the_same_settings_share_one_engine(self, scripted_engine):
        path, _ = scripted_engine(failures=0)
        assert stockfish(EngineSettings(path=path)) is stockfish(EngineSettings(path=path))
        assert stockfish(EngineSettings(path=path)) is not stockfish(EngineSettings(path=path, depth=3))
