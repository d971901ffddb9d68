"""Real-time mode with a gateway and an egress of other machines, and a network between that goes away."""

import contextlib
import json
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.case import Case
from support.link import Link
from support.linked_site import LinkedSite
from support.realtime import kill_driver, lines, wrong
from support.remote import Site, counted, running
from support.run import MODES, Receiver, Run, framed, wallaroo
from support.service import certified
from support.throttle import Throttle
from wallaroo_runtime.service.credential import AUTHORITY

pytestmark = [pytest.mark.jvm, pytest.mark.slow]
APP = Case("word_count").app("python")


class Words(Throttle):
    """Sends plain words."""

    def _make(self) -> bytes:
        text = " ".join(words := self._random.choices(self._words, k=self._random.randint(1, 3))).encode()
        self._sent.update(words)
        return len(text).to_bytes(4, "big") + text


@pytest.fixture
def site(tmp_path: Path) -> Iterator[LinkedSite]:
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(running(LinkedSite(tmp_path)))
        made.open(stack)
        yield made


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


def encrypted(site: Site) -> tuple[object, ...]:
    """Let the services of a site have TLS; returns the options of their driver."""
    certificate, key = certified(site.folder)
    for service in site.services():
        service.options = ("--tls-certificate", certificate, "--tls-key", key)
    return ("--conf", f"{AUTHORITY}={certificate}")


def test_a_driver_that_sees_no_file_of_the_services(tmp_path: Path, receiver: Receiver) -> None:
    """With TLS, dead letters, and a checkpoint at a URL."""
    site, texts = Site(tmp_path, ""), [f"message {i % 7} of{i % 90} many" for i in range(2000)]
    options = (*encrypted(site), *MODES["realtime"], "--stop-when-idle", 5)
    with running(site):
        with site.run(APP, receiver, *options) as run:
            run.send(framed([*(text.encode() for text in texts), b"\xff", b"\xfe"]))
            assert run.end() == 0, run.said()
            assert run.last("run") == {
                "messages_in": 2002, "messages_out": 8000, "dead_letters": 2, "visits": 0, "visited_keys": 0,
            }  # fmt: skip
            assert '"code": "R740"' in run.said() and "a message is a dead letter" in run.said()
        assert sorted(receiver.lines()) == sorted(counted(texts))
        done = wallaroo("dead-letters", "ls", site.egress.directory, "--json")
        assert len(done.stdout.splitlines()) == 2, done.stderr
        token = site.token_file.read_bytes()
    held = [path for path in tmp_path.rglob("*") if path.is_file() and token in path.read_bytes()]
    assert held == [site.token_file], "the token is where others may look"


class Faults:
    """Lets parts of a site die, and its network go away, at drawn moments."""

    def __init__(self, site: LinkedSite, run: Run, receiver: Receiver, source: random.Random) -> None:
        self._site, self._run, self._receiver, self._source = site, run, receiver, source

    def let(self, fault: str) -> None:
        """Wait until results come, and a bit longer; then let it happen, and be over."""
        known = len(lines(self._receiver))
        self._run.wait_while_alive(
            lambda: len(lines(self._receiver)) > known + 200, lambda: f"200 results before {fault}"
        )
        time.sleep(self._source.uniform(0, 1.5))
        getattr(self, fault)()

    def _kill(self, number: int) -> None:
        service = self._site.services()[number]
        service.end(signal.SIGKILL)
        time.sleep(self._source.uniform(0, 3))
        service.start()

    def gateway(self) -> None:
        """Kill the gateway, and start it again."""
        self._kill(0)

    def egress(self) -> None:
        """Kill the egress, and start it again."""
        self._kill(1)

    def cut(self) -> None:
        """Reset all connections of drawn links for some seconds."""
        self._away(Link.cut, self._source.uniform(0.2, 6))

    def stall(self) -> None:
        """Let nothing pass for some seconds."""
        self._away(Link.stall, self._source.uniform(0.2, 6))

    def outage(self) -> None:
        """Reset all connections, for longer."""
        self._away(Link.cut, 25, *self._site.links)

    def _away(self, how: object, seconds: float, *names: str) -> None:
        drawn = names or self._source.sample(sorted(self._site.links), self._source.randint(1, 2))
        for name in drawn:
            how(self._site.links[name])  # type: ignore[operator]
        time.sleep(seconds)
        for name in drawn:
            self._site.links[name].mend()

    def driver(self) -> None:
        """Kill driver and Java."""
        kill_driver(self._run)
        assert self._run.end(120) != 0


def live(site: LinkedSite, receiver: Receiver, words: Words, faults: list[str], source: random.Random) -> None:
    """Run until the last fault, which kills the driver."""
    with site.run(APP, receiver, *MODES["realtime"]) as run:
        words.goal = 1 << 40
        for fault in faults:
            Faults(site, run, receiver, source).let(fault)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_each_result_comes_once_whatever_dies(seed: int, site: LinkedSite, receiver: Receiver) -> None:
    source, kinds = random.Random(seed), ["gateway", "egress", "cut", "stall"]
    host, _, port = site.source.rpartition(":")
    journal = site.gateways[""].directory / "journal"
    with contextlib.closing(Words((host, int(port)), journal, seed, rate=200, words=40)) as words:
        live(site, receiver, words, [*source.sample(kinds, 4), "driver"], source)
        live(site, receiver, words, [*source.choices(kinds, k=3), "outage", "driver"], source)
        words.goal = words.settle()
        with site.run(APP, receiver, *MODES["realtime"]) as run:
            run.wait_while_alive(lambda: words.acknowledged >= words.goal, lambda: words.fault or "all messages")
            run.wait_for("messages_processed", words.goal)
            assert run.stop() == 0, run.said()
            assert run.last("dead_letters") == 0
        expected = words.expected()
    assert wrong(lines(receiver), expected, may_repeat=True) == []
    shown = wallaroo("state", "get", f"file://{site.folder}/checkpoint", "word totals", "w", "--json")
    assert json.loads(shown.stdout)["value"]["totals"] == expected, shown.stdout + shown.stderr
