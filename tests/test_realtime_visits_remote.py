"""Visits in real-time mode at a remote gateway, which dies, and whose network goes away."""

import contextlib
import json
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from support.link import Link
from support.linked_site import LinkedSite
from support.realtime import lines
from support.remote import Service, Site, running, token_setting
from support.run import MODES, TESTS, WALLAROO, Receiver, Run, framed, wallaroo
from support.visited.app import VISITS
from support.visits import Messages, Past, by_key
from wallaroo_runtime.cli.main import main

pytestmark = [pytest.mark.jvm, pytest.mark.long]
APP = TESTS / "support" / "visited" / "app.py"
ASKED = 16
AWAY_S, SILENT_S = 15.0, 10.0
SLOW = """
import time
from pathlib import Path
import wallaroo

def application_setup(args):
    ins, outs = wallaroo.tcp_parse_input_addrs(args)[0], wallaroo.tcp_parse_output_addrs(args)[0]
    return wallaroo.build_application(
        "Slow",
        wallaroo.source("lines", wallaroo.TCPSourceConfig(*ins, decode)).key_by(key).to(count)
        .to_sink(wallaroo.TCPSinkConfig(*outs, encode)))

class Count:
    value = 0

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(data):
    return data.decode()

@wallaroo.key_extractor
def key(line):
    return line

@wallaroo.state_computation("count", state=Count)
def count(line, state):
    state.value += 1
    return f"{line} {state.value}"

@count.visitor("wait")
def wait(metadata, key, state):
    folder = Path(metadata.decode())
    (folder / "began").touch()
    while not (folder / "goes on").exists():
        time.sleep(0.01)
    return f"{key} waited"

@wallaroo.encoder
def encode(line):
    return line + "\\n"
"""


class Asking:
    """Asks for drawn visits, while the gateway dies at drawn moments; keeps what it heard of each, by its id."""

    def __init__(self, gateway: Service, source: random.Random, capsys: pytest.CaptureFixture[str]) -> None:
        self._gateway, self._source, self._capsys = gateway, source, capsys
        self.told: dict[int, tuple[int, int]] = {}
        self.killed = 0

    def ask(self) -> None:
        """Ask for one; the gateway may die before the request, with it, or while its end is waited for."""
        killer = threading.Timer(self._source.uniform(0, 0.6), self._kill)
        dies = self._source.random() < 0.4
        if dies:
            killer.start()
        waits = self._source.random() < 0.7
        said = self._command(self._source.choice(VISITS), str(self._source.randint(1, 5)), *["--wait"] * waits)
        if dies:
            killer.join()
            self.killed += 1
        if said.startswith("["):  # whether it is in the journal, only the journal knows
            assert dies and '"R733"' in said, said
        elif waits:
            found = json.loads(said)
            self.told[found["id"]] = found["keys"], found["failed"]

    def _command(self, name: str, metadata: str, *options: str) -> str:
        where = ("--gateway", self._gateway.address, *token_setting(self._gateway.token_file))
        main(["visit", "-", name, "--metadata", metadata, "--json", *where, *options])
        said = self._capsys.readouterr()
        return said.out or said.err

    def _kill(self) -> None:
        self._gateway.end(signal.SIGKILL)
        time.sleep(self._source.uniform(0, 2))
        self._gateway.start()


