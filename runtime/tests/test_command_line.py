"""Command lines that Wallaroo's READMEs and documentation print, as they follow the program's name."""

import json
import os
import re
import subprocess
import sys
from argparse import ArgumentTypeError, Namespace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo_runtime.cli.main import command_parser, main
from wallaroo_runtime.cli.option import split
from wallaroo_runtime.cli.parser import MOST, amount
from wallaroo_runtime.cli.run import FREE, USED, monitor_of

ADDRESSES = "--metrics 127.0.0.1:5001 --control 127.0.0.1:6000 --data 127.0.0.1:6001"
KAFKA = (
    "--kafka_source_topic test-in --kafka_source_brokers 127.0.0.1:9092 --kafka_sink_topic test-out "
    "--kafka_sink_brokers 127.0.0.1:9092 --kafka_sink_max_message_size 100000 --kafka_sink_max_produce_buffer_ms 10"
)
ONE = "--in 127.0.0.1:7010 --out 127.0.0.1:7002"

# What is printed: what the application sees of it.
MACHIDA = {
    f"--application-module word_count {ONE} {ADDRESSES} --name worker-name --external 127.0.0.1:5050 "
    "--cluster-initializer --ponythreads=1 --ponynoblock": ONE,
    f"--application-module alerts --out 127.0.0.1:7002 {ADDRESSES} --cluster-initializer --ponythreads 1": (
        "--out 127.0.0.1:7002"
    ),
    "--application-module market_spread --in 127.0.0.1:7010,127.0.0.1:7011 --out 127.0.0.1:7002 "
    f"{ADDRESSES} --worker-count 2 --external 127.0.0.1:6002 --cluster-initializer --ponythreads=1": (
        "--in 127.0.0.1:7010,127.0.0.1:7011 --out 127.0.0.1:7002"
    ),
    f"--application-module celsius {KAFKA} --metrics 127.0.0.1:5001 --control 127.0.0.1:12500 --data 127.0.0.1:12501 "
    "--cluster-initializer --ponythreads=1": KAFKA,
    "--application-module alerts --out 127.0.0.1:5555 --metrics 127.0.0.1:5001 --my-control 127.0.0.1:6503 "
    "--my-data 127.0.0.1:6504 --control 127.0.0.1:6500 --name Worker2 --ponythreads 1": "--out 127.0.0.1:5555",
    f"--application-module celsius {ONE} --metrics 127.0.0.1:5000 --control 127.0.0.1:8000 --data 127.0.0.1:9000 "
    "--name initializer --external 127.0.0.1:6000 --cluster-initializer --ponythreads=1 --ponynoblock "
    "--run-with-resilience --resilience-dir /tmp/data --time-between-checkpoints 1000000000": ONE,
    f"--application-module sleepy {ONE} {ADDRESSES} --delay_ms 50 --cluster-initializer --ponythreads=1": (
        f"{ONE} --delay_ms 50"
    ),
    f"--application-module ddos_detector {ONE} --control 127.0.0.1:12500 --data 127.0.0.1:12501 --name initializer "
    "--cluster-initializer --worker-count 1 --metrics 127.0.0.1:5001 --ponythreads 1 --ponypinasio --ponynoblock": ONE,
    f"--application-module classifier {ONE} {ADDRESSES} --join 127.0.0.1:12500 --log-rotation -l 1048576 -u 2000000000 "
    "--spike-drop --spike-prob 0.001 --spike-margin 1000 --spike-seed 1 --ponynopin": ONE,
}
GO = {
    f"{ONE} {ADDRESSES} --name worker-name --external 127.0.0.1:5050 --cluster-initializer --ponythreads=1 "
    "--ponynoblock": ONE,
    f"{KAFKA} --metrics 127.0.0.1:5001 --control 127.0.0.1:12500 --data 127.0.0.1:12501 --cluster-initializer "
    "--ponythreads=1": KAFKA,
    f"{ONE} -m 127.0.0.1:5001 -c 127.0.0.1:6000 -d 127.0.0.1:6001 -n worker -e 127.0.0.1:5050 -w 3 -t -r /tmp": ONE,
}


@pytest.mark.parametrize("line", MACHIDA)
def test_machida(line: str) -> None:
    parts = split(line.split(), USED)
    assert parts.app == MACHIDA[line].split()
    assert parts.own[0] == line.split()[1]
    assert not parts.suspicious


@pytest.mark.parametrize("line", GO)
def test_programs_in_go(line: str) -> None:
    parts = split(["./application", *line.split()], USED)
    assert parts.app == GO[line].split()
    assert parts.own[0] == "./application"
    assert not parts.suspicious


LINES: dict[tuple[str, ...], tuple[list[str], list[list[str]]]] = {
    ("topics", "emit"): (
        ["clicks", "a", "b"],
        [["--partition", "9"], ["--header", "a=1"], ["--json"], ["--brokers=h:1"], ["--header", "b=2"]],
    ),
    ("logs",): (["app", "worker", "spark"], [["--follow"], ["--json"]]),
    ("state", "ls"): (["checkpoint", "totals"], [["--json"]]),
    ("dead-letters", "replay"): (["checkpoint", "1-0-0", "2-0-0"], [["--json"], ["--step", "out"]]),
}


