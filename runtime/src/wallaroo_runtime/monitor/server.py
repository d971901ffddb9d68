"""Serves the monitor over HTTP: the page, JSON, metrics and events, to readers that have the run's token."""

import contextlib
import re
import socket
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.errors import USAGE, RunError, host_port
from wallaroo_runtime.monitor.access import has_token, is_own_name, new_token, parse_address
from wallaroo_runtime.monitor.board import Board
from wallaroo_runtime.monitor.route import API, Answer, Routes

REQUEST_S = 10.0
MOST_CONNECTIONS = 32
MOST_PARAMETERS = 10
MOST_BODY = 65_536
METHODS = "GET, HEAD"
BEAT_S = 15.0
LENGTH = re.compile(r"[0-9]{1,9}")
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}


LISTENING = {"what": "the monitor", "option": "--monitor, or turn it off with --monitor off"}


class MonitorServer(ThreadingHTTPServer):
    """The monitor's HTTP server. Each connection has a thread, and there are at most 32 connections.

    Args:
        board: Board with the numbers of the run.
        address: HOST:PORT; port 0 means any free port.
        token: Readers need this token; empty for a new random token.

    Attributes:
        page: URL of the page, without the token.
        url: URL of the page, with the token.

    Raises:
        RunError: R714 if the address is not valid, or is in use.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, board: Board, address: str, token: str = "") -> None:
        parsed = parse_address(address)
        if parsed is None:
            raise RunError.of("R714", USAGE, **LISTENING, address=address, reason="it is not HOST:PORT")
        self.host, port = parsed
        self.board, self.routes = board, Routes(board)
        self.token = token or new_token()
        self._slots = threading.BoundedSemaphore(MOST_CONNECTIONS)
        try:
            self.address_family, *_, place = socket.getaddrinfo(self.host, port, type=socket.SOCK_STREAM)[0]
            super().__init__((str(place[0]), port), Handler)
        except OSError as error:
            raise RunError.of(
                "R714", USAGE, **LISTENING, address=address, reason=error.strerror or str(error)
            ) from error
        self.page = f"http://{host_port(self.host, self.server_address[1])}/"
        self.url = f"{self.page}?token={quote(self.token)}"
        self._thread = threading.Thread(target=self.serve_forever, name="monitor", daemon=True)

    def server_bind(self) -> None:
        """Bind the socket. The base class would also look up the name of the machine, which may take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def start(self) -> None:
        """Serve until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """End the server. Readers of events get the last document first."""
        self.board.end()
        self.socket.shutdown(socket.SHUT_RDWR)  # the loop wakes up at once, not at its next check in half a second
        self.shutdown()
        self._thread.join()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread. Close the connection if there are too many."""
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection. At its end, allow another connection in its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the error, unless the reader has closed the connection."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Answers one connection, with methods GET and HEAD only."""

    server: MonitorServer
    server_version, sys_version = "wallaroo", ""
    protocol_version = "HTTP/1.1"
    timeout = REQUEST_S

    def setup(self) -> None:
        """Limit the time for the whole request, because `timeout` only limits the time until the next byte."""
        super().setup()
        self._limit = threading.Timer(self.timeout or REQUEST_S, self._leave)
        self._limit.daemon = True
        self._limit.start()

    def _leave(self) -> None:
        with contextlib.suppress(OSError):  # the reader has left
            self.connection.shutdown(socket.SHUT_RD)

    def finish(self) -> None:
        """End the connection."""
        self._limit.cancel()
        super().finish()

    def do_GET(self) -> None:  # noqa: N802 - the base class's name
        """Answer a request."""
        self._limit.cancel()
        self.close_connection = True  # an idle reader must not keep the thread of its connection
        path, _, text = self.path.partition("?")
        query = parse_qs(text) if text.count("&") < MOST_PARAMETERS else {}
        if not is_own_name(self.headers.get("Host", ""), self.server.host):
            self._send(Answer.error(421, Diagnostic.of("R766", reason="its Host is not this server's")))
        elif path == "/healthz":
            self._send(Answer(b"ok\n", "text/plain; charset=utf-8"))
        elif not has_token(self.server.token, query, self.headers.get("Authorization", "")):
            self._send(Answer.error(401, Diagnostic.of("R766", reason="it has not the token of this run")))
        elif path == f"{API}events":
            self._send_events()
        else:
            self._send(self.server.routes.answer(unquote(path), query, self.headers.get("Accept", "")))

    do_HEAD = do_GET  # noqa: N815

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer an invalid request. For a wrong method the answer is JSON, as for other errors of the API."""
        if code != HTTPStatus.NOT_IMPLEMENTED:
            super().send_error(code, message, explain)
            return
        self.close_connection = True
        length = self.headers.get("Content-Length", "")
        if LENGTH.fullmatch(length):  # else a client that is still writing would not read the answer
            self.rfile.read(min(int(length), MOST_BODY))
        self._send(
            Answer.error(
                HTTPStatus.METHOD_NOT_ALLOWED,
                Diagnostic.of("R766", reason=f"it takes GET and HEAD, not {self.command[:80]}"),
            )
        )

    def _send(self, answer: Answer) -> None:
        self._head(answer.status, answer.content_type, len(answer.body))
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _head(self, status: int, content_type: str, length: int | None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        if length is not None:
            self.send_header("Content-Length", str(length))
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", METHODS)
        self.send_header("Connection", "close")
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_events(self) -> None:
        """Send each new document as a server-sent event, until the run or the reader ends."""
        self._head(200, "text/event-stream; charset=utf-8", None)
        if self.command == "HEAD":
            return
        seen = 0
        while True:
            number, text, is_last = self.server.board.wait(seen, BEAT_S)
            event = f"data: {text}\n\n" if number != seen else ": still here\n\n"
            self.wfile.write(event.encode("utf-8", "backslashreplace"))
            self.wfile.flush()
            seen = number
            if is_last:
                return

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing, because lines would contain the token."""
