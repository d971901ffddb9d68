"""Base classes of connector programs. A program finds the config of its connector in the application's module."""

import argparse
import math
import socket
import sys
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from wallaroo.connector import hint_of
from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.diagnostic.error import WallarooParameterError
from wallaroo.emit.program import load
from wallaroo.experimental.stream import LENGTH
from wallaroo.experimental.tcp import connected

CONNECT_SECONDS = 30.0
RETRY_SECONDS = 0.5


class UnexpectedSocketError(Exception):
    """A connection ended, or a socket failed, while a message was sent or received.

    Source: Wallaroo 0.6.1.
    """


def parse_connector_args(
    args: Sequence[str], required_params: Sequence[str] = (), optional_params: Sequence[str] = ()
) -> tuple[str, str, SimpleNamespace, list[str]]:
    """Return the application's module, the connector's name, its parameters, and the application's own arguments.

    Args:
        args: The command line without the program's name: `--application-module M --connector NAME --NAME-PARAM v`.
            In names of parameters `_` may be written as `-`.
        required_params: Names of required parameters.
        optional_params: Names of optional parameters; their value is None if they are missing.

    Raises:
        WallarooParameterError: T207 if a required option or parameter is missing.

    Example:
        >>> parse_connector_args("--application-module m --connector feed --feed-topic t --in h:1".split(), ["topic"])
        ('m', 'feed', namespace(topic='t'), ['--in', 'h:1'])

    Source: Wallaroo 0.5.4 and 0.6.1.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--application-module")
    parser.add_argument("--connector")
    known, rest = parser.parse_known_args(list(args))
    missing = [
        f"--{name}" for name in ("application-module", "connector") if getattr(known, name.replace("-", "_")) is None
    ]
    params = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    names = (*required_params, *optional_params) if known.connector is not None else ()
    options = {f"--{known.connector}-{name.replace('_', '-')}": name for name in names}
    for option, name in options.items():
        params.add_argument(option, f"--{known.connector}-{name}", dest=name.replace("-", "_"))
    parsed, rest = params.parse_known_args(rest)
    missing += [
        option for option, name in options.items()
        if name in required_params and getattr(parsed, name.replace("-", "_")) is None
    ]  # fmt: skip
    if missing:
        fix = "start it as `CONNECTOR --application-module M --connector NAME --NAME-PARAMETER VALUE`"
        raise WallarooParameterError.of(
            method="connector", parameter=" ".join(missing), actual="missing", expected="a value", fix=fix
        )
    return known.application_module, known.connector, SimpleNamespace(**vars(parsed)), rest


class _Connector:
    """The common part of source and sink connectors.

    Attributes:
        name: Name of the connector.
        params: Parameters of the connector.
        config: The connector's config in the application.
    """

    config: Any

    def __init__(
        self,
        args: Sequence[str] | None = None,
        required_params: Sequence[str] = (),
        optional_params: Sequence[str] = (),
    ) -> None:
        words = sys.argv[1:] if args is None else args
        module, name, self.params, rest = parse_connector_args(words, required_params, optional_params)
        connectors = load(module, rest).application.connectors
        if name not in connectors:
            raise WallarooParameterError(Diagnostic.of("T233", name=name, hint=hint_of(connectors)))
        self.name, self.config = name, connectors[name]
        self._socket: socket.socket | None = None

    def _address(self, host: str | None, port: str | int | None) -> tuple[str, int]:
        return host or self.config.host, int(self.config.port if port is None else port)

    def _open(self) -> socket.socket:
        if self._socket is None:
            msg = "the connector has no connection"
            raise UnexpectedSocketError(msg)
        return self._socket


class SourceConnector(_Connector):
    """Sends messages to an application, from a separate program.

    Args:
        args: The command line without the program's name; None takes this program's command line.
        required_params: Names of required parameters. The command line has them as `--CONNECTOR-PARAM VALUE`.
        optional_params: Names of optional parameters.

    Raises:
        WallarooParameterError: T207 if a parameter is missing, T233 if the application has no connector of this name.
        DiagnosticError: The application cannot be loaded.

    Attributes:
        name: Name of the connector.
        params: Parameters of the connector.
        config: The connector's config in the application.

    Example:
        >>> import pathlib, socket, tempfile
        >>> directory = tempfile.TemporaryDirectory()
        >>> program = pathlib.Path(directory.name, "bells.py")
        >>> _ = program.write_text('''
        ... import wallaroo
        ... from wallaroo.experimental import stream_message_decoder, stream_message_encoder
        ...
        ... encode, decode = stream_message_encoder(str.encode), stream_message_decoder(bytes.decode)
        ...
        ... def application_setup(args):
        ...     ab = wallaroo.ApplicationBuilder("bells").source_connector("feed", encode, decode)
        ...     sink = wallaroo.TCPSinkConfig("127.0.0.1", 7002, wallaroo.Encoder(str.encode))
        ...     return ab.new_pipeline("bells", "feed").to_sink(sink).build()
        ... ''')
        >>> feed = SourceConnector(["--application-module", str(program), "--connector", "feed"])
        >>> with socket.create_server(("127.0.0.1", 0)) as listener:  # what the application does
        ...     feed.connect(port=listener.getsockname()[1])
        ...     application, _ = listener.accept()
        >>> feed.write("ring")
        >>> with application:
        ...     application.recv(100)[-4:]
        b'ring'
        >>> feed.close()
        >>> directory.cleanup()

    Source: Wallaroo 0.5.4 and 0.6.1.
    """

    def connect(self, host: str | None = None, port: str | int | None = None, *, timeout: float | None = None) -> None:
        """Connect to the application, by default at the address of the connector's config.

        Waits until the application listens, so a connector may be started before the application.

        Args:
            host: Host name or address of the application.
            port: Port at which the application listens.
            timeout: Seconds to wait; None waits forever.

        Raises:
            ConnectionRefusedError: Nothing listened at the address in time.
            OSError: The address cannot be reached.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            try:
                self._socket = connected(*self._address(host, port), CONNECT_SECONDS)
                break
            except ConnectionRefusedError:
                if time.monotonic() + RETRY_SECONDS > end:
                    raise
                time.sleep(RETRY_SECONDS)
        self._socket.settimeout(None)

    def write(self, message: Any, event_time: int = 0) -> None:
        """Send a message.

        Args:
            message: A message for the connector's encoder.
            event_time: Time of the message in milliseconds since 1970, or 0 if it has no time.

        Raises:
            UnexpectedSocketError: There is no connection, or it broke.
        """
        frame = self.config.encoder.encode(message, event_time)
        if frame is None:
            return
        try:
            self._open().sendall(frame)
        except OSError as err:
            raise UnexpectedSocketError(str(err)) from err

    def close(self) -> None:
        """End the connection after the application has stored all messages durably.

        Raises:
            UnexpectedSocketError: There is no connection, or it broke before.
        """
        connection = self._open()
        try:
            with connection:
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass
        except OSError as err:
            raise UnexpectedSocketError(str(err)) from err
        self._socket = None


