"""`wallaroo run --watch`: loads the program again when its files change, while Spark goes on."""

import socket
import threading
from concurrent.futures import Future
from contextlib import ExitStack, closing
from dataclasses import replace

from wallaroo.diagnostic.diagnostic import Kind
from wallaroo_runtime.errors import TOPOLOGY, WORKER, RunError, host_port
from wallaroo_runtime.monitor.access import new_token, parse_address
from wallaroo_runtime.program.application import Application, load_application
from wallaroo_runtime.program.watched import ProgramFiles
from wallaroo_runtime.run.check import check_application, check_continues
from wallaroo_runtime.run.end_condition import EndCondition
from wallaroo_runtime.run.options import AppOptions, RunOptions
from wallaroo_runtime.run.run import LOOK_S, STOPPED, RunEnd, run_once
from wallaroo_runtime.run.signals import BROKEN_OFF, RunStop, stop_signals
from wallaroo_runtime.run.snapshot import Reporter

TRYING, CHANGED, KEPT, WAITING = "trying", "changed", "kept", "waiting"
WAIT = "waiting for a change of the program"


def execute_watched(options: RunOptions, reporter: Reporter) -> int:
    """Run an application until it is stopped by a signal, or idle. Each change of its files starts it again.

    If a changed program cannot be loaded, or does not fit the checkpoint, that is reported, and the former program goes
    on. If the changed program fails later, e.g. because workers do not start, that is reported, and the run waits for
    the next change. `--fresh` only affects the first start that opens the checkpoint.

    Returns:
        The exit code: 0, or the code of a signal that came before any program was initialized.

    Raises:
        RunError: The first start failed for a reason outside the program, or Spark has ended.
    """
    options = _with_lasting_page(options)
    program = WatchedProgram(options, reporter)
    changed = EndCondition(lambda _: program.has_changed(), "its program has changed")
    with stop_signals() as stopped, ExitStack() as spark:
        try:
            while _run_once(options, reporter, program, RunEnd(stopped, (changed,), spark, program.open)):
                fresh = options.checkpoint.fresh and not program.was_opened
                options = replace(options, checkpoint=replace(options.checkpoint, fresh=fresh))
        except (KeyboardInterrupt, RunError) as error:
            if not stopped.ended_start(error):
                raise
            reporter.event(STOPPED, BROKEN_OFF)
        return 0 if program.was_ready or not stopped.is_set() else stopped.exit_code


def _run_once(options: RunOptions, reporter: Reporter, program: "WatchedProgram", ending: RunEnd) -> bool:
    """Run the current program. Return whether a changed program must run next."""
    stopped = ending.stopped
    application, program.loaded, stopped.is_started = program.loaded, None, False
    try:
        run_once(options, reporter, ending, application)
    except RunError as error:
        program.was_ready |= stopped.is_started
        if stopped.is_set() or program.cannot_help(error):
            raise
        if program.loaded is None:
            reporter.event(WAITING, WAIT, error.diagnostics)
            return program.wait(stopped)
        for finding in error.diagnostics:  # the former program failed, but a changed program is already loaded
            reporter.warn(finding)
        return True
    program.was_ready = True
    return program.loaded is not None and not stopped.is_set()


def _loading(app: AppOptions) -> "Future[Application]":
    """Begin to load a program in a thread, while the run goes on."""
    future: Future[Application] = Future()

    def load() -> None:
        try:
            future.set_result(load_application(app.name, app.args, app.inputs, app.outputs))
        except Exception as error:
            future.set_exception(error)  # the main thread of the run raises or reports this error

    threading.Thread(target=load, name="loading", daemon=True).start()
    return future


class WatchedProgram:
    """Watches the files of a run's program, and loads the program again when they change.

    Args:
        options: Options of the run, which name the program.
        reporter: Notifies the user.

    Attributes:
        loaded: A changed program that waits to be run; None if there is none.
        was_ready: Whether the program was ever initialized.
        was_opened: Whether a start has ever opened the checkpoint.
    """

    def __init__(self, options: RunOptions, reporter: Reporter) -> None:
        self._options, self._reporter = options, reporter
        self._files = ProgramFiles(options.app.name)
        self._loading: Future[Application] | None = None
        self.loaded: Application | None = None
        self.was_ready = self.was_opened = False

    def open(self) -> None:
        """Note that the checkpoint was opened: `--fresh` has removed its former content, and must not do so again."""
        self.was_opened = True

    def has_changed(self) -> bool:
        """Return whether a changed program is loaded and can run. If it cannot run, this is reported to the user.

        A load may take long, e.g. for a build in Go. The run goes on meanwhile.
        """
        try:
            if not self._has_loaded():
                return False
        except RunError as error:
            self._reporter.event(KEPT, "the program before this change goes on", error.diagnostics)
            return False
        self._reporter.event(CHANGED, "the program has changed: it is started again")
        return True

    def _has_loaded(self) -> bool:
        """Return whether a changed program was loaded. A further change begins another load.

        Raises:
            RunError: The changed program cannot be run.
        """
        if self._files.have_changed():
            self._reporter.doing(TRYING, "trying the changed program", is_shared=True)
            self._loading = _loading(self._options.app)
        if self._loading is None or not self._loading.done():
            return False
        done, self._loading = self._loading, None
        application = done.result()
        # Imported late: pyspark takes a second to import.
        from wallaroo_runtime.spark.session import running_session
        from wallaroo_runtime.spark.source.kafka import check_connector

        check_connector(running_session(), application.topology)
        check_application(self._options, application)
        if self.was_opened or not self._options.checkpoint.fresh:
            check_continues(self._options, application)
        self.loaded = application
        return True

    def cannot_help(self, error: RunError) -> bool:
        """Return whether no change of the program can fix an error, e.g. because Spark has ended."""
        if any(finding.kind is Kind.ENDED for finding in error.diagnostics):
            return True
        return not self.was_ready and error.exit_code not in (TOPOLOGY, WORKER)

    def wait(self, stopped: RunStop) -> bool:
        """Wait for a changed program that can be run. Return False if a signal came first."""
        stopped.is_started = True  # from now on signals only set the flag
        while not stopped.wait(LOOK_S):
            try:
                if self._has_loaded():
                    return True
            except RunError as error:
                self._reporter.event(WAITING, WAIT, error.diagnostics)
        return False


def _with_lasting_page(options: RunOptions) -> RunOptions:
    """Return the options with fixed port and token for the monitor. So a page in a browser survives each start."""
    place = parse_address(options.monitor)
    if place is None:
        return options
    host, port = place
    if port == 0:
        family, *_, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with closing(socket.socket(family, socket.SOCK_STREAM)) as listener:
            listener.bind(address)
            port = listener.getsockname()[1]
    return replace(options, monitor=host_port(host, port), monitor_token=options.monitor_token or new_token())
