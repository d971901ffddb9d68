"""The command `wallaroo`: texts, exit codes, what goes to stdout, and how fast it starts."""

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wallaroo_runtime.cli import main as cli
from wallaroo_runtime.cli.option import split
from wallaroo_runtime.console.reporter import READY, JsonReporter, TextReporter
from wallaroo_runtime.run.snapshot import Listening, Snapshot
from wallaroo_runtime.topology.canonical import canonical_text

VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"
INVALID = VALID.parent / "invalid"
WORD_COUNT = str(VALID / "word_count.json")
WALLAROO = str(Path(sys.executable).with_name("wallaroo"))
PROGRAM = """
import wallaroo
print("a print at import", flush=True)

def application_setup(args):
    print("arguments:", args)
    host, port = wallaroo.tcp_parse_input_addrs(args)[0]
    builder = wallaroo.ApplicationBuilder("Reverse")
    builder.new_pipeline("reverse", wallaroo.TCPSourceConfig(host, port, decode))
    builder.to(reverse)
    builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "7002", encode))
    return builder.build()

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(data):
    return data.decode()

@wallaroo.computation(name="reverse")
def reverse(text):
    return text[::-1]

@wallaroo.encoder
def encode(text):
    return text + "\\n"
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command in this process."""
    code = cli.main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


USAGE = {
    "misspelt command": (["rnu", "app.py"], "rnu is not a command", "did you mean run?"),
    "no command": ([], "the following arguments are required: COMMAND", "see `wallaroo --help`"),
    "missing file": (["validate"], "the following arguments are required: FILE|APP", "see `wallaroo validate --help`"),
    "misspelt option": (
        ["explain", WORD_COUNT, "--mastr", "local"],
        "--mastr is not an option of wallaroo explain",
        "did you mean --master? After -- the application sees it",
    ),
    "abbreviated option": (
        ["explain", WORD_COUNT, "--mast=local"],
        "--mast is not an option of wallaroo explain",
        "did you mean --master? After -- the application sees it",
    ),
    "one argument too many": (
        ["validate", WORD_COUNT, "again"],
        "again is one argument too many for wallaroo validate",
        "see `wallaroo validate --help`",
    ),
    "misspelt value": (
        ["explain", "--mode", "realtme", WORD_COUNT],
        "realtme is not a value of --mode",
        "did you mean realtime?",
    ),
    "no application": (["run"], "wallaroo run needs an application", "give APP, e.g. `wallaroo run word_count.py`"),
    "negative time": (
        ["run", "a.py", "--stop-when-idle", "-1"],
        "argument --stop-when-idle: '-1' is no number of seconds; write e.g. 10",
        "see `wallaroo run --help`",
    ),
    "no number": (
        ["submit", "a.py", "--stop-when-idle", "soon"],
        "argument --stop-when-idle: 'soon' is no number of seconds; write e.g. 10",
        "see `wallaroo submit --help`",
    ),
    "value missing": (
        ["run", "a.py", "--master"],
        "argument --master: expected one argument",
        "see `wallaroo run --help`",
    ),  # noqa: E501
    "nothing to build": (
        ["build", "app", "--init", "-o", "bin"],
        "--init builds nothing; --output has no use",
        "leave one of the two out",
    ),
    "too many addresses": (
        ["run", WORD_COUNT, "--in", "127.0.0.1:1,127.0.0.1:2"],
        "--in has 2 addresses; the application has 1 sources",
        "give at most 1",
    ),
    "unknown source": (
        ["run", WORD_COUNT, "--in", "Splitt and Count@127.0.0.1:1"],
        '--in: no source is called "Splitt and Count"',
        "did you mean Split and Count@?",
    ),
}


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    (declared,) = re.findall(
        r'^version = "(.*)"$', (Path(__file__).parents[1] / "pyproject.toml").read_text(), re.MULTILINE
    )
    assert run(capsys, "--version") == (0, f"wallaroo {declared}\n", "")


