"""Cases of records on Spark, without Spark: what is refused before anything starts, and what a run says."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.run import CASES
from wallaroo import KafkaRecord
from wallaroo_runtime.cli.case import Case
from wallaroo_runtime.cli.case_broker import CaseBroker, case_broker
from wallaroo_runtime.cli.case_driver import CaseDriver
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.cli.record_line import record_line
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.topology.canonical import interface_hash
from wallaroo_runtime.topology.model import KafkaSink, KafkaSource
from wallaroo_runtime.topology.override import with_brokers

HEAD = """
import wallaroo
from wallaroo import goka

def count(ctx, message):
    ctx.set_value((ctx.value() or 0) + 1)
"""
GROUP = """
def application_setup(args):
    edges = goka.input("clicks", goka.String(), count), goka.persist(goka.Int64()), goka.visitor("forget", count)
    return goka.application(["127.0.0.1:1"], goka.define_group("counts", *edges))
"""
SETTINGS = '[[input]]\nfile = "input.txt"\nkind = "records"\n'
Refused = Callable[[str, str, str], str]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Give a function that runs a case on Spark, up to the start of its broker, and returns what was said."""

    def start(broker: CaseBroker) -> None:
        raise RunError.of("R725", USAGE, reason="it would be started", log="")

    def run(program: str, settings: str, text: str) -> str:
        (tmp_path / "app.py").write_text(program)
        (tmp_path / "case.toml").write_text(settings + SETTINGS)
        (tmp_path / "input.txt").write_text(text)
        (tmp_path / "expected.txt").write_text("")
        assert main(["test", str(tmp_path), "--engine", "spark"]) == 1
        return capsys.readouterr().out

    monkeypatch.setattr(CaseBroker, "start", start)
    return run


STARTED = "R725 the broker failed; it would be started"
WINDOW = (
    HEAD
    + """
class Total(wallaroo.Aggregation):
    def initial_accumulator(self): return 0
    def update(self, message, accumulator): return accumulator + 1
    def combine(self, one, other): return one + other
    def output(self, key, accumulator): return str(accumulator)

@wallaroo.encoder
def encode(text):
    return text.encode(), None, None

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(data):
    return data

def application_setup(args):
    source = wallaroo.KafkaSourceConfig("clicks", [("127.0.0.1", 1)], "Warn", decode)
    numbers = wallaroo.source("clicks", source)
    totals = numbers.to(wallaroo.range_windows(wallaroo.seconds(1)).over(Total))
    sink = wallaroo.KafkaSinkConfig("totals", [("127.0.0.1", 1)], "Warn", 1, 1, encode)
    return wallaroo.build_application("Totals", totals.to_sink(sink))
"""
)
CLICK = "clicks Ann a\n"
LOOKUP = GROUP.replace('"forget", count)', '"forget", count), goka.lookup("clicked", goka.String())')
SECURE = GROUP.replace("*edges)", '*edges), options={"kafka.security.protocol": "SSL"}')


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "settings", "text", "said"),
    [
        (HEAD + GROUP, "", f"{CLICK}visit forget 1\n", STARTED),
        (HEAD + GROUP, "", "other Ann a\n", STARTED),  # nobody reads it, in memory neither
        (HEAD + LOOKUP, "", "clicked Ann a\n", STARTED),  # nearly the name of another
        (HEAD + GROUP, "", "click Ann a\n", 'R784 the application has no topic "click"; it has "clicks", '),
        (HEAD + GROUP, 'topics = ["count-table"]\n', CLICK, 'fix: did you mean "counts-table"?'),
        (HEAD + GROUP, "", "visit forgett 1\n", 'R720 the application has no visit "forgett"; it has "forget"'),
        (HEAD + GROUP, "", "clicks Ann\n", "R782 line 1 of "),
        (HEAD + SECURE, "", CLICK, '"clicks" has the option kafka.security.protocol, and the broker of a case is'),
        (WINDOW, "", CLICK, "ends with the time, and only --engine memory lets an hour pass at the end"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(
    program: str, settings: str, text: str, said: str, refused: Refused
) -> None:
    assert said in refused(program, settings, text)


def test_without_the_client_no_broker_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with case_broker() as broker:
        for _ in range(2):
            with pytest.raises(RunError, match="R728 wallaroo test --engine spark needs confluent_kafka"):
                broker.start()


@pytest.mark.slow
def test_without_maven_no_broker_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = shutil.which("java")
    assert java is not None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(Path(java).resolve().parents[1]))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with case_broker() as broker, pytest.raises(RunError, match="R724 org.apache.kafka"):
        broker.start()
    assert not list(tmp_path.glob("wallaroo-test-*"))


def test_a_signal_ends_what_runs() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as raised, case_broker():
        os.kill(os.getpid(), signal.SIGTERM)
    assert raised.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.slow
def test_a_topology_with_other_brokers_has_the_same_interface() -> None:
    topology = load_application(str(CASES / "goka_sum" / "app.py"), ["10.0.0.1:9092"], "", "").topology
    changed = with_brokers(topology, "127.0.0.1:5")
    ends = [end for end in (*changed.sources(), *changed.sinks()) if isinstance(end, KafkaSource | KafkaSink)]
    assert {end.brokers for end in ends} == {("127.0.0.1:5",)}
    assert interface_hash(changed) == interface_hash(topology)


RECORDS = st.lists(
    st.tuples(st.sampled_from(["t", "u"]), st.sampled_from(["a", "", "x y"]), st.integers(0, 3)), max_size=8
)


@given(RECORDS, st.randoms(use_true_random=False))
def test_records_rise_within_topic_and_key(drawn: list[tuple[str, str, int]], shuffled: Any) -> None:
    case = Case(Path(), {"order": "key", "input": [{"file": "input.txt", "kind": "records"}]})

    def lines(order: list[tuple[str, str, int]]) -> list[str]:
        return [record_line(KafkaRecord(topic, key.encode(), b"%d" % value)) for topic, key, value in order]

    def by_key(order: list[tuple[str, str, int]]) -> dict[tuple[str, str], list[int]]:
        return {(t, k): [value for *at, value in order if at == [t, k]] for t, k, _ in order}

    other = list(drawn)
    shuffled.shuffle(other)
    assert (case.arranged(lines(drawn)) == case.arranged(lines(other))) == (by_key(drawn) == by_key(other))


RUN = """
import json, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
def say(**said): print(json.dumps(said), flush=True)
def at(n, state="running", lag=0, waiting=0, out=0):
    say(state=state, messages_in=n, messages_out=out, lag=lag, waiting=waiting, dead_letters=1)
"""


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Callable[[str], CaseDriver]]:
    """Give a function that starts what says the same as a run."""
    made = []

    def make(program: str) -> CaseDriver:
        command = [sys.executable, "-c", RUN + program]
        pipe = subprocess.PIPE
        child = subprocess.Popen(command, stdout=pipe, stderr=pipe, stdin=subprocess.DEVNULL, text=True)
        made.append(CaseDriver(Case(tmp_path), tmp_path / "checkpoint", child))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.slow
