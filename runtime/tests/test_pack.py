"""Archives: what is packed, the same bytes each time, and what is refused when one is read or unpacked."""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from wallaroo.emit.module import module_command
from wallaroo_runtime.archive import manifest
from wallaroo_runtime.archive.archive import file_digest, read_archive, unpack
from wallaroo_runtime.archive.placeholder import this_platform
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.program.pack import PackOptions, pack
from wallaroo_runtime.worker.spec import WorkerSpec

CASES = Path(__file__).parents[2] / "tests" / "cases"
ADDRESSES = ("--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002")
OTHER = {"linux-amd64": "arm64", "linux-arm64": "amd64"}[this_platform()]
Entries = list[tuple[tarfile.TarInfo, bytes]]


def written_program(folder: Path) -> Path:
    """Write a copy of a program, with what must not be packed next to it."""
    for hidden in (".git", "__pycache__", "environment/lib"):
        (folder / hidden).mkdir(parents=True)
        (folder / hidden / "hidden.py").write_text("", encoding="utf-8")
    (folder / "environment" / "pyvenv.cfg").touch()
    (folder / "part").mkdir()
    (folder / "part" / "more.py").write_text("", encoding="utf-8")
    (folder / "words.txt").write_text("a\n", encoding="utf-8")
    shutil.copy(CASES / "reverse" / "app.py", folder)
    return folder


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return written_program(tmp_path / "program")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    pack(PackOptions(str(written_program(folder / "program") / "app.py"), folder / "app.tar.gz", ADDRESSES))
    return folder / "app.tar.gz"