def test_visits_come_once_to_each_key_although_the_gateway_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Messages and visits are asked for at once; the journal has their order."""
    source, site = random.Random(3), Site(tmp_path, "")
    gateway, (host, _, port) = site.gateways[""], site.source.rpartition(":")
    journal, asking = gateway.directory / "journal", Asking(gateway, source, capsys)
    with running(site), Receiver() as receiver, site.run(APP, receiver, *MODES["realtime"]) as run:
        with contextlib.closing(Messages((host, int(port)), journal, 3, 100)) as messages:
            messages.goal = 1 << 40
            for _ in range(ASKED):
                known, more = len(lines(receiver)), source.randint(1, 120)
                run.wait_while_alive(lambda: len(lines(receiver)) > known + more, lambda: f"{more} results")  # noqa: B023
                asking.ask()
            messages.goal = messages.settle()
            run.wait_while_alive(
                lambda: messages.acknowledged >= messages.goal, lambda: messages.fault or "all messages"
            )
            run.wait_for("messages_processed", messages.goal)
        past = Past(journal)
        count = past.reference.count()
        run.wait_while_alive(lambda: len(lines(receiver)) >= count, lambda: f"{len(lines(receiver))} of {count} lines")
        assert run.stop() == 0, run.said()
        listed = wallaroo("dead-letters", "ls", site.egress.directory, "--json", "--limit", 1_000_000).stdout
    assert past.messages == [messages.message(number)[4:] for number in range(messages.goal)]
    assert by_key(lines(receiver)) == past.reference.given
    assert sorted(json.loads(line)["key"] for line in listed.splitlines()) == sorted(
        key for key, _ in past.reference.letters
    )
    assert asking.told.items() <= past.visits.items()
    assert run.last("run") == {
        "messages_in": messages.goal, "messages_out": count, "dead_letters": len(past.reference.letters),
        "visits": len(past.visits), "visited_keys": sum(keys for keys, _ in past.visits.values()),
    }  # fmt: skip
    assert asking.killed and len(asking.told) >= ASKED // 4, "it shows too little"


class Outage:
    """A visit whose output leaves while the driver does not reach the gateway."""

    def __init__(self, site: LinkedSite, run: Run, receiver: Receiver, folder: Path) -> None:
        self._site, self._run, self._receiver, self._folder = site, run, receiver, folder
        folder.mkdir()

    def visit(self) -> subprocess.Popen[str]:
        """Ask for the visit, and wait until a visitor runs."""
        where = ("--gateway", self._site.gateways[""].address, *token_setting(self._site.token_file))
        command = (WALLAROO, "visit", "-", "wait", "--metadata", self._folder, "--wait", "--json", *where)
        asked = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
        self._run.wait_while_alive((self._folder / "began").exists, lambda: "a visitor")
        return asked

    def last(self) -> float:
        """Let the visit end while nothing comes; returns the longest time without a report of progress."""
        known = len(self._receiver.lines())
        (self._folder / "goes on").touch()
        self._receiver.wait_for_lines(known + 3, self._run)
        longest, told, reports = 0.0, time.monotonic(), len(self._run.reports)
        end = told + AWAY_S
        while (now := time.monotonic()) < end:
            if len(self._run.reports) > reports:
                told, reports = now, len(self._run.reports)
            longest = max(longest, now - told)
            time.sleep(0.02)
        return longest


def test_progress_is_told_while_the_gateway_is_away(tmp_path: Path) -> None:
    """The gateway gets the counts of visits, which it cannot take meanwhile, when it is back."""
    (program := tmp_path / "slow.py").write_text(SLOW)
    site = LinkedSite(tmp_path)
    with contextlib.ExitStack() as stack:
        receiver = stack.enter_context(Receiver())
        stack.enter_context(running(site))
        site.open(stack)
        run = stack.enter_context(site.run(program, receiver, *MODES["realtime"]))
        run.send(framed([b"a", b"b", b"c"]))
        receiver.wait_for_lines(3, run)
        for name, how in (("cut", Link.cut), ("stall", Link.stall)):
            outage = Outage(site, run, receiver, tmp_path / name)
            asked = outage.visit()
            how(site.links["gateway"])
            assert outage.last() < SILENT_S
            assert asked.poll() is None, "it was done before anybody knew what it came to"
            site.links["gateway"].mend()
            told = json.loads(asked.communicate(timeout=300)[0])
            assert (told["keys"], told["failed"]) == (3, 0)
        assert run.stop() == 0, run.said()
        assert (run.last("run")["visits"], run.last("run")["visited_keys"]) == (2, 6)
