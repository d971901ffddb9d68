"""Building Go programs: tutorial style and new style, errors, no network, nothing touched."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from wallaroo_runtime.errors import TOPOLOGY, RunError
from wallaroo_runtime.program import build as build_module
from wallaroo_runtime.program import go as go_module
from wallaroo_runtime.program import module as module_module
from wallaroo_runtime.program.build import build
from wallaroo_runtime.program.init import init

pytestmark = pytest.mark.slow
CASES = Path(__file__).parents[2] / "tests" / "cases"
NEW_STYLE = """package main

import (
\t"wallarooapi/application"
\t"wallarooapi/worker"
)

func main() { worker.Main(setup) }

func setup(args []string) *application.Application {
\treturn application.MakeApplication("new")
}
"""


@pytest.fixture(scope="module")
def go_cache() -> str:
    """Return where Go keeps what it has compiled."""
    return subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache that is empty at the beginning; the tests share what builds a program, and have own programs."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _traps(monkeypatch: pytest.MonkeyPatch, go_cache: str, cache: Path) -> None:
    """No network, a cache of its own, and settings of a user that builds must not trip over."""
    # Go's own build cache lies below XDG_CACHE_HOME too; without it each test would compile everything.
    monkeypatch.setenv("GOCACHE", go_cache)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("GOFLAGS", "-mod=mod")
    monkeypatch.setenv("GOWORK", "off")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    directory = tmp_path / "reverse"
    directory.mkdir()
    shutil.copy(CASES / "reverse" / "app.go", directory)
    return directory


def by_hand(binary: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([binary], capture_output=True, text=True, timeout=300, check=False)


def listing(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def refused(directory: Path) -> tuple[str, str, int, str]:
    with pytest.raises(RunError) as caught:
        build(directory)
    assert caught.value.exit_code == 4
    found = caught.value.diagnostics[0]
    return found.code, found.file, found.line, found.traceback


def test_a_tutorial_is_built_unchanged_without_a_c_compiler_and_cached(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "/nonexistent/cc")  # the tutorial's `import "C"` alone needs none
    before = listing(program)
    binary = build(program)
    assert by_hand(binary).returncode == 2
    assert by_hand(binary).stderr.startswith("W412 ")
    assert build(program) == binary
    assert listing(program) == before
    source = program / "app.go"
    source.write_text(source.read_text() + "\nvar another = 1\n\nfunc init() { println(another) }\n")
    assert build(program) != binary
    assert binary.exists()


def test_with_a_module_of_its_own(program: Path, tmp_path: Path) -> None:
    (program / "go.mod").write_text("module example.org/reverse\n\ngo 1.21\n")
    output = tmp_path / "bin" / "worker"
    output.parent.mkdir()
    assert build(program, output) == output
    assert by_hand(output).returncode == 2
    assert (program / "go.mod").read_text() == "module example.org/reverse\n\ngo 1.21\n"


def test_a_package_below_its_module(program: Path, tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module example.org/all\n\ngo 1.21\n")
    (tmp_path / "word").mkdir()
    (tmp_path / "word" / "word.go").write_text("package word\n\nconst Empty = 0\n")
    (program / "more.go").write_text('package main\n\nimport "example.org/all/word"\n\nvar _ = word.Empty\n')
    assert by_hand(build(program)).returncode == 2


def test_a_new_program(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "main.go").write_text(NEW_STYLE)
    assert by_hand(build(tmp_path / "new")).returncode == 2


def test_more_of_c_keeps_cgo(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = program / "app.go"
    text = (
        source.read_text()
        .replace('\t"C"\n\n', "", 1)
        .replace("import (", '// #include <stdlib.h>\nimport "C"\n\nimport (', 1)
    )
    source.write_text(text + "\nvar number C.int = 1\n")
    assert by_hand(build(program)).returncode == 2
    assert "uses C.int; it is built with cgo" in capsys.readouterr().err


def test_a_compile_error_is_at_the_users_line(program: Path) -> None:
    source = program / "app.go"
    text = source.read_text().replace("return string(runes)", "return string(missing)")
    source.write_text(text)
    line = 1 + text[: text.index("string(missing)")].count("\n")
    code, file, found_line, message = refused(program)
    assert (code, file, found_line) == ("W407", str(source), line)
    assert f"app.go:{line}:16: undefined: missing" in message


def test_an_error_in_the_line_that_was_rewritten(program: Path) -> None:
    source = program / "app.go"
    text = source.read_text().replace("return C.CString(application.ToJson())", "return C.CString(application)")
    source.write_text(text)
    line = 1 + text[: text.index("C.CString(application)")].count("\n")
    assert refused(program)[:3] == ("W407", str(source), line)


def test_a_main_that_is_not_empty(program: Path) -> None:
    source = program / "app.go"
    source.write_text(source.read_text().replace("func main() {}", "func main() { println() }"))
    assert refused(program)[:2] == ("W409", str(source))


def test_no_setup(program: Path) -> None:
    (program / "app.go").write_text("package main\n\nfunc main() {}\n")
    with pytest.raises(RunError) as caught:
        build(program)
    assert caught.value.exit_code == TOPOLOGY
    assert str(caught.value) == (
        f"T201 {program} gives no application; it has no call of worker.Main, and no ApplicationSetup\n  at {program}\n"
        "  fix: call `worker.Main(setup)` in main, with the function that returns the application of package stream; "
        "or in Wallaroo's own API define `ApplicationSetup` that returns `C.CString(app.ToJson())`"
    )


def test_a_package_that_is_not_main(program: Path) -> None:
    source = program / "app.go"
    source.write_text(source.read_text().replace("package main", "package words"))
    with pytest.raises(
        RunError,
        match="T201 package words, which is not package main, gives no application; it has no ApplicationSetup",
    ):
        build(program)


def test_a_module_that_cannot_be_fetched(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    with pytest.raises(RunError) as caught:
        build(program)
    assert str(caught.value) == (
        "R697 go cannot fetch a module that the program or the SDK needs; module lookup disabled by GOPROXY=off\n"
        "  fix: build once where Go's module proxy is reached (GOPROXY), or bring the modules along: "
        "copy `go env GOMODCACHE` of a machine that has built it"
    )
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("reason", ["no space left on device", "read-only file system"])
def test_a_disk_that_is_full_is_no_fault_of_the_program(tmp_path: Path, reason: str) -> None:
    (finding,) = go_module.broken(tmp_path, f"main.go:3:1: write /tmp/go-build1/b.a: {reason}").diagnostics
    assert finding.code == "R742" and finding.file == ""
    assert reason in finding.message and "XDG_CACHE_HOME" in finding.fix


def test_a_build_that_takes_long_is_told(
    program: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(go_module, "NOTE_SECONDS", 0.1)
    assert go_module.run_go(["sh", "-c", "echo built; sleep 1"], program, dict(os.environ)) == "built\n"
    notes = capfd.readouterr().err.splitlines()
    assert len(notes) > 1
    assert "note: go compiles, 1 s so far; the first time it also fetches the SDK's modules" in notes
    master, slave = os.openpty()
    with open(slave, "w") as terminal, open(master, "rb", buffering=0) as shown, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        go_module.run_go(["sleep", "0.5"], program, dict(os.environ))
        text = b""
        note = b"\r\x1b[2Knote: go compiles, 0 s so far"
        while text.count(note) < 2 or not text.endswith(b"\r\x1b[2K"):  # a terminal hands on in parts
            text += shown.read(65536)
    monkeypatch.setattr(go_module, "BUILD_SECONDS", 0.2)
    with pytest.raises(RunError, match="W407"):
        go_module.run_go(["sleep", "60"], program, dict(os.environ))


def test_no_directory(tmp_path: Path) -> None:
    assert refused(tmp_path / "nowhere")[0] == "W407"


def test_no_go(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refused(program)[0] == "W408"


def test_an_old_go(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho go1.23.4\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(RunError, match=r"W408 go cannot be used; .*go is go1\.23\.4, too old"):
        build(program)


def test_init_makes_go_tools_work(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert init(program) == [program / "go.mod", program / "go.work", program / ".gitignore"]
    init(program)
    monkeypatch.setenv("GOFLAGS", "")
    monkeypatch.setenv("GOWORK", "")
    subprocess.run(["go", "vet", "./..."], cwd=program, check=True, timeout=300)


@pytest.mark.long  # compiles the SDK again, since its path is another
def test_the_sdk_of_an_installed_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: Path) -> None:
    sdk = tmp_path / "site-packages" / "sdk"
    shutil.copytree(build_module.sdk_directory(), sdk)
    for module in (build_module, module_module):
        monkeypatch.setattr(module, "sdk_directory", lambda: sdk)
    assert by_hand(build(program)).returncode == 2


def test_go_that_is_ended_leaves_no_work_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work := tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(work))
    go = ["sh", "-c", 'mkdir "$GOTMPDIR/go-build1" && kill -9 $$']
    with pytest.raises(RunError, match="W407"):
        go_module.run_go(go, tmp_path, dict(os.environ))
    assert list(work.iterdir()) == []
