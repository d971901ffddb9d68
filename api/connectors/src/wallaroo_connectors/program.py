"""The parts that the connector programs share: libraries of others, values of decoders, start and end of a program."""

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
    """Import a client library of others.

    Args:
        extra: What of `wallaroo-connectors` installs it.

    Raises:
        WallarooParameterError: R728, it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as err:
        raise WallarooParameterError(
            Diagnostic.of(
                "R728", what="this connector", package=name, error=err, install=f"'wallaroo-connectors[{extra}]'"
            )
        ) from err


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def connect(connector: SourceConnector, stop: Event) -> None:
    """Connect to the application as soon as it listens.

    Raises:
        SystemExit: The program is to end before that.
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
    """Yield the values of the connector's decoder, until the program is to end.

    Args:
        connector: It listens already.
        stop: Says that the program is to end.
        idle: Called whenever nothing has come for a moment.
    """
    while not stop.is_set():
        try:
            yield connector.read(LOOK_S)
        except TimeoutError:
            idle()


def octets(value: Any) -> bytes:
    """Return the bytes of a decoder's result: bytes as they are, text in UTF-8.

    Raises:
        WallarooParameterError: C503, it is something else.
    """
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise _wrong(value, "bytes or text")


def pair(value: Any) -> tuple[Any, Any]:
    """Return the key and the value that a decoder gave.

    Raises:
        WallarooParameterError: C503, it is no pair.
    """
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return value[0], value[1]
    raise _wrong(value, "a pair of key and value")


def row(value: Any) -> tuple[Any, ...]:
    """Return the fields that a decoder gave.

    Raises:
        WallarooParameterError: C503, it is no tuple or list, or an empty one.
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
    """Run the program of a source connector; parameters and result are those of `run_sink`.

    At the end it waits until the application has all messages safe.
    """
    return _run(work, lambda: SourceConnector(None, required, optional), SourceConnectorConfig)


def run_sink(
    work: Callable[[SinkConnector, Event], None], required: Sequence[str], optional: Sequence[str] = ()
) -> int:
    """Run the program of a sink connector until it is asked to end, by SIGTERM, SIGHUP or Ctrl-C.

    Args:
        work: Gets the connector, not yet connected, and an event that says that the program is to end.
        required: Names of the parameters that must be there.
        optional: Names of those that may be.

    Returns:
        The exit code: 0; 2: the command line or the application is wrong; 1: something failed.
    """
    return _run(work, lambda: SinkConnector(None, required, optional), SinkConnectorConfig)


def _run(work: Callable[[Any, Event], None], make: Callable[[], Any], config: type) -> int:
    if {"-h", "--help"} & set(sys.argv[1:]):
        say(str(sys.modules[work.__module__].__doc__))
        return 0
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # as under `nohup`
            signal.signal(number, lambda *_: stop.set())
    try:
        connector = make()
        _check(connector, config)
        _work(work, connector, stop)
    except DiagnosticError as error:
        print(error, file=sys.stderr)
        return 2
    except Exception as error:
        # What clients of other systems raise has no base class in common.
        finding = Diagnostic.of("R692", error=f"{type(error).__name__}: {error}".rstrip(": "))
        print(finding, file=sys.stderr)
        return 1
    return 0


def _work(work: Callable[[Any, Event], None], connector: Any, stop: Event) -> None:
    try:
        work(connector, stop)
    except BaseException:
        # The failure is reported; what a source has sent before that must not be lost.
        with contextlib.suppress(UnexpectedSocketError):
            connector.close()
        raise
    connector.close()


def _check(connector: Any, config: type) -> None:
    """Refuse a connector of the other direction, and one that speaks the connector protocol."""
    declared = connector.config
    what = "a sink" if isinstance(declared, SinkConnectorConfig) else "a source"
    if getattr(declared, "cookie", None) is not None:
        what += " that has a cookie"
    elif isinstance(declared, config):
        return
    expected = "a source without a cookie" if config is SourceConnectorConfig else "a sink without a cookie"
    raise WallarooParameterError(Diagnostic.of("T269", name=connector.name, actual=what, expected=expected))
