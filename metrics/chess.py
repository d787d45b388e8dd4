"""Chess moves scored by Stockfish, and the legal squares of a piece. The `chess` package is imported when first needed.

**Pawn score.** The society-of-minds paper (arXiv 2305.14325, section 3.1 and appendix) reports the advantage that
Stockfish sees for the mover after the proposed move, in centipawns (91.4 for a single gpt-3.5 agent, 122.9 for a
debate). Here it is in pawns: `Stockfish.evaluate(fen, move)` searches the position with that move as the only first
move, which is an evaluation after the move, from the mover's side. The paper searched to depth 20; the default here is
16, four times as fast (`depth=20` for the paper's).

**Mate and cap.** Evaluations are capped at `PAWN_CAP` = 10 pawns either way, as win chances hardly change beyond
(Lichess caps at the same value); a forced mate counts as the cap for its side, checkmate on the board too; a draw on
the board is 0.

**Illegal and missing moves.** The paper does not say what they count. Here they count as a lost game: a pawn score of
-10, a value of 0. Means over the legal moves alone are reported beside.

**Value.** A move's value in [0, 1] is the Lichess accuracy of a move (lichess.org/page/accuracy): from the win chances
W(cp) = 50 + 50 * (2 / (1 + exp(-0.00368208 * cp)) - 1) before (the engine's best move) and after (the proposed one),
103.1668 * exp(-0.04354 * (before - after)) - 3.1669 percent, kept within 0 and 100. The best move is 1; half a pawn
lost in an even position is 0.81, a queen lost there 0.1.

**Determinism.** One thread, the hash cleared before each search, and a fixed depth (or number of nodes): the same
position and move give the same figure on one Stockfish version. More threads are faster but not repeatable.
"""

from __future__ import annotations

import asyncio
import math
import re
import shutil
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from ..errors import InputError, MissingDependencyError, RunError
from .score import Score

T = TypeVar("T")

#: Evaluations are capped at so many pawns either way; mates count as the cap.
PAWN_CAP = 10.0
#: Where packages put the engine without it being on the PATH of every user (Debian: /usr/games).
_USUAL_PLACES = ("/usr/games/stockfish", "/usr/local/bin/stockfish", "/usr/bin/stockfish")
#: Longest wait for one search, and for starting the engine, in seconds.
_SEARCH_SECONDS = 300.0
_START_SECONDS = 15.0


def chess_library() -> ModuleType:
    """Import the `chess` package.

    Raises:
        MissingDependencyError: when it is not installed.
    """
    try:
        import chess
    except ImportError:
        raise MissingDependencyError(
            'the chess tasks need the package "chess": pip install "townhall[chess]"'
        ) from None
    return chess


def find_engine(path: str | None = None) -> str:
    """Return the path of the Stockfish program.

    Args:
        path: a path, or a name on the PATH; None to look in the usual places.

    Raises:
        MissingDependencyError: when there is none.
    """
    if path is not None:
        found = shutil.which(str(Path(path).expanduser()))
        if found is None:
            raise MissingDependencyError(f"engine={path}: no such program, or it cannot be run; name a UCI engine")
        return found
    for candidate in ("stockfish", *_USUAL_PLACES):
        found = shutil.which(candidate)
        if found is not None:
            return found
    raise MissingDependencyError(
        "Stockfish is not installed: 'apt install stockfish' (Debian, Ubuntu) or 'brew install stockfish' (macOS), "
        "or say where it is with the option engine=PATH"
    )


@dataclass(frozen=True)
class EngineSettings:
    """How Stockfish is run.

    Attributes:
        path: the program; None to look for it.
        depth: plies searched; used when `nodes` is None.
        nodes: nodes searched.
        threads: search threads; figures are repeatable with 1 only.
        hash_mb: megabytes of hash table.
    """

    path: str | None = None
    depth: int = 16
    nodes: int | None = None
    threads: int = 1
    hash_mb: int = 64


