"""Archives of applications whose components are hosted by several programs."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from wallaroo_runtime.archive.archive import file_digest, read_archive, unpack
from wallaroo_runtime.archive.placeholder import this_platform
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.worker.launch import environment
from wallaroo_runtime.worker.spec import WorkerSpec

CASE = Path(__file__).parents[2] / "tests" / "cases" / "mixed_language"
ADDRESSES = ("--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    folder = tmp_path / "mixed"
    shutil.copytree(CASE, folder)
    return folder


def packed(app: Path, file: Path) -> list[str]:
    assert main(["pack", str(app), "-o", str(file), *ADDRESSES]) == 0
    return [member.name for member in read_archive(file).manifest.members]


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", pytest.param("go", marks=pytest.mark.long)])
def test_both_workers_are_packed(language: str, program: Path, tmp_path: Path) -> None:
    file = tmp_path / "app.tar.gz"
    names = packed(program / "app.py" if language == "python" else program, file)
    binaries = [name for name in names if name.endswith("/worker")]
    assert [name.rpartition("bin/")[2] for name in binaries] == ["linux-amd64/worker", "linux-arm64/worker"]
    of_library = [name for name in names if name.startswith("libraries/1/")]
    assert set(binaries) <= set(of_library) if language == "python" else "libraries/1/source/book.py" in of_library
    archive = read_archive(file)
    assert archive.manifest.platforms == ("linux-amd64", "linux-arm64")
    assert str(program) not in json.dumps([worker["command"] for worker in json.loads(archive.topology)["workers"]])
    directory = tmp_path / "unpacked"
    unpack(file, file_digest(file), directory, sys.executable)
    topology = load_application(str(file), (), "", "").topology
    assert [worker.name for worker in topology.workers] == ["main", "book"]
    for worker in topology.workers:
        spec = WorkerSpec(topology.name, worker.name, worker.command, worker.directory).unpacked(directory)
        assert environment(spec, tmp_path)["WALLAROO_MODE"] == "worker"
        *_, last = spec.program()
        assert Path(last).is_relative_to(directory) and Path(last).is_file() and Path(spec.directory).is_dir()


@pytest.mark.slow
def test_programs_with_requirements_of_their_own(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (program / "other").mkdir()
    (program / "book.py").rename(program / "other" / "book.py")
    text = (program / "app.py").read_text(encoding="utf-8")
    (program / "app.py").write_text(text.replace('"book", "book"', '"book", "other/book.py"'), encoding="utf-8")
    for folder in (program, program / "other"):
        (folder / "requirements.txt").write_text("", encoding="utf-8")
    assert main(["pack", str(program / "app.py"), "-o", str(tmp_path / "a.tar.gz"), *ADDRESSES]) != 0
    said = capsys.readouterr().err
    assert "R658" in said and f"its programs have {program / 'other' / 'requirements.txt'} and " in said


@pytest.mark.long
@pytest.mark.slow
def test_programs_without_a_platform_in_common(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    binary = program / "book.bin"
    assert main(["build", str(program / "book"), "-o", str(binary)]) == 0
    text = (program / "app.go").read_text(encoding="utf-8")
    (program / "app.go").write_text(text.replace('"book.py"', '"book.bin"'), encoding="utf-8")
    other = {"linux-amd64": "arm64", "linux-arm64": "amd64"}[this_platform()]
    arguments = ["pack", str(program), "-o", str(tmp_path / "a.tar.gz"), "--arch", other, *ADDRESSES]
    assert main(arguments) != 0
    said = capsys.readouterr().err
    assert f"its workers have no platform in common (main: linux-{other}; book: {this_platform()})" in said