def test_a_run_is_settled_when_all_is_processed_and_delivered(
    driver: Callable[[str], CaseDriver], tmp_path: Path
) -> None:
    steps = "at(2), at(3, waiting=1), at(3, out=1), at(3, out=1), at(3, out=1), at(3, 'stopped')"
    run = driver(f"for said in ({steps.replace('at(', 'lambda: at(')}):\n    input_wait = time.sleep(0.3); said()")
    asked = []

    def expected() -> int:
        asked.append(1)
        return 3

    run.settle(expected, 0.1, is_last=False)
    assert 4 <= len(asked) <= 5
    for name, number in (("offsets", 7), ("commits", 6)):
        (tmp_path / "checkpoint" / "spark" / name).mkdir(parents=True)
        (tmp_path / "checkpoint" / "spark" / name / str(number)).touch()
    with pytest.raises(RunError, match="the run ended with 0"):  # a micro-batch is not committed until then
        run.settle(expected, 0.1, is_last=True)


@pytest.mark.slow
def test_what_a_run_finds_wrong_is_shown(driver: Callable[[str], CaseDriver]) -> None:
    letter = {"code": "R740", "message": "a message is a dead letter", "fix": "look at it"}
    wrong = {"code": "R672", "message": "no broker", "fix": "start one"}
    said = json.dumps("".join(f"{json.dumps([each])}\n" for each in (letter, wrong)))
    run = driver(f"sys.stderr.write({said}); sys.exit(3)")
    with pytest.raises(RunError) as raised:
        run.wait_ready()
    assert sorted(finding.code for finding in raised.value.diagnostics) == ["R672", "R740", "R745"]
    assert "the run ended with 3\n" in str(raised.value) and "R672 no broker\n  fix: start one" in str(raised.value)
    assert run.letters() == ["a message is a dead letter"]


@pytest.mark.slow
@pytest.mark.parametrize("code", ["R741", "R672"])
def test_a_run_whose_messages_all_fail_is_a_result(code: str, driver: Callable[[str], CaseDriver]) -> None:
    finding = json.dumps(json.dumps([{"code": code, "message": "it failed", "fix": "look at it"}]))
    ends = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(1)); say(state='initialized'); time.sleep(600)"
    run = driver(f"at(3, 'stopped'); print({finding}, file=sys.stderr, flush=True); {ends}")
    run.wait_ready()
    if code == "R741":
        assert run.stop() == 1
    else:
        with pytest.raises(RunError, match="the run ended with 1"):
            run.stop()


@pytest.mark.slow
def test_a_run_that_hangs_is_ended(driver: Callable[[str], CaseDriver], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wallaroo_runtime.cli.case_driver.DEADLINE_S", 0.3)
    run = driver("time.sleep(600)")
    with pytest.raises(RunError, match="the run took longer than 0.3 s"):
        run.wait_ready()