class Stockfish:
    """One engine process, started when first needed, used by all threads in turn, restarted when it dies.

    Args:
        settings: how it is run.
    """

    def __init__(self, settings: EngineSettings | None = None) -> None:
        self.settings = settings or EngineSettings()
        self.path = find_engine(self.settings.path)
        self._lock = threading.Lock()
        self._protocol: Any = None
        self._transport: Any = None
        self._cache: dict[tuple[str, str | None], float] = {}

    def evaluate(self, fen: str, move: str | None = None) -> float:
        """Return the advantage of the side to move in pawns, after its best move or after a given one.

        Args:
            fen: the position, with at least one legal move.
            move: a legal move in UCI notation; None for the engine's choice.

        Raises:
            RunError: when the engine dies or hangs twice on this position.
            InputError: when the program is not a UCI engine.
        """
        with self._lock:
            key = (fen, move)
            if key not in self._cache:
                self._cache[key] = self._search(fen, move)
            return self._cache[key]

    def close(self) -> None:
        """End the engine process."""
        with self._lock:
            self._stop()

    def _search(self, fen: str, move: str | None) -> float:
        import chess.engine

        board = chess.Board(fen)
        limit = (
            chess.engine.Limit(nodes=self.settings.nodes)
            if self.settings.nodes is not None
            else chess.engine.Limit(depth=self.settings.depth)
        )
        roots = [chess.Move.from_uci(move)] if move is not None else None
        problem = ""
        for _attempt in range(2):
            if self._protocol is None:
                self._start()
            try:
                info = _in_engine_loop(_analyse(self._protocol, board, limit, roots), _SEARCH_SECONDS)
            except (chess.engine.EngineError, BrokenPipeError) as error:
                problem = str(error) or type(error).__name__
                self._stop()
                continue
            except TimeoutError:
                problem = f"no answer within {_SEARCH_SECONDS:.0f} s"
                self._stop()
                continue
            score = info.get("score")
            if score is None:
                problem = "it gave no evaluation"
                continue
            return capped(score.relative.score(mate_score=100_000) / 100)
        raise RunError(f"Stockfish ({self.path}) failed twice on the position {fen}: {problem}")

    def _start(self) -> None:
        import chess.engine

        options = {"Threads": self.settings.threads, "Hash": self.settings.hash_mb}
        try:
            self._transport, self._protocol = _in_engine_loop(chess.engine.popen_uci(self.path), _START_SECONDS)
            known = self._protocol.options
            _in_engine_loop(
                self._protocol.configure({name: value for name, value in options.items() if name in known}),
                _START_SECONDS,
            )
        except (chess.engine.EngineError, OSError, TimeoutError) as error:
            self._stop()
            raise InputError(
                f"engine {self.path} does not start as a UCI engine ({str(error) or type(error).__name__}); "
                "name Stockfish with the option engine=PATH"
            ) from None

    def _stop(self) -> None:
        transport, self._transport, self._protocol = self._transport, None, None
        if transport is not None:
            _in_engine_loop(_close(transport), _START_SECONDS)


async def _analyse(protocol: Any, board: Any, limit: Any, roots: Any) -> Any:
    import chess.engine

    # A game object of its own makes the engine clear its hash table before this search.
    search = asyncio.ensure_future(protocol.analyse(board, limit, game=object(), root_moves=roots))
    # The library's analysis never returns when the engine dies before the search begins, so its end is watched as well.
    await asyncio.wait({search, protocol.returncode}, return_when=asyncio.FIRST_COMPLETED)
    if not search.done():
        search.cancel()
        raise chess.engine.EngineTerminatedError(f"it ended with exit code {protocol.returncode.result()}")
    return search.result()


async def _close(transport: Any) -> None:
    transport.close()  # kills the process when it still runs


