"""What the user may name as an application, and front-ends as child processes."""

import json
import os
import platform
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from wallaroo_runtime.errors import TOPOLOGY, USAGE, WORKER, RunError
from wallaroo_runtime.program.app import App, AppKind, resolve
from wallaroo_runtime.program.emit import emit

PROGRAM = """
import wallaroo

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs

@wallaroo.encoder
def encode(data):
    return data

def application_setup(args):
    print("printed", args[1:])
    ab = wallaroo.ApplicationBuilder("app")
    ab.new_pipeline("one", wallaroo.TCPSourceConfig("127.0.0.1", "0", decode))
    ab.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "7002", encode))
    return ab.build()
"""
OTHER_MACHINE = 0xB7 if platform.machine() == "x86_64" else 0x3E


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a directory of the test's own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def elf(path: Path, machine: int) -> Path:
    path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00" + machine.to_bytes(2, "little") + bytes(40))
    return path


def refused(app: str) -> tuple[int, str]:
    with pytest.raises(RunError) as caught:
        resolve(app)
    (finding,) = caught.value.diagnostics
    return caught.value.exit_code, f"{finding.code} {finding.message} / {finding.fix}"


def test_python_programs(here: Path) -> None:
    (here / "shop").mkdir()
    (here / "shop" / "__init__.py").write_text("")
    (here / "shop" / "orders.py").write_text(PROGRAM)
    (here / "app.py").write_text(PROGRAM)
    file = str(here / "app.py")
    assert resolve("app.py") == App(AppKind.PYTHON_FILE, file, file)
    assert resolve("app.py:start") == App(AppKind.PYTHON_FILE, file, f"{file}:start")
    assert resolve("app") == App(AppKind.PYTHON_MODULE, file, "app")
    assert resolve("app:start") == App(AppKind.PYTHON_MODULE, file, "app:start")
    assert resolve("shop.orders") == App(AppKind.PYTHON_MODULE, str(here / "shop" / "orders.py"), "shop.orders")


def test_go_programs_binaries_and_topologies(here: Path) -> None:
    (here / "count").mkdir()
    (here / "count" / "main.go").write_text("package main\n")
    (here / "app.json").write_text("{}")
    binary = executable(here / "worker", "#!/bin/sh\n")
    assert resolve("count") == App(AppKind.GO_DIRECTORY, str(here / "count"))
    assert resolve("./count/") == App(AppKind.GO_DIRECTORY, str(here / "count"))
    assert resolve("app.json") == App(AppKind.TOPOLOGY, str(here / "app.json"))
    assert resolve("./worker") == App(AppKind.BINARY, str(binary))
    assert resolve(sys.executable).kind is AppKind.BINARY


@pytest.mark.parametrize(
    ("app", "reason"),
    [
        ("word_cuont.py", "there is no such file or module; did you mean word_count.py?"),
        ("word_cuont", "there is no such file or module; did you mean word_count.py?"),
        ("nothing/like/it", "there is no such file or module"),
        ("a_wholly_other_one", "there is no such file or module; this directory has word_count.py"),
        ("empty", "the directory has neither a .go file nor app.py"),
    ],
)
def test_what_is_not_there(here: Path, app: str, reason: str) -> None:
    (here / "word_count.py").write_text(PROGRAM)
    (here / "empty").mkdir()
    kinds = "a Python file or module, a Go package directory, a worker binary, a topology or an archive"
    assert refused(app) == (USAGE, f"R609 {app} is not {kinds}; {reason} / give the path or name of such a program")


def test_a_file_in_the_folder_of_a_go_program(here: Path) -> None:
    (here / "shop").mkdir()
    (here / "shop" / "main.go").write_text("package main\n")
    for app in ("shop/app.py", "shop/main.go"):
        code, text = refused(app)
        assert (code, text.split()[0]) == (USAGE, "R609")
        assert text.endswith("is in Go, give the folder: `wallaroo run shop`")
    (here / "shop" / "app.py").write_text(PROGRAM)
    assert refused("shop/word_count.py")[1].endswith("shop has app.py / give the path or name of such a program")


def test_a_file_of_another_kind(here: Path) -> None:
    (here / "notes.txt").write_text("hello")
    assert refused("notes.txt")[1].startswith(f"R609 {here / 'notes.txt'} is not a Python file or module")


def test_a_binary_that_is_not_executable(here: Path) -> None:
    path = here / "worker"
    path.write_text("#!/bin/sh\n")
    assert refused("worker") == (
        WORKER,
        f"W404 {path} cannot run a worker; it has no execute permission / make it executable: `chmod +x {path}`",
    )


def test_a_binary_for_another_machine(here: Path) -> None:
    path = elf(here / "worker", OTHER_MACHINE)
    path.chmod(0o755)
    code, text = refused("worker")
    assert code == WORKER
    other = "aarch64" if OTHER_MACHINE == 0xB7 else "x86_64"
    assert text.startswith(
        f"W404 {path} cannot run a worker; it is for {other}; this machine is {platform.machine()} / "
    )


