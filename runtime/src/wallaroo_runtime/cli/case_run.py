"""Runs a case in this process, or on Spark."""

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from wallaroo_runtime.cli.case import FILE, RECORDS, Case, Found, bad
from wallaroo_runtime.cli.case_broker import CaseBroker
from wallaroo_runtime.cli.case_driver import tell_doing
from wallaroo_runtime.cli.case_kafka import on_topics
from wallaroo_runtime.cli.case_topics import feed_records, topic_lines
from wallaroo_runtime.errors import RUN, RunError
from wallaroo_runtime.gateway.framing import KINDS, framer
from wallaroo_runtime.memory.start import start
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.topology.model import GeneratorSource, TcpSource, Topology, has_records

LATER = timedelta(hours=1)  # after which all windows of a case are over
IDLE_S = 5.0
DEADLINE_S = 600.0
MAX_LETTERS = 5


def in_memory(case: Case, app: Path) -> Found:
    """Run a case in this process: no Spark, and an hour passes at its end.

    Raises:
        RunError: The application cannot be run.
    """
    run = start(str(app), case.arguments())
    try:
        check_input(case, run.topology)
        if case.has_records:
            feed_records(case, run)
        for number, payloads in enumerate(() if case.has_records else case.inputs()):
            run.send(payloads, str(number))
        for number, source in enumerate(run.topology.sources()):
            if isinstance(source, GeneratorSource):
                run.generate(source=str(number))
        run.advance(int(LATER.total_seconds() * 1000))
        count = sum(1 for _ in run.topology.sinks())
        values = [record.value or b"" for number in range(count) for record in run.records(str(number))]
        said = [f"{letter.code} {letter.step}: {letter.error}" for letter in run.letters[:MAX_LETTERS]]
        lines = topic_lines(case, run) if case.has_records else case.lines(b"".join(values))
        return Found(lines, run.letter_count, said)
    finally:
        run.close()


def check_input(case: Case, topology: Topology) -> None:
    """Refuse a case without input whose application reads topics alone.

    Raises:
        RunError: R745.
    """
    sources = list(topology.sources())
    if case.setting("input", []) or not sources or not all(map(has_records, sources)):
        return
    topics = ", ".join(dict.fromkeys(source.place for source in sources))
    fix = f'write [[input]], file = "input.txt" and kind = "{RECORDS}"; each line of the file is TOPIC KEY VALUE'
    raise bad(case.folder / FILE, f"it has no input, and its application reads topics alone: {topics}", fix)


def on_spark(case: Case, app: Path) -> Found:
    """Run a case with `wallaroo run`, over real sockets, until nothing more comes.

    Raises:
        RunError: R745, the run failed; or the application is not correct.
    """
    topology = load_application(str(app), case.arguments(), "", "").topology
    check_input(case, topology)
    framings = [source.framing.kind for source in topology.sources() if isinstance(source, TcpSource)]
    with _receiver() as (address, data), tempfile.TemporaryDirectory(prefix="wallaroo-test-") as checkpoint:
        arguments = case.arguments(["127.0.0.1:0"] * len(framings), address)
        idle = str(case.setting("idle", IDLE_S))
        command = [
            *(sys.executable, "-m", "wallaroo_runtime.cli.driver", "run", str(app), *arguments, "--json"),
            *("--checkpoint", checkpoint, "--stop-when-idle", idle, *case.setting("options", [])),
        ]
        with _process(command) as child:
            letters = _driven(case, child, framings)
        return Found(case.lines(bytes(data)), letters, [])


def on_broker(case: Case, app: Path, broker: CaseBroker) -> Found:
    """Run a case of records with `wallaroo run`, on topics of a broker.

    Raises:
        RunError: As `on_spark`, and as `on_topics`.
    """
    with _receiver() as (address, _), tempfile.TemporaryDirectory(prefix="wallaroo-test-") as folder:
        arguments = case.arguments(["127.0.0.1:0"] * len(case.setting("input", [])), address)
        application = load_application(str(app), arguments, "", "")
        check_input(case, application.topology)
        return on_topics(case, app, arguments, application, broker, Path(folder))


def _driven(case: Case, child: "subprocess.Popen[str]", framings: list[str]) -> int:
    """Send the input when the run is ready, and return how many dead letters it had."""
    assert child.stdout is not None
    last: dict[str, Any] = {}
    for line in child.stdout:
        if not line.startswith("{"):
            continue
        said = json.loads(line)
        tell_doing(case, said)
        last = said if "dead_letters" in said else last
        if said["state"] == "initialized":
            for payloads, framing, source in zip(case.inputs(), framings, said["sources"], strict=False):
                _send(source["address"], b"".join(map(framer(framing), payloads) if framing in KINDS else payloads))
    if child.wait(DEADLINE_S) or last.get("state") != "stopped":
        raise bad(case.folder, f"the run ended with {child.returncode}; see above", "correct what it says")
    return int(last["dead_letters"])


def _send(address: str, data: bytes) -> None:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=DEADLINE_S) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass  # its EOF says that all is safe


@contextlib.contextmanager
def _process(command: list[str]) -> Iterator["subprocess.Popen[str]"]:
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    watch = threading.Timer(DEADLINE_S, child.terminate)
    watch.start()
    try:
        yield child
    finally:
        watch.cancel()
        child.terminate()
        child.communicate(timeout=DEADLINE_S)


@contextlib.contextmanager
def _receiver() -> Iterator[tuple[str, bytearray]]:
    """Listen where sinks send to; gives the address, and what has come."""
    data = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def take() -> None:
            with contextlib.suppress(OSError):  # closed
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=receive, args=(connection,), daemon=True).start()

        def receive(connection: socket.socket) -> None:
            with connection:
                while block := connection.recv(1 << 16):
                    data.extend(block)

        threading.Thread(target=take, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}", data


def run_case(case: Case, app: Path, engine: str, broker: CaseBroker) -> Found:
    """Run a case on an engine.

    Args:
        broker: That a case of records starts on Spark.

    Raises:
        RunError: R745, the case is not for this command; or the application cannot be run.
    """
    if case.setting("runner", "tcp") != "tcp":
        reason = f'its runner is "{case.setting("runner")}"'
        raise RunError.of(
            "R745", RUN, path=case.folder, reason=reason, fix='`wallaroo test` runs those of runner "tcp"'
        )
    if engine == "memory":
        return in_memory(case, app)
    return on_broker(case, app, broker) if case.has_records else on_spark(case, app)
