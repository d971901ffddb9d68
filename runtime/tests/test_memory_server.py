"""`wallaroo run --engine memory`: real sockets, in this process."""

import re
import socket
import threading
from pathlib import Path
from random import Random

import pytest

from support.memory_server import PROGRAM, SECONDS, Receiver, app, connected, free_address, ran, receiver
from wallaroo_runtime.cli.main import main

__all__ = ["app", "receiver"]  # the fixtures

CASES = Path(__file__).parents[2] / "tests" / "cases"


def framed(*texts: str) -> bytes:
    return b"".join(b"%03d%s" % (len(text), text.encode()) for text in texts)


def test_messages_of_two_connections_come_out(
    app: Path, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    def client(address: str) -> None:
        with connected(address) as first, connected(address) as second:
            whole = framed("14", "x", "100")
            first.sendall(whole[:-2])
            second.sendall(framed("21"))
            receiver.wait_for(b"22,")
            first.sendall(whole[-2:])

    assert ran(app, receiver, client=client) == 0
    said = capsys.readouterr().err.splitlines()
    assert sorted(receiver.close().split(b",")) == [b"", b"101", b"15", b"22"]
    assert said[0] == (
        "note: --engine memory is for a first look: one process, nothing is kept, and nothing is recovered"
    )
    assert said[1].startswith('source "numbers" listens at 127.0.0.1:')
    assert said[2] == "Application has successfully initialized."
    assert re.fullmatch(r"stopped: in 4  out 3  \d+/s  lag 0  dead letters 1", said[-1])


def test_what_a_sender_does_wrong_is_told(app: Path, receiver: Receiver, capsys: pytest.CaptureFixture[str]) -> None:
    def client(address: str) -> None:
        with connected(address) as cut:
            cut.sendall(framed("1") + b"00")

    assert ran(app, receiver, client=client) == 0
    said = capsys.readouterr().err
    assert 'R607 source "numbers", connection 127.0.0.1:' in said
    assert "only 2 bytes of a message of unknown size arrived" in said
    assert receiver.close() == b"2,"


@pytest.mark.parametrize("answer", ["-1", "None", "2.0", "'5'", "1 / 0"])
def test_a_decoder_that_names_no_length_is_told(
    answer: str, app: Path, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    def client(address: str) -> None:
        with connected(address) as sender:
            sender.sendall(framed("1"))
            with pytest.raises(ConnectionResetError):
                sender.recv(1)

    app.write_text(PROGRAM.replace("int(header)", answer))
    assert ran(app, receiver, client=client) == 0
    said = capsys.readouterr()
    assert 'source "numbers", connection 127.0.0.1:' in said.err and "Traceback" not in said.err
    assert "payload_length" in said.err and "in 0  out 0" in said.err


def test_results_that_nobody_takes_are_told(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, sink = free_address(), free_address()

    def client() -> None:
        with connected(source) as sender:
            sender.sendall(framed("1", "2"))

    thread = threading.Thread(target=client)
    thread.start()
    options = ("--engine", "memory", "--in", source, "--out", sink, "--stop-when-idle", "0.5")
    assert main(["run", str(app), *options]) == 0
    thread.join(SECONDS)
    said = capsys.readouterr().err
    assert 'results that were not sent, and are lost: 2 of "Numbers"' in said
    assert re.search(r"stopped: in 2  out 0 ", said)


@pytest.mark.parametrize("seed", range(2))
def test_only_what_was_taken_whole_is_acknowledged(seed: int, app: Path, receiver: Receiver) -> None:
    random, wrong = Random(seed), list[object]()

    def client(address: str) -> None:
        for number in range(20):
            data = framed(*(str(random.randrange(9)) for _ in range(random.randrange(4))))
            cut = random.choice((0, 0, 1)) if data else 0
            with connected(address) as sender:
                sender.sendall(data[: len(data) - cut])
                sender.shutdown(socket.SHUT_WR)
                try:
                    is_acknowledged = sender.recv(1) == b""
                except ConnectionResetError:
                    is_acknowledged = False
            if is_acknowledged == bool(cut):
                wrong.append((number, data, cut))

    assert ran(app, receiver, client=client) == 0
    assert wrong == []


@pytest.mark.parametrize("seed", range(4))
def test_a_first_look_tells_of_dead_letters(
    seed: int, app: Path, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    random = Random(seed)
    bad, good = random.randint(1, 120), random.choice((0, 0, 3))

    def client(address: str) -> None:
        messages = ["x"] * bad + ["1"] * good
        random.shuffle(messages)
        with connected(address) as connection:
            connection.sendall(framed(*messages))

    assert ran(app, receiver, client=client) == (0 if good else 1)
    said = capsys.readouterr().err
    assert said.count('at "number"; C501 ValueError: invalid literal for int()') == len(str(bad))
    assert "'x' ('x')" in said, "the message is shown"
    assert said.count("return int(text) + 1") == 1
    assert (f"R741 all messages of this run, {bad}, are dead letters" in said) == (good == 0)
    assert "wallaroo dead-letters" not in said


def test_a_dead_letter_that_stops_ends_the_run(
    app: Path, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    def client(address: str) -> None:
        with connected(address) as connection:
            connection.sendall(framed("x"))

    assert ran(app, receiver, "--on-error", "fail", client=client) == 1
    assert "R611 " in (said := capsys.readouterr().err) and "ValueError" in said


FORGETFUL = """import wallaroo

class Seen:
    def __init__(self):
        self.words = []

@wallaroo.partition
def key(word):
    return "one"

@wallaroo.state_computation("see")
def see(word, state):
    if word != "look":
        state.words.append(word)
    return " ".join(state.words), word not in ("look", "forget")

def application_setup(args):
    decoder, encoder = wallaroo.line_decoder(bytes.decode), wallaroo.line_encoder(str.encode)
    builder = wallaroo.ApplicationBuilder("Forgetful")
    builder.new_pipeline("lines", wallaroo.TCPSourceConfig(*wallaroo.tcp_parse_input_addrs(args)[0], decoder))
    builder.to_state_partition(see, Seen, "seen", key)
    builder.to_sink(wallaroo.TCPSinkConfig(*wallaroo.tcp_parse_output_addrs(args)[0], encoder))
    return builder.build()
"""


def test_changes_of_state_that_are_not_persisted_are_found(
    tmp_path: Path, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    def client(address: str) -> None:
        with connected(address) as connection:
            connection.sendall(b"a\nforget\nlook\nb\n")
            receiver.wait_for(b"a\na\na b\n")

    (app := tmp_path / "forgetful.py").write_text(FORGETFUL)
    assert ran(app, receiver, "--debug", client=client) == 0
    assert receiver.data == b"a\na\na b\n"
    assert "C510 changed the state of key 'one' and returned persist False" in capsys.readouterr().err


def test_sources_of_spark_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    files = CASES.parents[1] / "examples" / "tutorial" / "files" / "app.py"
    assert main(["run", str(files), "--engine", "memory"]) == 3
    assert capsys.readouterr().err.endswith(
        'P303 "0/sources/0": kind "spark" with --engine memory is not supported\n'
        "  fix: run it on Spark, or give it messages in a test with wallaroo.testing\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", [["run"], ["run", "--engine", "memory"], ["submit"]])
def test_dataframes_are_refused_outside_of_a_job(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = CASES.parents[1] / "examples" / "tutorial" / "pyspark_job" / "app.py"
    assert main(["emit", str(program)]) == 0
    (topology := tmp_path / "alerts.json").write_text(capsys.readouterr().out)
    assert main([*command, str(topology)]) == 3
    fix = (
        "write a job that calls `load(APP).apply(SOURCE=DATAFRAME)` of wallaroo_runtime.dataframe; run the job instead"
    )
    parts = {"0/sources/0": "orders", "0/sinks/0": "alerts"}
    assert capsys.readouterr().err.endswith(
        "".join(
            f'P303 "{path}": DataFrame "{name}" outside of a PySpark job is not supported\n  fix: {fix}\n'
            for path, name in parts.items()
        )
    )


def test_a_generator_runs_to_its_end(receiver: Receiver) -> None:
    assert ran(CASES / "alerts_stateless" / "app.py", receiver) == 0
    lines = (CASES / "alerts_stateless" / "expected.txt").read_text().splitlines()
    assert sorted(receiver.close().decode().splitlines()) == sorted(lines)