@pytest.mark.slow
def test_a_program_gives_its_document(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "app.py").write_text(PROGRAM)
    document = emit(resolve("app.py"), ["--in", "x"])
    (worker,) = document["workers"]
    assert worker["command"] == ["{python}", "-m", "wallaroo.worker", str(here / "app.py")]
    assert (worker["directory"], worker["args"]) == (str(here), ["--in", "x"])
    out, err = capfd.readouterr()
    assert (out, err) == ("", "printed ['--in', 'x']\n")
    assert emit(resolve("app"), [])["workers"][0]["command"][-1] == "app"


@pytest.mark.slow
def test_a_binary_gives_its_document(here: Path) -> None:
    answer = json.dumps({"topology": {"name": "b", "workers": [{"name": "main"}]}})
    binary = executable(
        here / "worker", f"#!/bin/sh\n[ $WALLAROO_MODE = emit ] && echo '{answer}' > $WALLAROO_EMIT_FILE\n"
    )
    assert emit(resolve("worker"), [])["workers"] == [
        {"name": "main", "command": [str(binary)], "directory": str(here)}
    ]


def findings(app: str) -> tuple[int, list[str]]:
    with pytest.raises(RunError) as caught:
        emit(resolve(app), [])
    return caught.value.exit_code, [f"{finding.code} {finding.message}" for finding in caught.value.diagnostics]


@pytest.mark.slow
def test_the_programs_faults_end_with_the_code_of_topologies(here: Path) -> None:
    (here / "app.py").write_text(PROGRAM.replace('"7002"', '"x"').replace('"one"', '""'))
    code, found = findings("app.py")
    assert (code, [text[:4] for text in found]) == (TOPOLOGY, ["T210", "T211"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "pattern"),
    [
        ("exit 5", r"W401 worker \"main\" did not start; .*/worker wrote no topology; it exited with status 5"),
        ("kill -9 $$", r"W401 .* wrote no topology; it was ended by SIGKILL"),
        ("echo nonsense > $WALLAROO_EMIT_FILE", r"W410 .*; its result in mode emit is damaged: JSONDecodeError: .*"),
        ("echo [] > $WALLAROO_EMIT_FILE", r"W410 .*; its result in mode emit is damaged: TypeError: .*"),
    ],
)
def test_a_front_end_that_breaks_off(here: Path, script: str, pattern: str) -> None:
    executable(here / "worker", f"#!/bin/sh\n{script}\n")
    code, (text,) = findings("worker")
    assert code == WORKER
    assert re.fullmatch(pattern, text), text


@pytest.mark.slow
def test_a_setup_that_never_ends_and_its_children_are_ended(
    here: Path, wait_until: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wallaroo_runtime.program.emit.DEADLINE_S", 1.0)
    executable(here / "worker", "#!/bin/sh\nsleep 300 &\necho $! > child\nwait\n")
    code, (text,) = findings("worker")
    assert (code, text) == (
        WORKER,
        f'W401 worker "main" did not start; {here / "worker"} gave no topology within 1 s',
    )
    process = int((here / "child").read_text())
    wait_until(lambda: is_over(process), f"the end of {process}")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_setup_that_never_ends_ends_with_its_command(
    here: Path, wait_until: Callable[..., None], number: signal.Signals
) -> None:
    written = "pathlib.Path('child').write_text(str(os.getpid()))"
    setup = f"import os, pathlib, time\n\ndef application_setup(args):\n    {written}\n    time.sleep(300)\n"
    (here / "app.py").write_text(setup)
    command = subprocess.Popen([sys.executable, "-m", "wallaroo_runtime.cli.start", "validate", "app.py"])
    wait_until(lambda: (here / "child").is_file() and (here / "child").read_text() != "", "the setup")
    command.send_signal(number)
    command.wait(60)
    process = int((here / "child").read_text())
    wait_until(lambda: is_over(process), f"the end of {process}")


def is_over(process: int) -> bool:
    """Return whether a process has ended; a killed one does so once it is scheduled."""
    try:
        line = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return True
    return line.rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("place", ["next to", "cwd", "path"])
def test_another_wallaroo(here: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    folders = {name: here / name for name in ("next to", "cwd", "path")}
    for folder in folders.values():
        folder.mkdir()
    (folders["next to"] / "app.py").write_text(PROGRAM)
    (folders[place] / "wallaroo.py").write_text("")
    monkeypatch.chdir(folders["cwd"])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", str(folders["path"])]))
    code, found = findings(str(folders["next to"] / "app.py"))
    other = folders[place] / "wallaroo.py"
    assert (code, found) == (TOPOLOGY, [f"T221 `import wallaroo` finds {other}, not this SDK"])