@pytest.fixture
def packed(archive: Path, tmp_path: Path) -> Path:
    """Return an archive of the program, of which a test may write another one."""
    return Path(shutil.copy(archive, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "as_json"), [([], False), (["--in"], False), (["--out"], True), (["--in", "--out"], False)]
)
def test_an_address_that_the_program_does_not_use_is_told(
    options: list[str], as_json: bool, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (program / "app.py").read_text()
    for name, port in (("input", 7010), ("output", 7002)):
        call = f"wallaroo.tcp_parse_{name}_addrs(args)[0]"
        assert call in text
        text = text.replace(call, f'("127.0.0.1", {port})')
    (program / "app.py").write_text(text)
    given = [word for option in options for word in (option, "sink.example:7003")]
    words = ["pack", str(program / "app.py"), "-o", str(tmp_path / "app.tar.gz"), *given, *["--json"][:as_json]]
    assert main(words) == 0
    said = capsys.readouterr().err
    for option, place in (("--in", "127.0.0.1:7010"), ("--out", "127.0.0.1:7002")):
        reason = f"{option} has no effect: the program itself sets {place}"
        assert (reason in said) == (option in options)
    assert said.count("R743") == len(options)


def entries(file: Path) -> Entries:
    with tarfile.open(file) as tar:
        return [(entry, (tar.extractfile(entry) or io.BytesIO()).read()) for entry in tar]


def written(file: Path, content: Entries) -> Path:
    with tarfile.open(file, "w:gz") as tar:
        for entry, data in content:
            entry.size = len(data) if entry.isreg() else 0
            tar.addfile(entry, io.BytesIO(data))
    return file


def with_manifest(content: Entries, change: Callable[[Any], None]) -> Entries:
    manifest = json.loads(content[0][1])
    change(manifest)
    return [(content[0][0], json.dumps(manifest).encode()), *content[1:]]


def refused(function: Callable[[], object]) -> str:
    with pytest.raises(RunError) as caught:
        function()
    (finding,) = caught.value.diagnostics
    return str(finding).partition("\n")[0]


@pytest.mark.slow
def test_python_program_holds_its_sources_and_no_more(program: Path, packed: Path, tmp_path: Path) -> None:
    names = ["manifest.json", "source/app.py", "source/part/more.py", "topology.json"]
    assert [entry.name for entry, _ in entries(packed)] == names
    assert {(entry.mtime, entry.uid, entry.uname) for entry, _ in entries(packed)} == {(0, 0, "")}
    more = tmp_path / "more.tar.gz"
    pack(PackOptions(str(program / "app.py"), more, ADDRESSES, include=("*.txt",)))
    assert "source/words.txt" in [entry.name for entry, _ in entries(more)]


@pytest.mark.slow
def test_same_input_gives_the_same_bytes_wherever_it_lies(program: Path, packed: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(program, moved)
    for path in moved.rglob("*"):
        os.utime(path, (1, 1))
    again = tmp_path / "again.tgz"
    pack(PackOptions(str(moved / "app.py"), again, ADDRESSES))
    assert again.read_bytes() == packed.read_bytes()
    assert list(tmp_path.glob("*.part")) + list(tmp_path.glob(".*.part")) == []


@pytest.mark.slow
def test_module_is_packed_from_its_root(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(program / "app.py", program / "part" / "words.py")
    (program / "part" / "__init__.py").touch()
    monkeypatch.chdir(program)
    file = tmp_path / "module.tar.gz"
    pack(PackOptions("part.words", file, ADDRESSES))
    (worker,) = load_application(str(file), (), "", "").topology.workers
    assert worker.command == ("{python}", "-m", "wallaroo.worker", "part.words")
    assert worker.directory == "{archive}/source"
    assert "source/part/words.py" in [entry.name for entry, _ in entries(file)]


@pytest.mark.slow
def test_addresses_are_overridden_and_nothing_else(packed: Path) -> None:
    application = load_application(str(packed), (), "127.0.0.1:1", "127.0.0.1:2")
    assert [source.port for source in application.topology.sources()] == [1]
    assert [sink.port for sink in application.topology.sinks()] == [2]
    assert application.archive is not None
    assert application.archive.digest == file_digest(packed)


@pytest.mark.slow
def test_unpacked_worker_is_started_from_where_it_lies(packed: Path, tmp_path: Path) -> None:
    directory = tmp_path / "unpacked"
    unpack(packed, file_digest(packed), directory, sys.executable)
    (worker,) = load_application(str(packed), (), "", "").topology.workers
    spec = WorkerSpec("a", "main", worker.command, worker.directory, archive=packed.name).unpacked(directory)
    assert spec.program() == module_command(sys.executable, "wallaroo.worker", f"{directory}/source/app.py")
    assert Path(spec.program()[-1]).is_file()
    assert spec.directory == f"{directory}/source"
    assert (directory / "source" / "app.py").stat().st_mode & 0o777 == 0o600
    other = WorkerSpec("a", "main", ("{python}", "x"), "/", python="/usr/bin/python9")
    assert other.program() == ["/usr/bin/python9", "x"]
    unpack(packed, "what is there is taken as it is", directory, sys.executable)


def tampered(content: Entries) -> Iterator[tuple[str, Entries, str]]:
    source = next(number for number, (entry, _) in enumerate(content) if entry.name == "source/app.py")
    entry, data = content[source]
    before, after = content[:source], content[source + 1 :]

    def named(name: str, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
        made = tarfile.TarInfo(name)
        made.type, made.linkname = kind, "/etc/passwd"
        return made

    def listed(name: str, size: object = 1) -> Entries:
        member = {"name": name, "bytes": size, "sha256": hashlib.sha256(b"x").hexdigest()}
        return with_manifest(content, lambda manifest: manifest["members"].append(member))

    yield "changed", [*before, (entry, data[:-1] + b"#"), *after], "source/app.py is not what the manifest says"
    yield "longer", [*before, (entry, data + b"#"), *after], f"source/app.py has {len(data) + 1} bytes; the manifest"
    yield "gone", [*before, *after], "source/app.py is missing"
    yield "more", [*content, (named("more.py"), b"")], "'more.py' is not in its manifest, or is there twice"
    yield "twice", [*content, (entry, data)], "'source/app.py' is not in its manifest, or is there twice"
    link = named("source/app.py", tarfile.SYMTYPE)
    yield "link", [*before, (link, b""), *after], "source/app.py is a link, a directory or a device"
    for name in ("../x", "/x", "a//b", "a/../../x", "."):
        yield name, listed(name), f"{name!r} would lie outside of the archive's own directory"
    yield "name", listed("a\n"), "a name in its manifest is not usable: 'a\\n'"
    yield "huge", listed("x", 1 << 40), f"x has {1 << 40} bytes; at most {1 << 30} are read"
    yield "minus", listed("x", -1), "x has -1 bytes"
    yield "listed", with_manifest(content, lambda m: m["members"].append(m["members"][0])), "lists a file twice"
    yield "late", [*content[1:], content[0]], "it does not begin with a manifest"
    yield "form", with_manifest(content, lambda manifest: manifest.pop("platforms")), "has another form: 'platforms'"
    no_topology = [(each, data) for each, data in content if each.name != "topology.json"]
    yield (
        "topology",
        with_manifest(no_topology, lambda manifest: manifest["members"].pop()),
        "it has no topology",
    )


@pytest.mark.slow
def test_archive_that_was_changed(packed: Path, tmp_path: Path) -> None:
    file, unpacked = tmp_path / "changed.tar.gz", tmp_path / "unpacked"
    for kind, content, said in tampered(entries(packed)):
        written(file, content)
        text = refused(lambda: load_application(str(file), (), "", ""))
        assert text.startswith(f"R655 {file} cannot be used as an archive; it is not the archive of an application, ")
        assert said in text, kind
        if kind != "topology":  # what is unpacked has the digest that the driver has read
            assert said in refused(lambda: unpack(file, file_digest(file), unpacked, sys.executable)), kind
            assert not list(tmp_path.glob("unpacked*")), "something was left"


@pytest.mark.slow
def test_bytes_that_are_no_archive(packed: Path, tmp_path: Path) -> None:
    file = tmp_path / "broken.tar.gz"
    for data in (b"", b"text", packed.read_bytes()[:-40], gzip.compress(b"text")):
        file.write_bytes(data)
        assert refused(lambda: load_application(str(file), (), "", "")).startswith("R655 ")


@pytest.mark.slow
def test_small_file_that_becomes_a_huge_one(packed: Path, tmp_path: Path) -> None:
    content = entries(packed)
    extended = tarfile.TarInfo("x")
    extended.type = tarfile.XHDTYPE  # read into memory by tarfile, whatever its size
    file = tmp_path / "bomb.tar.gz"
    with gzip.open(file, "wb", compresslevel=1) as out:
        extended.size = 512 << 20
        out.write(content[0][0].tobuf() + content[0][1].ljust(-(-len(content[0][1]) // 512) * 512, b"\0"))
        out.write(extended.tobuf(format=tarfile.USTAR_FORMAT))
        for _ in range(64):
            out.write(bytes(1 << 20))
    assert "it has a header of type b'x'" in refused(lambda: read_archive(file))


@pytest.mark.slow
def test_another_release(packed: Path, tmp_path: Path) -> None:
    file = tmp_path / "other.tar.gz"
    other = f"R655 {file} cannot be used as an archive; it was packed for another release"
    written(file, with_manifest(entries(packed), lambda manifest: manifest.update(archive_version=2)))
    said = f"{other}; its format has version 2; this runtime knows version 1"
    assert refused(lambda: load_application(str(file), (), "", "")) == said
    written(file, with_manifest(entries(packed), lambda manifest: manifest.update(protocol_version=9)))
    said = f"{other}; its workers speak protocol 9; this runtime knows protocol 1"
    assert refused(lambda: load_application(str(file), (), "", "")) == said


@pytest.mark.slow
def test_executor_takes_only_what_the_driver_has_read(packed: Path, tmp_path: Path) -> None:
    said = refused(lambda: unpack(packed, "0" * 64, tmp_path / "unpacked", sys.executable))
    assert said.endswith(f"its SHA-256 is {file_digest(packed)}; the driver read one with {'0' * 64}")


def test_missing_archive(tmp_path: Path) -> None:
    assert refused(lambda: read_archive(tmp_path / "a.tar.gz")).startswith("R616 ")


@pytest.mark.slow
def test_go_program_holds_static_binaries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = shutil.copytree(CASES / "reverse", tmp_path / "reverse")
    one, two = tmp_path / "one.tar.gz", tmp_path / "two.tar.gz"
    assert main(["pack", str(tmp_path / "reverse"), "-o", str(one), *ADDRESSES]) == 0
    assert main(["pack", str(tmp_path / "reverse"), f"--output={two}", *ADDRESSES]) == 0
    said = capsys.readouterr()
    assert said.out == f"{file_digest(one)}  {one}\n{file_digest(two)}  {two}\n"
    assert [line for line in said.err.splitlines() if not line.startswith("note: ")][:3] == [
        f"compiling Go in {place}",
        f"compiling Go in {place} for amd64 and arm64; --arch limits it to fewer",
        f"writing {one}",
    ]
    assert one.read_bytes() == two.read_bytes()
    binaries = {entry.name: data for entry, data in entries(one) if entry.name.startswith("bin/")}
    assert sorted(binaries) == ["bin/linux-amd64/worker", "bin/linux-arm64/worker"]
    assert {name: data[18] for name, data in binaries.items()} == {
        "bin/linux-amd64/worker": 0x3E,
        "bin/linux-arm64/worker": 0xB7,
    }
    assert not any(b"/lib64/ld-linux" in data or b"/lib/ld-linux" in data for data in binaries.values())
    directory = tmp_path / "unpacked"
    unpack(one, file_digest(one), directory, sys.executable)
    (worker,) = load_application(str(one), (), "", "").topology.workers
    (program,) = WorkerSpec("a", "main", worker.command, worker.directory).unpacked(directory).program()
    answer = subprocess.run([program], capture_output=True, text=True, timeout=300, check=False)
    assert "W412" in answer.stderr

    missing = tmp_path / "missing.tar.gz"
    pack(PackOptions(str(tmp_path / "reverse"), missing, ADDRESSES, architectures=(OTHER,)))
    said = f"R655 {missing} cannot be used as an archive; it is packed for linux-{OTHER}; "
    checkpoint = tmp_path / "checkpoint"
    assert main(["run", str(missing), "--checkpoint", str(checkpoint)]) == 2
    assert f"{said}this machine has {this_platform()}" in capsys.readouterr().err
    assert not checkpoint.exists(), "something was started"
    there = tmp_path / "there"
    assert refused(lambda: unpack(missing, file_digest(missing), there, sys.executable)).startswith(said)
    assert not there.exists()


@pytest.mark.slow
def test_program_with_c_is_not_packed(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    shutil.copytree(CASES / "reverse", folder)
    (folder / "c.go").write_text('package main\n\n// int one() { return 1; }\nimport "C"\n\nvar one = C.one()\n')
    said = refused(lambda: pack(PackOptions(str(folder), tmp_path / "c.tar.gz", ADDRESSES, architectures=("amd64",))))
    assert said == "W407 the Go program does not compile"


@pytest.mark.slow
@pytest.mark.long
def test_dependencies_come_along(program: Path, tmp_path: Path) -> None:
    (program / "requirements.txt").write_text("numpy<3\n", encoding="utf-8")
    (program / "app.py").write_text(
        "import numpy\n" + (program / "app.py").read_text(encoding="utf-8"), encoding="utf-8"
    )
    architecture = this_platform().removeprefix("linux-")
    file = tmp_path / "numpy.tar.gz"
    manifest = pack(PackOptions(str(program / "app.py"), file, ADDRESSES, architectures=(architecture,)))
    assert manifest.python == "{}.{}".format(*sys.version_info)
    content = {entry.name: data for entry, data in entries(file)}
    lock = content["requirements.lock"].decode()
    for name in ("numpy==", "grpcio==", "protobuf=="):
        assert f"\n{name}" in "\n" + lock
    assert lock.count("--hash=sha256:") == len([name for name in content if name.endswith(".whl")])
    directory = tmp_path / "unpacked"
    unpack(file, file_digest(file), directory, sys.executable)
    # An interpreter that has nothing installed imports it all from the archive.
    code = "import numpy, grpc, wallaroo.worker; print(numpy.__file__)"
    bare = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(directory / 'site')!r}); {code}"]
    done = subprocess.run(bare, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.strip() == f"{directory}/site/numpy/__init__.py", done.stderr

    # The lock of an archive packs the same wheels again.
    (program / "requirements.txt").write_text(lock, encoding="utf-8")
    again = tmp_path / "again.tar.gz"
    pack(PackOptions(str(program / "app.py"), again, ADDRESSES, architectures=(architecture,)))
    assert again.read_bytes() == file.read_bytes()

    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho 2.7\n", encoding="utf-8")
    other.chmod(0o700)
    said = refused(lambda: unpack(file, file_digest(file), tmp_path / "there", str(other)))
    assert said.startswith(
        f"R655 {file} cannot be used as an archive; it is packed for Python {manifest.python}; the executor on "
    )
    assert said.endswith(f" has Python 2.7 in {other}")


@pytest.mark.slow
def test_dependencies_that_cannot_be_had(program: Path, tmp_path: Path) -> None:
    needs = program / "requirements.txt"
    needs.write_text("./nowhere-1-py3-none-any.whl\n", encoding="utf-8")
    said = refused(lambda: pack(PackOptions(str(program / "app.py"), tmp_path / "x.tar.gz", ADDRESSES)))
    assert said.startswith(f"R658 {needs} cannot be packed; its dependencies for linux-amd64 cannot be fetched: ")
    assert "nowhere" in said


@pytest.mark.slow
def test_what_cannot_be_packed(
    program: Path, packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, out = str(program / "app.py"), tmp_path / "x.tar.gz"
    topology = CASES / "reverse" / "topology.json"
    assert (
        refused(lambda: pack(PackOptions(str(topology), out))) == f"R658 {topology} cannot be packed; it is no program"
    )
    assert refused(lambda: pack(PackOptions(str(packed), out))) == f"R658 {packed} cannot be packed; it is no program"
    said = f"R658 {program} cannot be packed; no file matches --include *.bin"
    assert refused(lambda: pack(PackOptions(app, out, ADDRESSES, include=("*.bin",)))) == said
    (program / "link.py").symlink_to("/etc/hostname")
    assert "is a link to a file outside of it" in refused(lambda: pack(PackOptions(app, out, ADDRESSES)))
    (program / "link.py").unlink()
    there = tmp_path / "nowhere" / "x.tar.gz"
    assert refused(lambda: pack(PackOptions(app, there, ADDRESSES))).startswith(
        f"R658 {there} cannot be packed; No such"
    )
    monkeypatch.setattr("wallaroo_runtime.program.pack.MAX_FILE_BYTES", 10)
    assert "at most 10 are packed" in refused(lambda: pack(PackOptions(app, out, ADDRESSES)))
    assert not out.exists()
    for arguments, text in (
        (["-o", "app.zip"], "R608 app.zip does not look like an archive"),
        (["-o", "a.tgz", "--arch", "mips"], "R608 mips is not a processor that can be packed for"),
        ([], "R608 the following arguments are required: -o/--output"),
    ):
        assert main(["pack", app, *arguments, *ADDRESSES]) == 2
        assert text in capsys.readouterr().err


def test_limits_are_those_of_the_documentation() -> None:
    assert (manifest.MAX_FILE_BYTES, manifest.MAX_BYTES) == (1 << 30, 4 << 30)
