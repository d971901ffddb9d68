"""The parts that all connector programs share: client libraries, results of decoders, start and end of a program."""

import _thread
import contextlib
import importlib
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from threading import Event
from typing import Any

from wallaroo.connector import SinkConnectorConfig, SourceConnectorConfig
from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError, shown
from wallaroo.diagnostic.error import WallarooParameterError
from wallaroo.experimental.script import SinkConnector, SourceConnector, UnexpectedSocketError

LOOK_S = 0.2


def library(name: str, extra: str) -> Any:
    """Import the client library of another system, which `wallaroo-connectors` installs only as an extra.

    Args:
        name: Name of the package.
        extra: Extra of `wallaroo-connectors` that installs the package.

    Raises:
        WallarooParameterError: R728 if the package is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as err:
        raise WallarooParameterError(
            Diagnostic.no_package("this connector", name, err, f"'wallaroo-connectors[{extra}]'")
        ) from err


def say(text: str) -> None:
    """Print a line without buffering."""
    print(text, flush=True)


def connect(connector: SourceConnector, stop: Event) -> None:
    """Connect to the application as soon as it listens.

    Raises:
        SystemExit: `stop` is set before the application listens.
    """
    while not stop.is_set():
        try:
            connector.connect(timeout=0)
        except ConnectionRefusedError:
            stop.wait(LOOK_S)
        else:
            return
    raise SystemExit(0)


def values(connector: SinkConnector, stop: Event, idle: Callable[[], object] = lambda: None) -> Iterator[Any]:
    """Yield the messages of the application, as the connector's decoder returns them, until `stop` is set.

    Args:
        connector: A connector that listens already.
        stop: Ends the program.
        idle: Called each time no message has come for 0.2 seconds.
    """
    while not stop.is_set():
        try:
            yield connector.read(LOOK_S)
        except TimeoutError:
            idle()


def octets(value: Any) -> bytes:
    """Return the bytes of a decoder's result: bytes as they are, text in UTF-8.

    Raises:
        WallarooParameterError: C503 if the result is neither bytes nor text.
    """
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise _wrong(value, "bytes or text")


def pair(value: Any) -> tuple[Any, Any]:
    """Return the key and the value of a decoder's result, which must be a pair.

    Raises:
        WallarooParameterError: C503 if the result is not a pair.
    """
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return value[0], value[1]
    raise _wrong(value, "a pair of key and value")


def row(value: Any) -> tuple[Any, ...]:
    """Return the fields of a decoder's result, which must be a tuple or list.

    Raises:
        WallarooParameterError: C503 if the result is not a tuple or list, or is empty.
    """
    if isinstance(value, (tuple, list)) and value:
        return tuple(value)
    raise _wrong(value, "a tuple of fields")


def _wrong(value: Any, expected: str) -> WallarooParameterError:
    return WallarooParameterError(
        Diagnostic.of("C503", step="the connector's decoder", actual=shown(value), expected=expected)
    )


def run_source(
    work: Callable[[SourceConnector, Event], None], required: Sequence[str], optional: Sequence[str] = ()
) -> int:
    """Run the program of a source connector, with parameters and result as for `run_sink`.

    At its end the program waits until the application has stored all messages durably.
    """
    return _run(work, lambda: SourceConnector(None, required, optional), SourceConnectorConfig)


def run_sink(
    work: Callable[[SinkConnector, Event], None], required: Sequence[str], optional: Sequence[str] = ()
) -> int:
    """Run the program of a sink connector until a SIGTERM, SIGHUP or Ctrl-C.

    Args:
        work: Gets the connector, which is not connected yet, and an event that is set when the program must end.
        required: Names of the required parameters.
        optional: Names of the optional parameters.

    Returns:
        The exit code: 0 after a normal end, 2 if the command line or the application is wrong, 1 after another error.
    """
    return _run(work, lambda: SinkConnector(None, required, optional), SinkConnectorConfig)


def _run(work: Callable[[Any, Event], None], make: Callable[[], Any], config: type) -> int:
    if {"-h", "--help"} & set(sys.argv[1:]):
        say(str(sys.modules[work.__module__].__doc__))
        return 0
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` sets it
            # Not in this thread, which may hold the event's lock at this moment, and would wait for it forever.
            signal.signal(number, lambda *_: _thread.start_new_thread(stop.set, ()))
    try:
        connector = make()
        _check(connector, config)
        _work(work, connector, stop)
    except DiagnosticError as error:
        print(error, file=sys.stderr)
        return 2
    except Exception as error:
        # The errors of client libraries have no common base class.
        finding = Diagnostic.of("R692", error=f"{type(error).__name__}: {error}".rstrip(": "))
        print(finding, file=sys.stderr)
        return 1
    return 0


def _work(work: Callable[[Any, Event], None], connector: Any, stop: Event) -> None:
    try:
        work(connector, stop)
    except BaseException:
        # The failure is reported, but messages that a source has sent before it must not be lost.
        with contextlib.suppress(UnexpectedSocketError):
            connector.close()
        raise
    connector.close()


def _check(connector: Any, config: type) -> None:
    """Refuse a source for a sink or the reverse, and a config with a cookie, which asks for another protocol."""
    declared = connector.config
    what = "a sink" if isinstance(declared, SinkConnectorConfig) else "a source"
    if getattr(declared, "cookie", None) is not None:
        what += " that has a cookie"
    elif isinstance(declared, config):
        return
    expected = "a source without a cookie" if config is SourceConnectorConfig else "a sink without a cookie"
    raise WallarooParameterError(Diagnostic.of("T269", name=connector.name, actual=what, expected=expected))
