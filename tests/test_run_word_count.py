"""The word count end to end, in each language: all kinds of traffic on one run, a restart, checkpoints of others.

Expected counts are made here with `collections.Counter` on the text that was sent, without the project's code.
Go's run is a long one: test_realtime_run.py counts these words in Go, test_run_shared_state.py has its micro-batches.
"""

import json
import random
import string
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import urlopen

import pytest

from support.case import CASES
from support.host import descendants
from support.run import WAIT_S, Run, finish, framed, wait_until, wallaroo
from support.state import STATE, by_letter, totals
from support.strangers import check_sockets
from support.word_bench import CASE, Bench
from wallaroo_runtime.checkpoint.registry import running as find_running
from wallaroo_runtime.monitor.endpoint import driver_of, monitor_of, status_of

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module", params=["python", pytest.param("go", marks=pytest.mark.long)])
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Give a running word count that the tests of this file use one after the other."""
    made = Bench(request.param, tmp_path_factory.mktemp("word_count") / "checkpoint")
    try:
        made.start()
        yield made
    finally:
        made.close()


def running(bench: Bench) -> Run:
    assert bench.run is not None
    return bench.run


def test_input_of_the_case(bench: Bench) -> None:
    (messages,) = CASE.inputs()
    texts = [message.decode() for message in messages]
    bench.expect(texts)
    running(bench).send(framed(messages))
    bench.check()
    lines = bench.receiver.lines()
    assert CASE.arranged(lines) == CASE.arranged(CASE.expected(bench.language))
    assert bench.empty == CASE.setting("dead_letters")


def test_other_users_get_nothing_of_the_run(bench: Bench) -> None:
    check_sockets(str(bench.checkpoint))


def test_no_process_of_spark_is_one_of_python(bench: Bench) -> None:
    """Its tasks are Java's: what is Python is the driver, gateway, egress, the supervisor and the user's own."""
    below = descendants(running(bench).process.pid)
    commands = [Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ") for pid in below]
    modules = ("wallaroo_runtime.gateway", "wallaroo_runtime.egress", "wallaroo_runtime.worker.supervisor")
    of_python = [text for text in commands if "python" in text.partition(" ")[0]]
    found = [text for text in of_python if not any(module in text for module in modules)]
    assert [text for text in found if "pyspark" in text] == []


def test_the_monitor_has_the_numbers_of_the_run(bench: Bench) -> None:
    def shown() -> dict[str, Any]:
        found = status_of(bench.checkpoint)
        return {
            "parts": {
                each["path"]: (each["messages_in"], each["messages_out"], each["dead_letters"])
                for each in found["parts"]
            },
            "in": found["run"]["messages_in"],
            "delivered": found["latency_ms"]["end_to_end"]["run"]["count"],
            "workers": [worker["state"] for worker in found["workers"]],
            "sinks": [sink["messages"] for sink in found["sinks"]],
        }

    words, empty = bench.expected.total(), bench.empty
    parts = {
        "0/sources/0": (bench.messages, bench.messages, 0),
        "0/steps/0": (bench.messages, words + empty, 0),
        "0/steps/1": (words, words, empty),
        "0/sinks/0": (words, words, 0),
    }
    count = bench.messages
    wanted = {"parts": parts, "in": count, "delivered": count, "workers": ["ready"], "sinks": [words]}
    wait_until(lambda: shown() == wanted, lambda: f"{shown()} to be {wanted}")
    assert str(bench.checkpoint) in [each["checkpoint"] for each in find_running()]


def test_the_monitor_shows_the_states_of_the_run(bench: Bench) -> None:
    def asked(path: str) -> dict[str, Any]:
        driver = driver_of(bench.checkpoint)
        assert driver is not None
        parts = urlsplit(monitor_of(bench.checkpoint))
        url = f"http://{parts.netloc}/api/v1/state/{quote(STATE)}{path}?{parts.query}&limit=50"
        with urlopen(url, timeout=WAIT_S) as reply:
            return dict(json.loads(reply.read()))

    expected = by_letter(bench.expected)

    def shown() -> dict[str, dict[str, int]]:
        return {row["key"]: totals(row["value"]) for row in asked("")["keys"]}

    # A state is there when it is committed, which is after its results are out.
    wait_until(lambda: shown() == expected, lambda: f"{shown()} to be {expected}")
    letter = max(expected)
    assert totals(asked(f"/{letter}")["value"]) == expected[letter]


def test_pieces_of_one_byte(bench: Bench) -> None:
    texts = ["My solitude is cheered by that elegant hope.", "one byte at a time"]
    bench.expect(texts)
    running(bench).send(framed(text.encode() for text in texts), piece=1)
    bench.check()


def test_ten_thousand_messages_in_one_write(bench: Bench) -> None:
    texts = [f"message number{i % 100} of many" for i in range(10_000)]
    bench.expect(texts)
    running(bench).send(framed(text.encode() for text in texts))
    bench.check()


def test_two_connections_at_once(bench: Bench) -> None:
    run = running(bench)
    texts = [[f"first connection {i % 10}" for i in range(3000)], [f"second connection {i % 10}" for i in range(3000)]]
    bench.expect(texts[0] + texts[1])
    with run.connect() as one, run.connect() as two:
        for at in range(0, 3000, 100):
            for connection, mine in zip((one, two), texts, strict=True):
                connection.sendall(framed(text.encode() for text in mine[at : at + 100]))
        finish(one)
        finish(two)
    bench.check()


def test_empty_payload_is_one_dead_letter(bench: Bench) -> None:
    before = bench.empty
    bench.expect(["", "after the empty one"])
    assert bench.empty == before + 1
    running(bench).send(framed([b"", b"after the empty one"]))
    bench.check()


def test_payload_of_five_mebibytes(bench: Bench) -> None:
    text = ("large" * 1000 + " ") * 1050
    bench.expect([text])
    running(bench).send(framed([text.encode()]))
    bench.check()


def test_connection_that_is_cut_in_a_message_loses_that_message_alone(bench: Bench) -> None:
    run = running(bench)
    bench.expect(["whole before the cut"])
    with run.connect() as connection:
        connection.sendall(framed([b"whole before the cut", b"cut away"])[:-3])
    run.wait_while_alive(lambda: "R607" in "".join(run.errors), lambda: "R607")
    finding = "".join(run.errors)
    assert "only 9 bytes of a message of 12 bytes arrived; the sender closed the connection; the message" in finding
    bench.check()


def test_header_that_announces_too_much_closes_the_connection(bench: Bench) -> None:
    run = running(bench)
    bench.expect(["before the giant"])
    with run.connect() as connection:
        connection.sendall(framed([b"before the giant"]) + b"\x7f\xff\xff\xff" + b"x" * 1000)
        connection.settimeout(WAIT_S)
        closed = threading.Event()
        try:
            assert connection.recv(1) == b""
        except ConnectionResetError:
            closed.set()
    run.wait_while_alive(lambda: "R606" in "".join(run.errors), lambda: "R606")
    assert "max_message_bytes, 16777216; a header announces 2147483647 bytes" in "".join(run.errors)
    bench.check()


def test_fifty_thousand_messages_of_eight_words(bench: Bench) -> None:
    rng = random.Random(7)
    vocabulary = ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 9))) for _ in range(5000)]
    texts = [" ".join(rng.choices(vocabulary, k=8)) for _ in range(50_000)]
    bench.expect(texts)
    running(bench).send(framed(text.encode() for text in texts))
    bench.check()


@pytest.mark.long
def test_restart_continues_from_the_checkpoint_with_the_topology_file(bench: Bench, tmp_path: Path) -> None:
    assert running(bench).stop() == 0, running(bench).said()
    done = wallaroo("emit", CASE.app(bench.language), "--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002")
    assert done.returncode == 0, done.stderr
    file = tmp_path / "topology.json"
    file.write_text(done.stdout, encoding="utf-8")
    run = bench.start(app=file)
    said = "".join(run.errors + run.output)
    assert f"continuing from {bench.checkpoint}" in said
    assert "--fresh starts over" in said
    bench.expect(["my solitude goes on", "message after the restart"])
    run.send(framed([b"my solitude goes on", b"message after the restart"]))
    bench.check()


def test_second_run_on_the_checkpoint_is_refused(bench: Bench) -> None:
    done = wallaroo("run", CASE.app(bench.language), *addresses(), "--checkpoint", bench.checkpoint)
    assert done.returncode == 1, done.stderr
    assert "is in use by another run (process" in done.stderr
    assert "give each its own --checkpoint" in done.stderr


def test_checkpoint_of_another_language_is_refused(bench: Bench) -> None:
    assert running(bench).stop() == 0, running(bench).said()
    done = wallaroo("run", CASE.app(bench.other), *addresses(), "--checkpoint", bench.checkpoint)
    assert done.returncode != 0
    assert f"R605 the state of checkpoint {bench.checkpoint} was written with a {bench.language} worker" in done.stderr
    assert f"the program now has a {bench.other} one" in done.stderr
    assert "fix: change it back, or run the program that wrote it" in done.stderr


def test_checkpoint_of_another_state_class_is_refused(bench: Bench, tmp_path: Path) -> None:
    app = changed_app(bench.language, tmp_path)
    done = wallaroo("run", app, *addresses(), "--checkpoint", bench.checkpoint)
    assert done.returncode != 0
    assert 'R605 state "word totals" of checkpoint' in done.stderr, done.stderr
    assert "OtherTotals" in done.stderr
    assert "fix: change it back, or run the program that wrote it; if only fields differ" in done.stderr


def addresses() -> tuple[str, ...]:
    return ("--in", "127.0.0.1:0", "--out", "127.0.0.1:7002")


def changed_app(language: str, folder: Path) -> Path:
    """Write the program with its state class renamed."""
    name = "app.py" if language == "python" else "app.go"
    text = (CASES / "word_count" / name).read_text(encoding="utf-8").replace("WordTotals", "OtherTotals")
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name if language == "python" else folder


def test_nothing_is_left_behind(bench: Bench) -> None:
    checkpoint = str(bench.checkpoint)
    run = running(bench)
    wait_until(lambda: not run.processes(checkpoint), lambda: f"the end of {run.processes(checkpoint)}")
