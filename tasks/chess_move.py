"""Chess move prediction: the best next move after the first moves of a master game (society of minds, section 3.1)."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from ..errors import InputError
from ..metrics.chess import (
    EngineSettings,
    Stockfish,
    check_fen,
    chess_library,
    find_engine,
    read_move,
    replay,
    score_move,
    stockfish,
)
from ..metrics.extraction import extract_move
from ..metrics.score import Score
from ..signatures.demonstrations import Demonstration
from ..signatures.transcript import Persona
from .base import TASKS, Example, Scored, Task, row_id
from .options import integer_option


@TASKS.register("chess-move")
class ChessMove(Task):
    """The best move in a position, given by the moves that led to it.

    Data is a PGN file (the first `moves` full moves of each game are shown; shorter games are left out), or rows with
    `moves_14` or `moves` (SAN or UCI), `fen`, or both, and `next_move_san` or `next_move_uci`, the move
    played, if known.

    Scored by Stockfish, see `townhall.metrics.chess` for the definition, mates, and what illegal moves count. The value
    is the accuracy of the move in [0, 1]; corpus scores are `accuracy`, `blank`, `legal` (shares), and in pawns
    `pawn_score` (the paper's figure divided by 100), `pawn_score_legal` (legal moves only), `pawn_loss` against the
    engine's best move.

    An answer is one move in SAN or UCI notation. The gold is the move that was played, as a reference only.
    """

    name: ClassVar[str] = "chess-move"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "best next move after 14 moves of a master game, scored by Stockfish"
    answer_type: ClassVar[Any] = str
    option_help: ClassVar[Mapping[str, str]] = {
        "engine": "path of Stockfish (looked for on the PATH and in /usr/games)",
        "depth": "plies that Stockfish searches (16; the paper used 20)",
        "nodes": "nodes that Stockfish searches, instead of a depth",
        "threads": "threads of Stockfish (1; with more, figures are not repeatable)",
        "hash": "megabytes of Stockfish's hash table (64)",
        "moves": "full moves shown of each game of a PGN file (14)",
    }

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        if self.options.get("depth") is not None and self.options.get("nodes") is not None:
            raise InputError("options depth and nodes: give one of them")
        nodes = self.options.get("nodes")
        engine = self.options.get("engine")
        self.settings = EngineSettings(
            path=None if engine is None else str(engine),
            depth=integer_option(self.options, "depth", EngineSettings.depth, minimum=1, maximum=100),
            nodes=None if nodes is None else integer_option(self.options, "nodes", 0, minimum=1),
            threads=integer_option(self.options, "threads", EngineSettings.threads, minimum=1),
            hash_mb=integer_option(self.options, "hash", EngineSettings.hash_mb, minimum=1),
        )
        self.moves = integer_option(self.options, "moves", 14, minimum=1)

    def rows(self) -> Iterable[tuple[Mapping[str, Any], str]]:
        """Yield rows from a PGN file's games, or the source's rows."""
        if self.data is not None and Path(self.data).suffix.casefold() == ".pgn":
            return read_pgn(Path(self.data), self.moves)
        if self.data is None:
            raise InputError("task 'chess-move' has no data of its own; use --data with a PGN or JSONL file")
        return super().rows()

    def example(self, row: Mapping[str, Any], where: str) -> Example:
        """Build an example from the moves, the position, or both."""
        moves = str(row.get("moves_14") or row.get("moves") or "").strip()
        start = row.get("start_fen")
        fen = row.get("fen")
        if not moves and not fen:
            raise InputError(f"{where}: neither 'fen' nor 'moves' is there; one of them must give the position")
        if moves:
            reached = replay(moves, where, start).fen()
            if fen and fen.split()[:4] != reached.split()[:4]:
                raise InputError(f"{where}, field fen: not the position that the moves lead to, which is {reached}")
            fen = fen or reached
        fen = check_fen(str(fen), where)
        question = render(moves, fen, show_position=not moves or start is not None)
        meta = {"fen": fen, **{key: row[key] for key in ("white", "black", "event", "date", "eco") if row.get(key)}}
        return Example(id=row_id(row, question), question=question, gold=_played(row, fen, where), meta=meta)

    def extract(self, text: str, example: Example, rule: str = "flexible") -> str | None:
        """Read the move that a text answers with: the likeliest legal one, else the likeliest of all."""
        self._check_rule(rule)
        return extract_move(text, legal_moves(example.meta["fen"])) or extract_move(text)

    def check_scoring(self) -> None:
        """Check that the `chess` package and Stockfish are installed."""
        chess_library()
        find_engine(self.settings.path)

    @cached_property
    def engine(self) -> Stockfish:
        """The engine process, shared by all tasks of this process with the same settings."""
        return stockfish(self.settings)

    def score(self, answer: Any | None, example: Example) -> Score:
        """Return the accuracy of a move by Stockfish; 0 for an illegal move or a blank."""
        fen = example.meta["fen"]
        text = None if answer is None or not str(answer).strip() else str(answer)
        if text is not None and read_move(text, fen) is None:
            # An answer may say more than the move ("Nf3, developing").
            text = self.extract(text, example) or text
        score = score_move(text, fen, self.engine)
        if example.gold is None or score.value >= 0.9:
            return score
        note = f" In the game {example.gold} was played."
        return Score(score.value, score.blank, score.parts, score.feedback + note)

    def aggregate(self, scored: Sequence[Scored]) -> dict[str, float | None]:
        """Return accuracy, blank and legal as shares, and pawn_score, pawn_score_legal and pawn_loss in pawns."""
        scores = super().aggregate(scored)
        parts = [item.score.parts for item in scored]
        legal = [part for part in parts if part.get("legal")]
        return {
            **scores,
            "legal": _mean(parts, "legal"),
            "pawn_score": _mean(parts, "pawn_score"),
            "pawn_score_legal": _mean(legal, "pawn_score"),
            "pawn_loss": _mean(parts, "pawn_loss"),
        }

    def demonstrations(self) -> list[Demonstration]:
        """Return one worked position."""
        moves = "1. e4 e5 2. Nf3 Nc6 3. Bc4 Nd4"
        return [
            Demonstration(
                question=render(moves, str(replay(moves, "demonstration").fen()), show_position=False),
                reasoning=(
                    "The knight on d4 attacks f3, and e5 has lost its defender. Taking at once, 4. Nxe5, runs into "
                    "Qg5, which attacks the knight on e5 and the pawn on g2. Simple moves keep the edge: 4. Nxd4 exd4 "
                    "gives White easy development and a majority in the centre, since Black has moved one knight twice."
                ),
                answer="Nxd4",
                mistaken_reasoning="The pawn on e5 is no longer protected, so White wins it for nothing.",
                mistaken_answer="Nxe5",
                correction=(
                    "After 4. Nxe5 Qg5 both the knight on e5 and the pawn on g2 are attacked; if 5. Nxf7 Qxg2 the rook "
                    "on h1 falls as well. Exchange the knights instead."
                ),
                personas=[
                    Persona(
                        name="Tactician", expertise="checks, captures and threats", stance="calculates replies first"
                    ),
                    Persona(
                        name="Strategist", expertise="development and pawn structure", stance="prefers sound moves"
                    ),
                    Persona(
                        name="Arbiter", expertise="the rules of chess", stance="replays the game to check legality"
                    ),
                ],
            )
        ]


def render(moves: str, fen: str, *, show_position: bool) -> str:
    """Return the question; like the paper's it shows the moves alone, where they start from the usual position."""
    side = "White" if fen.split()[1] == "w" else "Black"
    lines = [f"In this game of chess it is {side}'s turn. Choose the best next move for {side}."]
    lines.append("Answer with one legal move in standard algebraic notation, such as Nf3, exd5, O-O or e8=Q.")
    if moves:
        lines += ["", f"Moves so far: {moves}"]
    if show_position:
        lines += ["", f"Position (FEN): {fen}"]
    return "\n".join(lines)


def legal_moves(fen: str) -> list[str]:
    """Return all legal moves of a position, each in SAN and in UCI notation."""
    board = chess_library().Board(fen)
    return [text for move in board.legal_moves for text in (board.san(move), move.uci())]


def read_pgn(path: Path, full_moves: int) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield (row, where) for each game of a PGN file: its first full moves, and the move played next.

    Games without a move after them are left out.

    Raises:
        InputError: for a missing file, a file without a long enough game, or a game with an illegal or unreadable move;
            the text names file and game.
    """
    chess_library()
    import chess.pgn

    if not path.is_file():
        raise InputError(f"{path}: no such file")
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")  # the encoding that the PGN standard names

    class QuietBuilder(chess.pgn.GameBuilder):  # the library's own builder also logs the errors
        def handle_error(self, error: Exception) -> None:
            self.game.errors.append(error)

    stream = io.StringIO(text)
    number = found = 0
    while (game := chess.pgn.read_game(stream, Visitor=QuietBuilder)) is not None:
        number += 1
        where = f"{path}, game {number} ({game.headers.get('White', '?')} - {game.headers.get('Black', '?')})"
        if game.errors:
            raise InputError(f"{where}: {_one_line(game.errors[0])}")
        played = list(game.mainline_moves())
        if len(played) <= 2 * full_moves:
            continue
        found += 1
        start = game.board()
        board = start.copy()
        for move in played[: 2 * full_moves]:
            board.push(move)
        yield (
            {
                "id": f"{path.stem}-{number}",
                "moves": start.variation_san(played[: 2 * full_moves]),
                "fen": board.fen(),
                "next_move_uci": played[2 * full_moves].uci(),
                **({"start_fen": start.fen()} if "FEN" in game.headers else {}),
                **{
                    key: game.headers[key.title()]
                    for key in ("white", "black", "event", "date")
                    if key.title() in game.headers
                },
                **({"eco": game.headers["ECO"]} if "ECO" in game.headers else {}),
            },
            where,
        )
    if not number:
        raise InputError(f'{path}: no game in it; a PGN file has tags such as [White "..."] and moves')
    if not found:
        raise InputError(
            f"{path}: no game of more than {full_moves} full moves in it; use the option moves=N for fewer"
        )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _played(row: Mapping[str, Any], fen: str, where: str) -> str | None:
    for field in ("next_move_san", "next_move_uci", "gold"):
        if row.get(field):
            move = read_move(str(row[field]), fen)
            if move is None:
                raise InputError(f"{where}, field {field}: '{row[field]}' is not a legal move in {fen}")
            chess = chess_library()
            return str(chess.Board(fen).san(chess.Move.from_uci(move)))
    return None


def _mean(parts: Sequence[Mapping[str, Any]], name: str) -> float | None:
    values = [float(part[name]) for part in parts if part.get(name) is not None]
    return sum(values) / len(values) if values else None
