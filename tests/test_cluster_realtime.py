"""Real-time mode on the cluster of hosts: code runs next to the driver, state is on executors; both are killed.

Messages without visits at remote services that die are those of `test_realtime_remote.py`.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from support.case import CASES
from support.host import Host, descendants
from support.remote import Service
from support.run import TESTS, WALLAROO, Receiver, Run
from support.standalone import Deployment, cmdline, kill
from support.state import STATE, by_letter, totals
from support.visited.app import VISITS
from support.visits import Messages, Past, WholeLines, by_key
from test_realtime_run import Sender, lines, wait_for_all, wrong

pytestmark = [pytest.mark.jvm, pytest.mark.cluster]
LONG_S = 600.0
DRIVER = b"wallaroo_runtime.cli.driver"
ASKS = """
import sys
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen
from wallaroo_runtime.monitor.endpoint import driver_of, monitor_of
checkpoint, name = Path(sys.argv[1]), sys.argv[2]
parts = urlsplit(monitor_of(checkpoint, driver_of(checkpoint)))
print(urlopen(f"http://{parts.netloc}/api/v1/state/{name}?{parts.query}&limit=1000").read().decode())
"""
BORDERS = ("--conf", "spark.wallaroo.realtime.batchSeconds=5")


def test_counts_stay_exact_over_deaths_of_executors_and_driver(
    deployment: Deployment, archives: Callable[..., Path]
) -> None:
    """Executors die at drawn moments, so that their tasks do between any two calls of the engine."""
    cluster, drawn = deployment.cluster, random.Random(17)
    cluster.alive(2)
    host, archive = deployment.driver(archives("word_count-go", CASES / "word_count"))
    checkpoint = cluster.shared / f"{deployment.name}-realtime"
    with (
        Receiver(deployment.scene.listen()) as receiver,
        Run(
            archive, receiver, checkpoint, *deployment.settings(host), *BORDERS, "--mode", "realtime", "--restart",
            "on-failure", source=f"{host.address}:7010", verb="submit", prefix=host.entry,
            dial=deployment.scene.connect, **host.environment(),
        ) as run,
    ):  # fmt: skip
        sender = Sender(run.ready(), rate=200, seed=7)

        def receive_more(count: int) -> None:
            known = len(receiver.lines())
            run.wait_while_alive(lambda: len(receiver.lines()) >= known + count, lambda: f"{count} results", LONG_S)

        def commit_more() -> None:
            """Wait until a task is there, which may have been the next attempt at its batch, and has ended it."""
            known = run.last("batches")
            run.wait_while_alive(lambda: run.last("batches") > known, lambda: "a batch", LONG_S)

        for _ in range(2):
            commit_more()
            receive_more(drawn.randint(100, 900))
            for pid in cluster.executors():
                kill(pid)
        commit_more()
        receive_more(drawn.randint(100, 900))
        (driver,) = [pid for pid in descendants(run.process.pid) if DRIVER in cmdline(pid)]
        os.kill(driver, signal.SIGKILL)
        receive_more(1000)
        sent = sender.end()
        wait_for_all(receiver, sent, run.said)
        run.wait_for("messages_processed", sum(sent.values()))
        run.wait_while_alive(lambda: shown(host, checkpoint) == by_letter(sent), lambda: "states of all messages")
        told = host.run(WALLAROO, "status", checkpoint)
        assert (told.returncode, "Split and Count" in told.stdout) == (0, True), told.stdout + told.stderr
        assert run.stop() == 0, run.said()
    assert wrong(receiver.lines(), sent) == []


def test_visits_come_once_to_each_key_when_remote_services_die_too(
    deployment: Deployment, archives: Callable[..., Path]
) -> None:
    """The checkpoint is at a URL; executor, gateway and egress are killed in a drawn order, each next to a visit."""
    cluster, drawn = deployment.cluster, random.Random(29)
    cluster.alive(2)
    archive = archives("visited-go", TESTS / "support" / "visited")
    journal = deployment.gateway.directory / "journal"
    with (
        WholeLines(deployment.scene.listen()) as receiver,
        deployment.run(archive, receiver, *BORDERS, "--mode", "realtime") as run,
    ):
        (address,) = run.ready().addresses()
        with contextlib.closing(Messages(address, journal, 29, 300, dial=deployment.scene.connect)) as messages:
            messages.goal = 1 << 40

            def receive_more(count: int) -> None:
                known = len(receiver.lines())
                run.wait_while_alive(
                    lambda: len(receiver.lines()) >= known + count, lambda: messages.fault or f"{count} results", LONG_S
                )

            def end(victim: str) -> None:
                if victim == "executor":
                    for pid in cluster.executors():
                        kill(pid)
                    return
                service = getattr(deployment, victim)
                service.end(signal.SIGKILL)
                service.start()

            asked = []
            for victim in drawn.sample(["executor", "gateway", "egress"], 3):
                receive_more(drawn.randint(50, 300))
                asked.append(ask(deployment.gateway, drawn.choice(VISITS), drawn.randint(1, 5)))
                receive_more(drawn.randint(50, 500))
                end(victim)
            receive_more(500)
            messages.goal = messages.settle()
            run.wait_while_alive(
                lambda: messages.acknowledged >= messages.goal, lambda: messages.fault or "all messages", LONG_S
            )
            run.wait_for("messages_processed", messages.goal)
            told = [found for process in asked if (found := told_by(process)) is not None]
            past = Past(journal)
            count = past.reference.count()
            run.wait_while_alive(
                lambda: sum(map(len, by_key(lines(receiver), may_repeat=True).values())) >= count, lambda: "all results"
            )
            assert run.stop() == 0, run.said()
            assert past.messages == [messages.message(number)[4:] for number in range(messages.goal)]
    assert by_key(lines(receiver), may_repeat=True) == past.reference.given
    assert [each for each in told if past.visits[each["id"]] != (each["keys"], each["failed"])] == []
    assert run.last("run")["visits"] == len(past.visits)
    assert len(told) >= 2, "the gateway died with one request at most"


def ask(gateway: Service, name: str, metadata: int) -> subprocess.Popen[str]:
    """Ask for a visit on the gateway's host, and let that wait until the visit is done."""
    where = ("--gateway", gateway.address, "--token-file", gateway.token_file)
    command = (*gateway.entry, WALLAROO, "visit", "-", name, "--metadata", metadata, "--wait", "--json", *where)
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)


def told_by(asked: subprocess.Popen[str]) -> dict[str, int] | None:
    """Return what the command has said of a visit; None: the gateway died with the request."""
    said = asked.communicate(timeout=LONG_S)[0]
    return json.loads(said) if asked.returncode == 0 else None


def shown(host: Host, checkpoint: Path) -> dict[str, dict[str, int]]:
    """Return what the monitor of a run shows: an executor reads the states, a worker next to the driver shows them."""
    done = host.run(sys.executable, "-c", ASKS, checkpoint, quote(STATE))
    assert done.returncode == 0, done.stderr
    return {row["key"]: totals(row["value"]) for row in json.loads(done.stdout)["keys"]}