@given(st.sampled_from(sorted(LINES)), st.randoms(use_true_random=False))
def test_arguments_stand_anywhere_among_options(command: tuple[str, ...], random: Random) -> None:
    positional, options = LINES[command]
    parser, _ = command_parser(command[:1])
    expected, extras = parser.parse_known_args([*command, *positional, *(token for each in options for token in each)])
    assert not extras
    order = [0] * len(positional) + [1] * len(options)
    random.shuffle(order)
    tokens, values, chosen = [*command], iter(positional), iter(options)
    for kind in order:
        tokens += next(chosen) if kind else [next(values)]
    assert parser.parse_known_args(tokens) == (expected, [])


@pytest.mark.slow
@pytest.mark.parametrize("line", MACHIDA)
def test_a_module_on_the_python_path_is_emitted(line: str, tmp_path: Path) -> None:
    """Wallaroo finds modules in PYTHONPATH, wherever it is started."""
    module = line.split()[1]
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / f"{module}.py").write_text(
        "import wallaroo\n\n\nclass Numbers:\n    def initial_value(self):\n        return 1\n\n"
        "    def apply(self, previous):\n        return previous + 1\n\n\n"
        "@wallaroo.encoder\ndef encode(data):\n    return str(data)\n\n\n"
        "def application_setup(args):\n"
        "    sink = wallaroo.TCPSinkConfig('127.0.0.1', '7002', encode)\n"
        "    numbers = wallaroo.source('numbers', wallaroo.GenSourceConfig(Numbers()))\n"
        "    return wallaroo.build_application('Numbers', numbers.to_sink(sink))\n"
    )
    done = subprocess.run(
        [Path(sys.executable).with_name("wallaroo"), "emit", *line.split()], cwd=tmp_path, capture_output=True,
        text=True, timeout=300, check=False, env=os.environ | {"PYTHONPATH": "programs"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["workers"][0]["args"] == MACHIDA[line].split()
    assert done.stderr.startswith("note: no effect here: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("given", "place"), [(None, FREE), ("off", ""), (":1", ":1")])
def test_where_the_monitor_listens(given: str | None, place: str) -> None:
    assert monitor_of(Namespace(monitor=given)) == place


@pytest.mark.parametrize(
    "command",
    [
        *(["logs"], ["status"], ["stop"], ["backup"], ["restore"], ["run"], ["submit"], ["pack"], ["emit"], ["build"]),
        *(["validate"], ["explain"], ["graph"], ["diff"], ["visit"], ["test"], ["topics", "create"]),
        *(["dead-letters", "ls"], ["state", "dump"], ["state", "rescale"]),
    ],
)
def test_no_name_is_empty(capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    assert main([*command, "", "more"]) == 2
    assert re.match(
        rf"R608 wallaroo {' '.join(command)}: [A-Z|]+ is empty\n  fix: give [A-Z|]+", capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("command", "finding"),
    [
        (
            ["logs", ""],
            "wallaroo logs: CHECKPOINT|APP is empty\n  fix: give CHECKPOINT|APP: checkpoint directory, program, "
            "or name in `wallaroo ps`",
        ),
        (["state", "ls", ".", ""], "wallaroo state ls: NAME is empty\n  fix: give NAME: only this state"),
        (["topics", "tail", ""], "wallaroo topics tail: TOPIC is empty\n  fix: give TOPIC"),
    ],
)
def test_an_empty_name_is_told_with_its_argument(
    command: list[str], finding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 2
    assert capsys.readouterr().err == f"R608 {finding}\n"


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "soon"])
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("stop app --timeout", "'{}' is no number of seconds; write e.g. 60"),
        ("run app --stop-when-idle", "'{}' is no number of seconds; write e.g. 10"),
        ("submit app --stop-when-idle", "'{}' is no number of seconds; write e.g. 10"),
        ("receive --listen 127.0.0.1:0 --stop-when-idle", "'{}' is no number of seconds; write e.g. 10"),
        ("receive --listen 127.0.0.1:0 --expect", "'{}' is not a number of 0 or more"),
        ("send --host 127.0.0.1:1 --u64 --messages 1 --start-from", "'{}' is not a number of 0 or more"),
    ],
)
def test_a_number_without_meaning_is_refused(
    command: str, said: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    *words, option = command.split()
    assert main([*words, f"{option}={value}"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"R608 argument {option}")
    assert said.format(value) in error


@given(st.floats())
def test_an_amount_is_not_negative_and_can_be_waited_for(value: float) -> None:
    read = amount("number of seconds", "10")
    if 0 <= value <= MOST:
        assert read(repr(value)) == value
    else:
        with pytest.raises(ArgumentTypeError, match="is no number of seconds; write e.g. 10"):
            read(repr(value))


def test_the_gateway_of_a_visit_has_an_address(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["visit", "app", "reset", "--gateway", "here"]) == 2
    assert capsys.readouterr().err.startswith('T211 --gateway address "here" is not usable; it has no port\n')


def test_a_secret_of_topics_need_not_be_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Asked(Exception):
        pass

    def cluster(brokers: list[str], settings: dict[str, str]) -> None:
        raise Asked(settings)

    monkeypatch.setattr("wallaroo_runtime.cli.topics.Cluster", cluster)
    monkeypatch.setenv("KAFKA_PASSWORD", "secret")
    monkeypatch.setattr("wallaroo_runtime.cli.main.unforeseen", lambda error: (_ for _ in ()).throw(error))
    with pytest.raises(Asked) as caught:
        main(["topics", "ls", "--client", "sasl.password=${env:KAFKA_PASSWORD}"])
    assert caught.value.args == ({"sasl.password": "secret"},)