@pytest.mark.parametrize("name", USAGE)
def test_usage_errors(capsys: pytest.CaptureFixture[str], name: str) -> None:
    arguments, reason, fix = USAGE[name]
    assert run(capsys, *arguments) == (2, "", f"R608 {reason}\n  fix: {fix}\n")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("7010", "it has no port"),
        (":7010", "it has no host"),
        ("localhost:http", "'http' is not a port"),
        ("localhost:65536", "'65536' is not a port"),
        ("::1:7010", "an IPv6 address is written in brackets, as in [::1]:7010"),
    ],
)
def test_bad_addresses(capsys: pytest.CaptureFixture[str], value: str, reason: str) -> None:
    fix = "give HOST:PORT with a port of at most 65535"
    expected = f'T211 source address "{value}" is not usable; {reason}\n  fix: {fix}\n'
    assert run(capsys, "run", WORD_COUNT, "--in", value) == (2, "", expected)


def test_validate(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    expected = 'application "Word Count Application" is correct: 1 source, 2 steps, 1 sink\n'
    assert run(capsys, "validate", WORD_COUNT) == (0, expected, "")
    missing = tmp_path / "no.json"
    code, out, err = run(capsys, "validate", str(missing))
    assert (code, out) == (2, "")
    assert err.startswith(f"R616 {missing} cannot be read; there is no such file\n  fix: correct the path or ")
    code, _, err = run(capsys, "validate", str(tmp_path))
    assert (code, err.split("; ")[1].splitlines()[0]) == (2, "the directory has neither a .go file nor app.py")


def test_validate_compares_the_interface_hash(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    document = json.loads(Path(WORD_COUNT).read_bytes())
    (worker,) = document["workers"]
    right, worker["interface_hash"] = worker["interface_hash"], "sha256:" + "0" * 64
    file = tmp_path / "topology.json"
    file.write_text(json.dumps(document))
    code, out, err = run(capsys, "validate", str(file))
    assert (code, err) == (3, "")
    assert out.startswith("W403 ")
    assert right in out
    assert "  at /workers/0/interface_hash" in out


def test_all_faults_of_a_topology_come_at_once_as_json_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    case = json.loads((INVALID / "three_faults.json").read_bytes())
    file = tmp_path / "topology.json"
    file.write_text(json.dumps(case["document"]))
    code, out, err = run(capsys, "validate", str(file))
    assert (code, out.count("  fix: "), err) == (3, 3, "")
    code, out, err = run(capsys, "validate", "--json", str(file))
    assert (code, err) == (3, "")
    found = [{"code": each["code"], "pointer": each["pointer"]} for each in map(timeless, out.splitlines())]
    assert found == case["expect"]
    assert f"  (declared in {file})" in run(capsys, "diff", WORD_COUNT, str(file))[2]


MODES = ("microbatch", "realtime")
REFUSED = (
    "in real-time mode (--mode realtime)\n  refused:\n"
    "    real-time mode cannot run this: the cluster yarn; it needs a local Spark master\n"
)


def test_explain_and_graph(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explain", WORD_COUNT, "--master", "local[3]")
    assert code == 0
    assert "12 buckets of keys over 3 shuffle partitions" in out
    plan, realtime = (run(capsys, "explain", WORD_COUNT, "--master", "local[3]", "--mode", mode)[1] for mode in MODES)
    assert out == f"{plan}\n{realtime}" and realtime.startswith("in real-time mode (--mode realtime)\n  source ")
    refused = run(capsys, "explain", WORD_COUNT, "--master", "yarn", "--mode", "realtime")
    assert refused[:2] == (0, REFUSED)
    assert run(capsys, "graph", WORD_COUNT)[1].startswith("flowchart LR\n")


def test_a_program_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    app = tmp_path / "word_cuont.py"
    code, out, err = run(capsys, "run", str(app))
    assert (code, out) == (2, "")
    assert err.startswith(
        f"R609 {app} is not a Python file or module, a Go package directory, a worker binary, a topology"
    )


def test_a_topology_whose_pipelines_were_edited_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    document = json.loads(Path(WORD_COUNT).read_bytes())
    document["pipelines"][0]["steps"][0]["name"] = "edited"
    file = tmp_path / "topology.json"
    file.write_text(json.dumps(document))
    code, out, err = run(capsys, "run", str(file))
    assert (code, out) == (3, "")
    first, place, fix = err.splitlines()
    assert first.startswith('W403 worker "main" hosts another application; its interface hash is sha256:')
    again = "  fix: emit the topology again with `wallaroo emit APP`, or start the program that emitted it"
    assert (place, fix) == ("  at /workers/0/interface_hash", again)


@pytest.mark.slow
def test_a_sink_needs_a_port(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    app = tmp_path / "port_zero.py"
    app.write_text(PROGRAM.replace("7002", "0"))
    code, _, err = run(capsys, "run", str(app), "--in", "127.0.0.1:0")
    assert code == 3
    assert err.endswith(
        'T211 sink address 127.0.0.1:0 is not usable; sink "reverse" needs the port of its receiver\n'
        "  fix: give HOST:PORT with a port of at most 65535\n"
    )


@pytest.mark.slow
def test_no_java(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    app = tmp_path / "no_java.py"
    app.write_text(PROGRAM)
    fix = "  fix: install Java 17 and put `java` on PATH, or set JAVA_HOME; "
    fix += "`wallaroo test` and `wallaroo run APP --engine memory` need no Java\n"
    arguments = ("run", str(app), "--in", "127.0.0.1:0", "--checkpoint", str(tmp_path / "checkpoint"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = run(capsys, *arguments)
    reading = f"reading {app}\n"
    said = f"{reading}R602 Java was not found; there is no `java` on PATH and JAVA_HOME is not set\n{fix}"
    assert (code, err) == (1, said)
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    code, _, err = run(capsys, *arguments)
    assert (code, err) == (1, f"{reading}R602 Java cannot be used; {java} is Java 11; Spark needs 17 or newer\n{fix}")
    java.write_text("#!/bin/sh\necho broken\nexit 3\n")
    assert "`" + str(java) + " -version` failed: broken" in run(capsys, *arguments)[2]
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    code, _, err = run(capsys, *arguments)
    program = tmp_path / "jdk" / "bin" / "java"
    reason = f"JAVA_HOME is {tmp_path / 'jdk'}; {program}: No such file or directory"
    assert (code, err) == (1, f"{reading}R602 Java was not found; {reason}\n{fix}")
    assert not (tmp_path / "checkpoint").exists()


def test_an_unexpected_error_is_a_diagnostic_that_names_a_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def fail(arguments: object) -> int:
        reason = "the unexpected"
        raise ValueError(reason)

    monkeypatch.setattr("wallaroo_runtime.cli.validate.run", fail)
    code, out, err = run(capsys, "validate", WORD_COUNT)
    (log,) = (tmp_path / "wallaroo" / "crashes").iterdir()
    assert (code, out) == (1, "")
    assert err == (
        f"I901 ValueError: the unexpected; the traceback is in {log}\n"
        "  fix: this is a bug of ours; please report it with the text above\n"
    )
    assert "Traceback (most recent call last)" in log.read_text()
    (tmp_path / "wallaroo" / "crashes").rename(tmp_path / "moved")
    (tmp_path / "wallaroo" / "crashes").write_text("in the way")
    assert "I901 ValueError: the unexpected; the traceback is in " in run(capsys, "validate", WORD_COUNT)[2]
    monkeypatch.setattr("tempfile.mkstemp", lambda **_: os.open("/none", os.O_RDONLY))
    assert re.search(r"test_cli.py:\d+; no disk takes its traceback: No", run(capsys, "validate", WORD_COUNT)[2])


def test_split_of_the_command_line() -> None:
    parts = split(
        ["app.py", "--in", "h:1", "--ponythreads=1", "--depth", "3", "-n", "worker", "--fresh", "--out=h:2", "-v",
         "--cluster-initializer", "--", "--fresh"],
        frozenset({"--fresh"}),
    )  # fmt: skip
    assert parts.own == ["app.py", "--in", "h:1", "--fresh", "--out=h:2"]
    assert parts.app == ["--in", "h:1", "--depth", "3", "--out=h:2", "-v", "--fresh"]
    assert parts.without_effect == ["--ponythreads", "-n", "--cluster-initializer"]


def test_split_with_a_module_leaves_other_words_to_the_application() -> None:
    parts = split(["--topic", "votes", "--application-module", "app"], frozenset())
    assert (parts.own, parts.app) == (["app"], ["--topic", "votes"])


def test_split_notices_what_looks_misspelt() -> None:
    assert split(["a.py", "--chekpoint", "d"], frozenset({"--checkpoint"})).suspicious == [
        ("--chekpoint", "--checkpoint")
    ]


SNAPSHOT = Snapshot("running", 1200, 1000, 900, 3, 7, 99.96, 200, 48_200)


def timeless(line: str) -> dict[str, Any]:
    """Return the object of a line without its time, which is in UTC."""
    found: dict[str, Any] = json.loads(line)
    assert re.fullmatch(r"[0-9-]{10}T[0-9:]{8}\.\d{3}Z", found.pop("time"))
    return found


def test_reporters(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text, machine = TextReporter(), JsonReporter()
    text.progress(SNAPSHOT)
    assert capsys.readouterr() == ("", "")
    sources = [Listening(kind, "127.0.0.1:7010", kind) for kind in ("newline", "worker", "connector")]
    text.initialized(sources, tmp_path)
    assert capsys.readouterr().err == (
        'source "newline" listens at 127.0.0.1:7010 (wallaroo send --framing newline)\n'
        f'source "worker" listens at 127.0.0.1:7010\nsource "connector" listens at 127.0.0.1:7010\n{READY}\n'
    )
    machine.progress(SNAPSHOT)
    assert timeless(capsys.readouterr().err) == {
        "state": "running", "messages_in": 1200, "messages_processed": 1000, "messages_out": 900, "dead_letters": 3,
        "batches": 7, "rate": 100.0, "lag": 200, "waiting": 48_200, "bytes_by_file": 0,
        "bytes_by_grpc": 0, "run": {},
    }  # fmt: skip
    machine.initialized(sources[:1], tmp_path)
    assert timeless(capsys.readouterr().err)["sources"] == [
        {"name": "newline", "address": "127.0.0.1:7010", "framing": "newline"}
    ]


def start(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([WALLAROO, *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
def test_emit_prints_one_document_whatever_the_program_prints(tmp_path: Path) -> None:
    (tmp_path / "reverse_app.py").write_text(PROGRAM)
    done = start(
        "emit", "reverse_app.py", "--in", "127.0.0.1:7010", "--metrics", "h:1", "--depth", "2", folder=tmp_path
    )  # noqa: E501
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert canonical_text(document) == done.stdout
    assert document["workers"][0]["args"] == ["--in", "127.0.0.1:7010", "--depth", "2"]
    assert "a print at import" in done.stderr
    assert "note: no effect here: --metrics" in done.stderr
    by_module = start("emit", "--application-module", "reverse_app", "--in", "127.0.0.1:7010", folder=tmp_path)
    assert json.loads(by_module.stdout)["pipelines"] == document["pipelines"]


@pytest.mark.slow
def test_faults_of_a_program_have_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(PROGRAM.replace("def reverse(text)", "def reverse(text, more)"))
    done = start("emit", "broken.py", "--in", "127.0.0.1:7010", folder=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert "T202" in done.stderr
    assert "broken.py:19" in done.stderr


LIGHT = [["--help"], ["validate", WORD_COUNT], ["explain", WORD_COUNT]]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", LIGHT, ids=lambda arguments: arguments[0])
def test_light_commands_import_neither_spark_nor_grpc(arguments: list[str]) -> None:
    code = (
        "import sys; from wallaroo_runtime.cli.main import main; main(sys.argv[1:]); "
        "print([name for name in ('pyspark', 'pyarrow', 'grpc', 'pandas') if name in sys.modules], file=sys.stderr)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120, check=True
    )  # noqa: E501
    assert done.stderr == "[]\n"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)  # time of the processor: others may be busy meanwhile
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 10


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    done = subprocess.run(
        ["bash", "-c", f'"{WALLAROO}" graph "{VALID}/long_chain.json" | head -n 1'],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("flowchart LR\n", "")
