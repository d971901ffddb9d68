"""Bad input: one clear error with code, place and remedy, the right exit code, and never a traceback of ours."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.case import CASES
from support.run import TESTS, WALLAROO, wallaroo
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.program.build import build

pytestmark = pytest.mark.slow
ADDRESSES = ("--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002")
RUN, USAGE, TOPOLOGY, WORKER = 1, 2, 3, 4
WORD_COUNT = CASES / "word_count"


Done = subprocess.CompletedProcess[str]
Command = Callable[..., Done]


def run_apart(app: object, *more: object, **options: object) -> Done:
    """Run the command as a process, in an environment or directory of its own."""
    return wallaroo("run", app, *ADDRESSES, *more, **options)


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str]) -> Command:
    """Give a function that runs the command in this process; what it starts prints, too."""

    def call(*arguments: object) -> Done:
        capfd.readouterr()
        return subprocess.CompletedProcess(arguments, main(list(map(str, arguments))), *capfd.readouterr())

    return call


@pytest.fixture
def run(command: Command) -> Command:
    """Give a function that runs an application, as `command` does."""
    return lambda app: command("run", app, *ADDRESSES)


def program(folder: Path, *changes: tuple[str, str], base: str = "app.py") -> Path:
    """Write the word count with some text replaced."""
    text = (WORD_COUNT / base).read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    file = folder / base.replace("app", "program")
    file.write_text(text, encoding="utf-8")
    return file


def assert_said(done: Done, status: int, *texts: str) -> None:
    """Assert exit code, texts and that there is a remedy, and that our own code shows in no traceback."""
    said = done.stdout + done.stderr
    assert done.returncode == status, said
    for text in texts:
        assert text in said, said
    assert "fix: " in said
    assert "wallaroo_runtime/" not in said, said


def line_of(file: Path, text: str) -> int:
    return 1 + next(n for n, line in enumerate(file.read_text(encoding="utf-8").splitlines()) if text in line)


def test_no_application_setup(tmp_path: Path, run: Command) -> None:
    file = program(tmp_path, ("def application_setup", "def setup"))
    assert_said(run(file), TOPOLOGY, "T201 ", "has no application_setup", "define `application_setup(args)`")


def test_computation_with_the_wrong_number_of_parameters(tmp_path: Path, run: Command) -> None:
    file = program(tmp_path, ("def split(data):", "def split(data, more):"))
    # The decorator's line or the function's: both lead the reader there.
    line = line_of(file, "def split(")
    done = run(file)
    assert_said(done, TOPOLOGY, "T202 ", "takes 2 parameters; expected 1")
    assert f"program.py:{line}" in done.stderr or f"program.py:{line - 1}" in done.stderr, done.stderr


def test_duplicate_pipeline_name(tmp_path: Path, run: Command) -> None:
    line = '    ab.new_pipeline("Split and Count", wallaroo.TCPSourceConfig(in_host, {}, decode_line))\n'
    first = line.format("in_port")
    more = f"    ab.done()\n{line.format('7099')}    ab.to_parallel(split)\n"
    file = program(tmp_path, (first, first + more))
    assert_said(run(file), TOPOLOGY, 'T203 pipeline "Split and Count" is declared twice', "program.py:")


def test_no_sink(tmp_path: Path, run: Command) -> None:
    file = program(tmp_path, ("ab.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode_count))", "ab.done()"))
    assert_said(run(file), TOPOLOGY, 'T204 application "Word Count Application" has no sink', "to_sink")


def test_state_name_with_two_classes(tmp_path: Path, run: Command) -> None:
    step = '    ab.to_state_partition(count_words, WordTotals, "word totals", first_letter, letters)\n'
    second = step.replace("WordTotals", "OtherTotals")
    other = ("class WordTotals:", "class OtherTotals:\n    pass\n\n\nclass WordTotals:")
    file = program(tmp_path, (step, step + second), other)
    assert_said(run(file), TOPOLOGY, 'T205 state "word totals" is declared with WordTotals and with OtherTotals')


@pytest.mark.parametrize("verb", ["validate", "run"])
def test_topology_with_three_faults(tmp_path: Path, verb: str, command: Command) -> None:
    vectors = TESTS.parent / "topology-schema" / "vectors" / "topologies" / "invalid"
    vector = json.loads((vectors / "three_faults.json").read_text(encoding="utf-8"))
    file = tmp_path / "topology.json"
    file.write_text(json.dumps(vector["document"]), encoding="utf-8")
    done = command(verb, file)
    assert_said(done, TOPOLOGY, *(finding["code"] for finding in vector["expect"]))
    assert_said(done, TOPOLOGY, *(finding["pointer"] for finding in vector["expect"]))
    machine = command(verb, file, "--json")
    if verb == "run":
        found = json.loads(machine.stderr.splitlines()[-1])
    else:
        found = [json.loads(line) for line in machine.stdout.splitlines()]
    assert [{"code": f["code"], "pointer": f["pointer"]} for f in found] == vector["expect"]


def go_program(folder: Path, *changes: tuple[str, str]) -> Path:
    return program(folder, *changes, base="app.go")


def test_go_program_that_does_not_compile(tmp_path: Path, run: Command) -> None:
    file = go_program(tmp_path, ("strings.ToLower", "stringz.ToLower"))
    done = run(tmp_path)
    assert_said(done, WORKER, "W407 the Go program does not compile", "undefined: stringz")
    assert f"program.go:{line_of(file, 'stringz.')}" in done.stderr


def test_non_empty_main_beside_application_setup(tmp_path: Path, run: Command) -> None:
    go_program(tmp_path, ("func main() {}", "func main() { println(1) }"))
    assert_said(run(tmp_path), WORKER, "W409 main of", "is not empty", "worker.Main(setup)")


def test_worker_binary_for_another_architecture(tmp_path: Path, run: Command) -> None:
    """Its header decides for the system; test_pack.py compiles for both architectures."""
    machine, foreign = (0x3E, "x86_64") if os.uname().machine in ("aarch64", "arm64") else (0xB7, "aarch64")
    file = Path(shutil.copy(build(WORD_COUNT), tmp_path))
    with file.open("r+b") as binary:
        binary.seek(18)
        binary.write(machine.to_bytes(2, "little"))
    assert_said(run(file), WORKER, "W404 ", f"it is for {foreign}; this machine is", "wallaroo build")


def test_worker_binary_that_is_not_executable(tmp_path: Path, run: Command) -> None:
    file = Path(shutil.copy(build(WORD_COUNT), tmp_path))
    file.chmod(0o644)
    assert_said(run(file), WORKER, "W404 ", "cannot run a worker")


@pytest.mark.jvm
def test_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        command = ("run", WORD_COUNT / "app.py", "--in", address, "--out", "127.0.0.1:7002")
        done = wallaroo(*command, "--checkpoint", tmp_path / "checkpoint")
    assert_said(
        done,
        RUN,
        f'R714 source "Split and Count" cannot listen at {address}',
        "give another HOST:PORT of this machine (`ip addr`) with --in",
    )


@pytest.mark.parametrize(("service", "option"), [("gateway", "--journal"), ("egress", "--outbox")])
def test_a_service_that_cannot_start(tmp_path: Path, service: str, option: str) -> None:
    file = tmp_path / "file"
    file.touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        in_use = wallaroo(service, option, tmp_path / "data", "--listen", address)
        no_directory = wallaroo(service, option, file, "--listen", "127.0.0.1:0")
    assert (in_use.returncode, in_use.stderr) == (
        USAGE,
        f"R714 the {service} cannot listen at {address}; Address already in use\n"
        "  fix: stop the program that uses the address, or give another HOST:PORT of this machine (`ip addr`) "
        "with --listen; ports below 1024 are for root\n",
    )
    assert (no_directory.returncode, no_directory.stderr) == (
        USAGE,
        f"R616 {file} cannot be used by the {service}; File exists\n"
        "  fix: correct the path or its permissions, or give another path\n",
    )


def test_no_java(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")}
    done = run_apart(WORD_COUNT / "app.py", "--checkpoint", tmp_path / "c", env=environment | {"PATH": str(tmp_path)})
    assert_said(done, RUN, "R602 Java was not found", "install Java 17")


def other_wallaroo(folder: Path) -> None:
    (folder / "wallaroo").mkdir()
    (folder / "wallaroo" / "__init__.py").write_text("def application_setup(args): ...\n", encoding="utf-8")


def test_another_package_called_wallaroo_beside_the_program(tmp_path: Path) -> None:
    other_wallaroo(tmp_path)
    done = run_apart(program(tmp_path), cwd=tmp_path)
    assert_said(done, TOPOLOGY, "T221 `import wallaroo` finds", str(tmp_path / "wallaroo"), "not this SDK")


def test_another_package_called_wallaroo_on_pythonpath(tmp_path: Path) -> None:
    other_wallaroo(tmp_path)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = run_apart(WORD_COUNT / "app.py", env=environment)
    assert_said(done, TOPOLOGY, "T221 `import wallaroo` finds", str(tmp_path / "wallaroo"), "not this SDK")


def test_no_such_app(tmp_path: Path, run: Command) -> None:
    assert_said(run(tmp_path / "nothing.py"), USAGE, "R609 ", "nothing.py", "is not a Python file or module")


def test_setup_that_raises_shows_the_user_s_frames_only(tmp_path: Path, run: Command) -> None:
    file = program(tmp_path, ("    letters = [", "    letters = unknown_name + ["))
    line = line_of(file, "unknown_name")
    assert_said(run(file), TOPOLOGY, "T217 application_setup failed; NameError", f"line {line}", "unknown_name")


def test_unknown_option() -> None:
    done = wallaroo("validate", "--no-such-option")
    assert done.returncode == USAGE
    assert "R608" in done.stderr


def test_worker_started_by_hand() -> None:
    command = [sys.executable, "-m", "wallaroo.worker", str(WORD_COUNT / "app.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert_said(done, USAGE, "W412 this program is a worker", "wallaroo run")


def test_command_is_there() -> None:
    assert WALLAROO.exists()
