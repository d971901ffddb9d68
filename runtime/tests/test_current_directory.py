"""No process of ours imports from the current directory: where that is /tmp, its files are anybody's."""

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.run import CASES
from wallaroo.emit.module import module_command
from wallaroo_runtime.program.interpreter import missing_modules

ROOT = Path(__file__).parents[2]
WALLAROO = str(Path(sys.executable).with_name("wallaroo"))
APP = str(CASES / "word_count" / "app.py")
# Programs that are no Python, and the placeholder of a topology, for which `WorkerSpec.program` has a command.
OTHERS = {"PYTHON_PLACEHOLDER", "'{python}'", "SHELL", "'go'", "'mvn'", "'java'"}
IMPORTED = "imported"
PROGRAM = """
import wallaroo

@wallaroo.line_decoder
def decode(data): return data.decode()

@wallaroo.line_encoder
def encode(text): return text

def application_setup(args):
    source = wallaroo.TCPSourceConfig("127.0.0.1", 7010, decode)
    sink = wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)
    return wallaroo.build_application("A", wallaroo.source("in", source).to_sink(sink))
"""


def poison(directory: Path, names: frozenset[str], then: str = "") -> Path:
    """Put a file of the name of each module into a directory: one that is imported says so in another file."""
    directory.mkdir(exist_ok=True)
    (directory / IMPORTED).touch()
    for name in names:
        text = f"import sys\nopen({str(directory / IMPORTED)!r}, 'a').write({name!r} + ' ')\n{then}"
        (directory / f"{name}.py").write_text(text, encoding="utf-8")
    return directory


@pytest.fixture
def poisoned(tmp_path: Path) -> Path:
    return poison(tmp_path / "poisoned", sys.stdlib_module_names | {"grpc", "pip", "pyspark", "sitecustomize"})


def in_it(directory: Path, *command: str, status: int = 0, **variables: str) -> str:
    """Run a command in a directory that others write to; returns what it prints."""
    done = subprocess.run(
        command, cwd=directory, env=os.environ | variables, stdin=subprocess.DEVNULL, text=True, timeout=300,
        capture_output=True, check=False,
    )  # fmt: skip
    assert (directory / IMPORTED).read_text() == ""
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_commands_in_a_directory_of_others(poisoned: Path, tmp_path: Path) -> None:
    archive = tmp_path / "app.tar.gz"
    for command in ("emit", "validate", "explain"):
        in_it(poisoned, WALLAROO, command, APP, "--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002")
    in_it(poisoned, WALLAROO, "pack", APP, "-o", str(archive), "--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002")
    in_it(poisoned, WALLAROO, "validate", str(archive))


@pytest.mark.slow
def test_a_module_of_another_place(poisoned: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "shop.py").write_text(Path(APP).read_text(encoding="utf-8"), encoding="utf-8")
    in_it(
        poisoned,
        WALLAROO,
        "validate",
        "shop",
        "--in",
        "127.0.0.1:7010",
        "--out",
        "127.0.0.1:7002",
        PYTHONPATH=str(home),
    )


@pytest.mark.slow
def test_interpreters_of_others(poisoned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(poisoned)
    assert missing_modules(sys.executable, ("wallaroo", "no_such_module")) == ["no_such_module"]
    command = module_command(sys.executable)
    assert in_it(poisoned, *command, "platform") == in_it(tmp_path_of(poisoned), sys.executable, "-m", "platform")


def tmp_path_of(poisoned: Path) -> Path:
    (poisoned.parent / IMPORTED).touch()
    return poisoned.parent


@pytest.mark.slow
def test_a_program_whose_files_are_called_like_modules_of_the_library(
    tmp_path: Path, wait_until: Callable[..., None]
) -> None:
    home = poison(tmp_path / "home", sys.stdlib_module_names)
    (home / "app.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / IMPORTED).touch()
    in_it(tmp_path, WALLAROO, "validate", str(home / "app.py"))
    serving = tmp_path / "worker"
    serving.mkdir()
    variables = {"WALLAROO_MODE": "worker", "WALLAROO_WORKER_DIR": str(serving), "WALLAROO_WORKER_PROCESSES": "2"}
    with subprocess.Popen(
        module_command(sys.executable, "wallaroo.worker", str(home / "app.py")), cwd=home, env=os.environ | variables
    ) as worker:
        wait_until(lambda: (serving / "worker.sock").exists() or worker.poll() is not None, "the worker")
        worker.terminate()
    assert worker.returncode == 0
    assert (home / IMPORTED).read_text() == ""


def commands(tree: ast.AST) -> Iterator[list[ast.expr]]:
    """Yield what is written as a list, and has an option of Python that names code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple) and any(
            isinstance(each, ast.Constant) and each.value in ("-m", "-c") for each in node.elts
        ):
            yield node.elts


def test_all_that_starts_python_starts_it_so() -> None:
    found = []
    for file in (*(ROOT / "runtime/src").rglob("*.py"), *(ROOT / "api/python/src").rglob("*.py")):
        for first, *rest in commands(ast.parse(file.read_text(encoding="utf-8"))):
            options = [each.value for each in rest if isinstance(each, ast.Constant)]
            if ast.unparse(first) not in OTHERS and "-I" not in options and isinstance(first, ast.Name | ast.Attribute):
                found.append(f"{file.relative_to(ROOT)}:{first.lineno}: use module_command")
    assert not found