class SinkConnector(_Connector):
    """Receives the output of an application, in a separate program.

    Parameters, attributes and errors are as for `SourceConnector`.

    Example:
        >>> import pathlib, socket, tempfile
        >>> directory = tempfile.TemporaryDirectory()
        >>> program = pathlib.Path(directory.name, "doors.py")
        >>> _ = program.write_text('''
        ... import wallaroo
        ... from wallaroo.experimental import stream_message_decoder, stream_message_encoder
        ...
        ... encode, decode = stream_message_encoder(str.encode), stream_message_decoder(bytes.decode)
        ...
        ... def application_setup(args):
        ...     source = wallaroo.TCPSourceConfig("127.0.0.1", 7010, wallaroo.Decoder(bytes.decode, 4, ">I"))
        ...     ab = wallaroo.ApplicationBuilder("doors").sink_connector("out", encode, decode)
        ...     return ab.new_pipeline("doors", source).to_sink("out").build()
        ... ''')
        >>> out = SinkConnector(["--application-module", str(program), "--connector", "out"])
        >>> address = out.listen(port=0)
        >>> with socket.create_connection(address) as application:
        ...     application.sendall(out.config.encoder.encode("open"))
        ...     out.read(timeout=10)
        'open'
        >>> out.close()
        >>> directory.cleanup()

    Source: Wallaroo 0.5.4 and 0.6.1.
    """

    _connection: socket.socket | None = None

    def listen(self, host: str | None = None, port: str | int | None = None, backlog: int = 0) -> tuple[str, int]:
        """Listen for the application, by default at the address of the connector's config.

        Args:
            host: Name or address to listen at.
            port: Port as text or number; 0 lets the system choose.
            backlog: How many connections may wait.

        Returns:
            The address and the port.

        Raises:
            OSError: The program cannot listen at this address.
        """
        self._socket = socket.create_server(self._address(host, port), backlog=backlog)
        address: tuple[str, int] = self._socket.getsockname()[:2]
        return address

    def read(self, timeout: float | None = None) -> Any:
        """Return the next message. Waits for the application to connect, also after a restart of the application.

        Args:
            timeout: Seconds to wait for a connection, and for each part of a message; None waits forever.

        Raises:
            TimeoutError: No connection or no data arrived in time.
            UnexpectedSocketError: A socket failed, or `listen` was not called.
            StreamDecoderError: The received bytes are not a stream frame.
        """
        while True:
            try:
                frame = self._frame(timeout)
            except TimeoutError:
                raise
            except OSError as err:
                raise UnexpectedSocketError(str(err)) from err
            if frame is not None:
                return self.config.decoder.decode(frame)
            assert self._connection is not None
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Close all sockets."""
        for each in (self._connection, self._socket):
            if each is not None:
                each.close()
        self._connection = self._socket = None

    def _frame(self, timeout: float | None) -> bytes | None:
        """Return the next frame without its length; None if the connection ended. Incomplete frames are sent again."""
        if self._connection is None:
            listener = self._open()
            listener.settimeout(timeout)
            self._connection, _ = listener.accept()
            self._received = b""
        self._connection.settimeout(timeout)
        while len(self._received) < LENGTH.size or len(self._received) < self._whole():
            data = self._connection.recv(65536)
            if not data:
                return None
            self._received += data
        whole = self._whole()
        frame, self._received = self._received[LENGTH.size : whole], self._received[whole:]
        return frame

    def _whole(self) -> int:
        return LENGTH.size + int(LENGTH.unpack_from(self._received)[0])
