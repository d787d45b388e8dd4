"""The simulated model as an OpenAI-compatible HTTP server, in a thread, in a process of its own, or by hand.

It answers `POST .../chat/completions` (also with `"stream": true`), `GET .../models` and `GET .../stats`, counts what
it is asked, and goes wrong as it is told. By hand: `python -m townhall.models.server --port 8000`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self
from urllib.parse import urlsplit

from ..errors import InputError, RunError
from .simulation import (
    LABEL,
    Call,
    Fault,
    FaultError,
    Responder,
    SimulatedBehaviour,
    Simulation,
    Speaker,
    finish,
    parse_behaviour,
    render,
    spoilt,
)

_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed"}
_REASONS |= {429: "Too Many Requests", 500: "Internal Server Error"}
_FORMATS = ("json_schema", "json_object", "none")
_LARGEST_BODY = 64 << 20

#: From the number of a completion request, counted from 1, and its body to what goes wrong; None: nothing.
Plan = Callable[[int, Mapping[str, Any]], Fault | None]


def plan_of(faults: Mapping[int, str] | Sequence[str | None] | Plan | None) -> Plan:
    """Return a plan from a mapping (request number -> "KIND[:SECONDS]") or from a list by request, first to last."""
    if faults is None:
        return lambda number, body: None
    if callable(faults):
        return faults
    listed = faults if isinstance(faults, Mapping) else dict(enumerate(faults, start=1))
    parsed = {number: Fault.parse(text) for number, text in listed.items() if text}
    return lambda number, body: parsed.get(number)


class SimulatedServer:
    """An OpenAI-compatible server on 127.0.0.1, in a thread of its own; use it in a `with` statement.

    Args:
        responder: from a `Call` to a reply; by default `Simulation(behaviour)`.
        behaviour: of the default responder; its latency and rates hold for every responder.
        faults: what goes wrong, by request number, see `plan_of`.
        accepts: the richest `response_format` it takes; a richer one is refused with status 400.
        api_key: demanded as a bearer token when given.
        record: keep the parsed bodies in `bodies`.
        port: 0 for any free one.

    Attributes:
        requests: completion requests received.
        completed: replies sent in full with status 200, faulty texts included.
        statuses: how often each status was sent; "cut" for broken connections.
        bodies: parsed request bodies, in order of arrival.
        authorizations: the Authorization headers of completion requests.
        errors: what the responder raised; such a request gets status 500.
    """

    def __init__(
        self,
        responder: Responder | None = None,
        *,
        behaviour: SimulatedBehaviour | None = None,
        faults: Mapping[int, str] | Sequence[str | None] | Plan | None = None,
        accepts: str = "json_schema",
        api_key: str | None = None,
        record: bool = True,
        port: int = 0,
    ) -> None:
        if accepts not in _FORMATS:
            raise InputError(f"accepts is '{accepts}'; it must be one of {', '.join(_FORMATS)}")
        self.speaker = Speaker(behaviour, responder)
        self.plan = plan_of(faults)
        self.accepts = accepts
        self.api_key = api_key
        self.record = record
        self.port = port
        self.requests = 0
        self.completed = 0
        self.statuses: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.authorizations: list[str | None] = []
        self.errors: list[Exception] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._listener: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    # -- life ----------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The `api_base`."""
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> Self:
        """Listen; returns when the port is open.

        Raises:
            InputError: when the port cannot be opened.
        """
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="townhall-simulated-server", daemon=True)
        self._thread.start()
        try:
            self._do(self._listen())
        except OSError as error:
            self.stop()
            raise InputError(f"port {self.port} cannot be opened ({error.strerror})") from None
        return self

    def stop(self) -> None:
        """Close all connections and the port."""
        if self._loop is None or self._thread is None:
            return
        self._do(self._shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Refuse connections for the time of a `with` block, as a server that is down does."""
        self._do(self._shut())
        try:
            yield
        finally:
            self._do(self._listen())

    def stats(self) -> dict[str, Any]:
        """Return what `GET /stats` says: requests, completed, statuses."""
        return {"requests": self.requests, "completed": self.completed, "statuses": dict(self.statuses)}

    def _do(self, work: Any) -> None:
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=1024)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _shut(self) -> None:
        if self._listener is not None:
            self._listener.close()
        for writer in list(self._writers):
            writer.transport.abort()
        # Connections that wait in a stall or for a latency end here.
        for task in asyncio.all_tasks():
            if task is not asyncio.current_task():
                task.cancel()
        await asyncio.sleep(0)

    # -- HTTP ----------------------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, *_ = [*head[0].split(" "), "", ""]
        headers = {}
        for line in head[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        length = int(headers.get("content-length") or 0)
        if length > _LARGEST_BODY:
            return False
        body = await reader.readexactly(length) if length else b""
        path = urlsplit(target).path
        if path.endswith("/chat/completions"):
            if method != "POST":
                return await self._send(writer, 405, _error("use POST"))
            return await self._complete(writer, body, headers)
        if path.endswith("/models"):
            return await self._send(writer, 200, {"object": "list", "data": [{"id": LABEL, "object": "model"}]})
        if path.endswith("/stats"):
            return await self._send(writer, 200, self.stats())
        return await self._send(writer, 404, _error(f"no such path: {path}"))

    async def _send(
        self, writer: asyncio.StreamWriter, status: int, data: Any, extra: Mapping[str, str] | None = None
    ) -> bool:
        payload = data if isinstance(data, bytes) else json.dumps(data, ensure_ascii=False).encode("utf-8")
        headers = {"Content-Type": "application/json", "Content-Length": str(len(payload)), **(extra or {})}
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}", *(f"{k}: {v}" for k, v in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + payload)
        await writer.drain()
        return True

    # -- completions ---------------------------------------------------------------------------------------------

    async def _complete(self, writer: asyncio.StreamWriter, raw: bytes, headers: Mapping[str, str]) -> bool:
        self.requests += 1
        number = self.requests
        try:
            body = json.loads(raw)
            messages = [_plain_message(message) for message in body["messages"]]
        except (ValueError, KeyError, TypeError, AttributeError):
            self.statuses["400"] += 1
            return await self._send(writer, 400, _error("the body must be a JSON object with 'messages'"))
        self.authorizations.append(headers.get("authorization"))
        if self.record:
            self.bodies.append(body)
        if self.api_key is not None and headers.get("authorization") != f"Bearer {self.api_key}":
            self.statuses["401"] += 1
            return await self._send(writer, 401, _error("wrong or missing API key", "invalid_api_key"))
        wanted = body.get("response_format") or {"type": "text"}
        if (refusal := self._refusal(wanted)) is not None:
            self.statuses["400"] += 1
            return await self._send(writer, 400, _error(refusal))
        call = Call.of(
            messages,
            wanted["json_schema"].get("schema") if wanted["type"] == "json_schema" else None,
            seed=body.get("seed"),
            model=_labelled(str(body.get("model") or "")),
            temperature=body.get("temperature"),
        )
        await asyncio.sleep(self.speaker.behaviour.latency)
        fault = self.plan(number, body)
        max_tokens = body.get("max_tokens") or body.get("max_completion_tokens")
        try:
            if fault is not None and fault.kind not in ("empty", "half-json"):
                raise FaultError(fault)
            spoken = self.speaker.speak(call, max_tokens)
            if fault is not None:
                spoken = finish(spoilt(spoken.text, fault), call, max_tokens)
        except FaultError as error:
            return await self._go_wrong(writer, error.fault, call)
        except Exception as error:  # a test's responder may raise anything; its author must see it
            self.errors.append(error)
            self.statuses["500"] += 1
            return await self._send(writer, 500, _error(f"the responder raised {error!r}", "server_error"))
        usage = {
            "prompt_tokens": spoken.prompt_tokens,
            "completion_tokens": spoken.completion_tokens,
            "total_tokens": spoken.prompt_tokens + spoken.completion_tokens,
        }
        self.statuses["200"] += 1
        keep = await self._send_reply(writer, body, call, spoken.text, spoken.finish, usage, number)
        self.completed += 1
        return keep

    def _refusal(self, wanted: Mapping[str, Any]) -> str | None:
        if wanted.get("type") not in ("text", *_FORMATS):
            return f"unknown response_format type: {wanted.get('type')}"
        if wanted["type"] == "json_schema" and self.accepts != "json_schema":
            return "response_format: json_schema is not supported by this server"
        if wanted["type"] == "json_object" and self.accepts == "none":
            return "unexpected field 'response_format'"
        return None

    async def _send_reply(
        self,
        writer: asyncio.StreamWriter,
        body: Mapping[str, Any],
        call: Call,
        text: str,
        reason: str,
        usage: Mapping[str, int],
        number: int,
    ) -> bool:
        base = {"id": f"simulated-{number}", "created": int(time.time()), "model": call.model}
        if not body.get("stream"):
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": reason}
            return await self._send(
                writer, 200, {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
            )
        base["object"] = "chat.completion.chunk"
        chunks = [
            {**base, "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}]},
            {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
        ]
        events = "".join(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        return await self._send(writer, 200, events.encode("utf-8"), {"Content-Type": "text/event-stream"})

    async def _go_wrong(self, writer: asyncio.StreamWriter, fault: Fault, call: Call) -> bool:
        if fault.kind == "429":
            self.statuses["429"] += 1
            retry = {"Retry-After": f"{fault.seconds:g}"}
            return await self._send(writer, 429, _error("simulated rate limit", "rate_limit_exceeded"), retry)
        if fault.kind == "500":
            self.statuses["500"] += 1
            return await self._send(writer, 500, _error("simulated server error", "server_error"))
        self.statuses["cut"] += 1
        if fault.kind == "stall":
            await asyncio.sleep(fault.seconds)
        elif fault.kind == "half-body":
            text = render(Simulation(self.speaker.behaviour)(call), call)
            payload = json.dumps({"model": call.model, "choices": [{"message": {"content": text}}]}).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
            writer.write(head.encode() + payload[: len(payload) // 2])
            await writer.drain()
            return False
        writer.transport.abort()
        return False


def _plain_message(message: Mapping[str, Any]) -> dict[str, str]:
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(str(part.get("text", "")) for part in content)
    return {"role": str(message["role"]), "content": str(content or "")}


def _labelled(model: str) -> str:
    return model if model.startswith(LABEL) else f"{LABEL}/{model}" if model else LABEL


def _error(message: str, code: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"message": message, "type": code, "code": code}}


class SimulatedProcess:
    """The same server in a process of its own, for measurements: it shares no interpreter with its callers.

    Args:
        behaviour: as `simulation.parse_behaviour` reads it: "accuracy=0.7&latency=0.2".
        arguments: further arguments of the command line, see `python -m townhall.models.server --help`.
    """

    def __init__(self, behaviour: str = "", arguments: Sequence[str] = ()) -> None:
        self.arguments = ["--port", "0", *(["--behaviour", behaviour] if behaviour else []), *arguments]
        self.url = ""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", __spec__.name if __spec__ else __name__, *self.arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            self.__exit__()
            raise RunError("the simulated server did not start; its message is on standard error")
        return self

    def __exit__(self, *exception: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=10)

    def stats(self) -> dict[str, Any]:
        """Return the server's counts, see `SimulatedServer.stats`."""
        with urllib.request.urlopen(f"{self.url}/stats", timeout=10) as reply:
            found: dict[str, Any] = json.load(reply)
            return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server until it is interrupted; prints its `api_base` as the first line."""
    parser = argparse.ArgumentParser(
        prog="python -m townhall.models.server", description="A simulated model over HTTP."
    )
    parser.add_argument("--port", type=int, default=8000, help="0 for any free one (default 8000)")
    parser.add_argument("--behaviour", default="", help='for example "accuracy=0.7&latency=0.2&answers=FILE"')
    parser.add_argument("--accepts", choices=_FORMATS, default="json_schema", help="the richest response_format taken")
    parser.add_argument("--fault", action="append", default=[], metavar="N=KIND[:SECONDS]", help="on request N")
    parser.add_argument("--every", action="append", default=[], metavar="N=KIND[:SECONDS]", help="on each Nth request")
    options = parser.parse_args(arguments)
    try:
        at, every = _numbered(options.fault), _numbered(options.every)

        def plan(number: int, body: Mapping[str, Any]) -> Fault | None:
            return at.get(number) or next((fault for step, fault in every.items() if number % step == 0), None)

        server = SimulatedServer(
            behaviour=parse_behaviour(options.behaviour),
            faults=plan,
            accepts=options.accepts,
            record=False,
            port=options.port,
        ).start()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(server.url, flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        server.stop()
    return 0


def _numbered(texts: Sequence[str]) -> dict[int, Fault]:
    found = {}
    for text in texts:
        number, _, kind = text.partition("=")
        if not number.isdigit() or int(number) < 1:
            raise InputError(f"'{text}' is not N=KIND[:SECONDS]")
        found[int(number)] = Fault.parse(kind)
    return found


if __name__ == "__main__":
    raise SystemExit(main())