class _EngineLoop:
    """An event loop on a daemon thread: `chess.engine.SimpleEngine`'s own thread would keep the program from ending."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(self._handle)
        threading.Thread(target=self.loop.run_forever, name="chess engines", daemon=True).start()

    @staticmethod
    def _handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        import chess.engine

        # A dead engine is reported to whoever asked it; the library's inner futures need not report it again.
        if not isinstance(context.get("exception"), chess.engine.EngineError):
            loop.default_exception_handler(context)


_loop: _EngineLoop | None = None
_engines: dict[EngineSettings, Stockfish] = {}
_registry_lock = threading.Lock()


def _in_engine_loop(coroutine: Coroutine[Any, Any, T], seconds: float) -> T:
    global _loop
    if _loop is None:
        _loop = _EngineLoop()
    future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(coroutine, seconds), _loop.loop)
    return future.result()


def stockfish(settings: EngineSettings) -> Stockfish:
    """Return this process's engine for some settings: one process for each, kept until the program ends.

    Raises:
        MissingDependencyError: when the program is not installed.
    """
    with _registry_lock:
        if settings not in _engines:
            _engines[settings] = Stockfish(settings)
        return _engines[settings]


def capped(pawns: float) -> float:
    """Return an evaluation within `PAWN_CAP`."""
    return max(-PAWN_CAP, min(PAWN_CAP, pawns))


def win_percentage(pawns: float) -> float:
    """Return the chance to win, 0 to 100, that Lichess gives an evaluation in pawns."""
    return 50 + 50 * (2 / (1 + math.exp(-0.368208 * pawns)) - 1)


def move_accuracy(best: float, after: float) -> float:
    """Return the Lichess accuracy, 0 to 1, of a move.

    Args:
        best: the mover's evaluation after the best move, in pawns.
        after: its evaluation after the move in question.
    """
    lost = max(0.0, win_percentage(best) - win_percentage(after))
    percent = 103.1668 * math.exp(-0.04354 * lost) - 3.1669
    # The published constants give 99.9999 for the best move.
    return round(max(0.0, min(100.0, percent)) / 100, 5)


def read_move(text: str, fen: str) -> str | None:
    """Return the legal move that a text names, in UCI notation; None when it names none.

    The text is one move: SAN or UCI, with or without a move number, capture and check marks, "!" and "?"; castling with
    O, o or 0; a promotion may lack its "=". A small letter for a piece ("nf3") is read where no pawn move fits.
    """
    return _read_move(text, chess_library().Board(fen))


def _read_move(text: str, board: Any) -> str | None:
    cleaned = text.strip().strip("*`'\"()[]. ").rstrip("!?. ")
    number, dot, rest = cleaned.partition(".")
    if dot and number.strip().isdigit():
        cleaned = rest.lstrip(". \u2026")
    if cleaned[:3] in ("o-o", "0-0"):
        cleaned = cleaned.upper()
    for reader, candidate in (
        (board.parse_san, cleaned),
        (board.parse_san, cleaned[:1].upper() + cleaned[1:]),
        (board.parse_uci, cleaned.casefold().replace("-", "").replace("=", "")),
    ):
        try:
            move = reader(candidate)
        except ValueError:
            continue
        if move:  # "--" is python-chess's null move
            return str(move.uci())
    return None


def looks_like_move(text: str) -> bool:
    """Return whether a text has the form of a move, legal or not: what tells an illegal move from a blank."""
    form = r"(?:\d+\s*\.+\s*)?(?:[KQRBN]?[a-h]?[1-8]?[x:-]?[a-h][1-8](?:=?[QRBN])?|[O0]-[O0](?:-[O0])?)[+#!?]*"
    return re.fullmatch(form, text.strip().strip("*`'\"()[]. "), re.IGNORECASE) is not None


def score_move(answer: str | None, fen: str, engine: Stockfish) -> Score:
    """Score a proposed move.

    Args:
        answer: the move in SAN or UCI notation; None for a blank.
        fen: the position.
        engine: scores the move.

    Returns:
        A score with the parts `legal` (0 or 1), `move` (UCI), and in pawns `pawn_score`, `best_pawn_score` and
        `pawn_loss` (never below 0: when the search of the move alone finds more than the search of all, that is the
        best).
    """
    chess = chess_library()
    best = engine.evaluate(fen)
    move = read_move(answer, fen) if answer is not None else None
    if move is None or answer is None:
        parts: dict[str, float | int | str | None] = {
            "legal": 0,
            "move": None,
            "pawn_score": -PAWN_CAP,
            "best_pawn_score": best,
            "pawn_loss": best + PAWN_CAP,
        }
        if answer is None or not looks_like_move(answer):
            return Score(0.0, blank=True, parts=parts, feedback="No move was given; answer with one legal move.")
        return Score(0.0, parts=parts, feedback=f"{answer.strip()} is not a legal move in this position.")
    after = engine.evaluate(fen, move)
    best = max(best, after)
    parts = {
        "legal": 1,
        "move": move,
        "pawn_score": after,
        "best_pawn_score": best,
        "pawn_loss": round(best - after, 4),
    }
    san = chess.Board(fen).san(chess.Move.from_uci(move))
    feedback = f"After {san} the engine gives the mover {after:+.2f} pawns"
    feedback += "; no move is better." if best == after else f"; after the best move it would be {best:+.2f}."
    return Score(move_accuracy(best, after), parts=parts, feedback=feedback)


def replay(moves: str, where: str, fen: str | None = None) -> Any:
    """Return the board after some moves.

    Args:
        moves: SAN or UCI moves with spaces between them; move numbers and a result are skipped.
        where: for error texts.
        fen: the first position; None for the usual one.

    Raises:
        InputError: for a move that is illegal or unreadable; the text names it.
    """
    chess = chess_library()
    board = chess.Board(fen) if fen else chess.Board()
    for token in moves.replace(".", ". ").split():
        if token.rstrip(".").isdigit() or token in ("1-0", "0-1", "1/2-1/2", "*") or not token.strip("."):
            continue
        move = _read_move(token, board)
        if move is None:
            number = f"{board.fullmove_number}{'.' if board.turn else '...'}"
            raise InputError(f"{where}: the move {number} {token} is not legal in its position")
        board.push_uci(move)
    return board


def check_fen(fen: str, where: str) -> str:
    """Return a position that can be played on.

    Raises:
        InputError: when it is not a FEN, not a possible position, or has no legal move.
    """
    chess = chess_library()
    try:
        board = chess.Board(fen)
    except ValueError as error:
        raise InputError(f"{where}, field fen: not a FEN ({error})") from None
    if not board.is_valid():
        raise InputError(f"{where}, field fen: not a possible position ({fen})")
    if not any(board.legal_moves):
        raise InputError(f"{where}, field fen: the game is over there, no move is legal ({fen})")
    return fen


def legal_targets(fen: str, square: str) -> list[str]:
    """Return the squares, sorted, to which the piece on `square` can move; empty when it cannot."""
    chess = chess_library()
    board = chess.Board(fen)
    origin = chess.parse_square(square)
    return sorted({chess.square_name(move.to_square) for move in board.legal_moves if move.from_square == origin})
