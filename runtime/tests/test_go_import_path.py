"""Programs that import the Go SDK by its published path, which no proxy has: they need no network either."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from wallaroo.testing import run
from wallaroo_runtime.cli import main as cli
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.program.app import resolve
from wallaroo_runtime.program.build import build
from wallaroo_runtime.program.emit import emit
from wallaroo_runtime.program.import_path import MODULE, PUBLISHED
from wallaroo_runtime.program.init import init
from wallaroo_runtime.program.published import published_directory

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "examples" / "tutorial" / "word_count"
CASES = ROOT / "tests" / "cases"
# The one of a workspace that is somebody's own would be built; this one is on another machine.
ELSEWHERE = f"\nrequire {PUBLISHED} v0.0.0\n\nreplace {PUBLISHED} => /home/other/sdk\n"
OLD = "\nrequire wallarooapi v0.0.0\n\nreplace wallarooapi => /home/other/sdk/go\n"


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("GOWORK", "")
    monkeypatch.setenv("GOFLAGS", "")


def made(directory: Path, root: str = PUBLISHED, source: Path = PROGRAM) -> Path:
    """Write a Go program that imports the SDK by a path."""
    directory.mkdir(parents=True, exist_ok=True)
    for file in source.glob("*.go"):
        text = file.read_text(encoding="utf-8").replace(f'"{MODULE}', f'"{root}')
        (directory / file.name).write_text(text, encoding="utf-8")
    return directory


def ran(directory: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def declared(directory: Path, *arguments: str) -> dict[str, Any]:
    """Return what a program emits, but for what says where it is and what its binary is called."""
    document = emit(resolve(str(directory)), arguments)
    for entry in document["workers"]:
        for name in ("command", "directory", "code_hash"):
            del entry[name]
        for component in entry["components"]:
            component["file"] = Path(component["file"]).name
    return document


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what the program emits that imports `wallarooapi` and has no module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GOPROXY", "off")
        return declared(made(tmp_path_factory.mktemp("plain"), MODULE))


@settings(
    deadline=None, max_examples=6, phases=(Phase.explicit, Phase.reuse, Phase.generate)
)  # shrinking takes minutes
@given(
    root=st.sampled_from([MODULE, PUBLISHED, PUBLISHED]),
    name=st.sampled_from(["shop", "with a space", "-a😀\"b'", "v2", "internal", "x_test", "a.b", "%d", "Ä" * 60]),
    module=st.sampled_from(["", "example.org/shop", "main", "example.org/UPPER/v3", "wallaroo", "shop_test"]),
    version=st.sampled_from(["1.23", "1.24.0", "1.25", "1.26"]),
    above=st.booleans(),
    workspace=st.sampled_from(["none", "own", "init"]),
    replace=st.sampled_from(["", OLD, ELSEWHERE]),
)
def test_a_program_is_the_same_by_either_path(
    plain: dict[str, Any], root: str, name: str, module: str, version: str, above: bool, workspace: str, replace: str
) -> None:
    # In a module of a directory above, the name is a part of a package's path, and go has rules for that.
    assume(not (module and above) or name.isascii() and not set(name) & set(' "%'))
    with tempfile.TemporaryDirectory() as folder:
        program = made(Path(folder).resolve() / "all" / name, root)
        home = program.parent if above else program
        if module:
            (home / "go.mod").write_text(f"module {module}\n\ngo {version}\n{replace}")
        if module and workspace == "own":
            (home / "go.work").write_text("go 1.26\n\nuse .\n")
        if workspace == "init":
            init(program)
            ran(program, "go", "vet", ".")
            ran(program, "go", "list", "-test", "-deps", "./...")
        assert declared(program) == plain


@pytest.mark.parametrize("version", ["1.23", pytest.param("1.26", marks=pytest.mark.long)])
def test_plain_go_commands_work_with_a_copy_of_the_sdk(version: str, tmp_path: Path) -> None:
    program = made(tmp_path / "shop")
    (program / "go.mod").write_text(f"module example.org/shop\n\ngo {version}\n")
    ran(program, "git", "init", "--quiet")
    init(program)
    for command in ("build", "vet", "test"):
        ran(program, "go", command, "./...")
    ran(program, "git", "add", "--all")
    assert ran(program, "git", "ls-files").split() == [".gitignore", "go.mod", "main.go", "main_test.go"]
    assert str(published_directory()) in (program / "go.work").read_text()
    assert (program / "go.mod").read_text() == f"module example.org/shop\n\ngo {version}\n"


def test_the_tutorial_of_wallaroo_and_its_run_in_memory(tmp_path: Path) -> None:
    case = CASES / "reverse"
    program = made(tmp_path / "reverse", PUBLISHED, case)
    with run(str(program), ["--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002"]) as app:
        app.send([b"abc"])
        assert app.output() == [b"cba\n"]
    assert sdks_in(build(program)) == {PUBLISHED}


@pytest.mark.long  # compiles Sarama and what else Goka needs, twice
def test_a_program_for_goka(tmp_path: Path) -> None:
    case = CASES / "goka_clicks"
    same = [
        declared(made(tmp_path / str(n), root, case), "127.0.0.1:9092") for n, root in enumerate((MODULE, PUBLISHED))
    ]
    assert same[0] == same[1]
    program = tmp_path / "1"
    init(program)
    ran(program, "go", "vet", "./...")
    assert f"{published_directory()}/goka" in (program / "go.work").read_text()
    assert "\ngo 1.25.0\n" in (program / "go.work").read_text()
    assert "\ngo 1.25.0\n" in (program / "go.mod").read_text()


def test_a_program_with_spans(tmp_path: Path) -> None:
    program = made(tmp_path / "words", PUBLISHED, Path(__file__).parent / "traced" / "words")
    binary = build(program, static=True)
    assert f"\tdep\t{PUBLISHED}/otel\t" in ran(tmp_path, "go", "version", "-m", str(binary))
    init(program)
    ran(program, "go", "vet", ".")
    assert f"{published_directory()}/otel" in (program / "go.work").read_text()


def sdks_in(binary: Path) -> set[str]:
    """Return the paths of the SDKs that are linked into a program."""
    lines = ran(binary.parent, "go", "version", "-m", str(binary)).splitlines()
    return {line.split("\t")[2] for line in lines if line.startswith("\tdep\t")} & {MODULE, PUBLISHED}


def test_a_copy_in_a_workspace_is_renewed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = made(tmp_path / "shop")
    (program / "go.mod").write_text("module example.org/shop\n\ngo 1.23\n")
    old = published_directory().with_name("0" * 32)
    try:
        shutil.copytree(published_directory(), old)
        (program / "go.work").write_text(f"go 1.24.0\n\nuse (\n\t.\n\t{old}\n)\n")
        build(program)
        remark = (
            f"note: {program}/go.work names {old}, another SDK than is built with; `wallaroo build --init` renews it\n"
        )
        assert remark in capsys.readouterr().err
        init(program)
        build(program)
        assert str(old) not in (program / "go.work").read_text()
        assert "another SDK" not in capsys.readouterr().err
    finally:
        shutil.rmtree(old)


@pytest.mark.long  # compiles the SDK once more
def test_an_sdk_of_somebody_s_own_is_built(tmp_path: Path) -> None:
    program = made(tmp_path / "shop")
    fork = tmp_path / "fork"
    shutil.copytree(published_directory(), fork)
    (fork / "stream" / "mine.go").write_text("package stream\n\nconst Mine = 1\n")
    (program / "mine.go").write_text(f'package main\n\nimport "{PUBLISHED}/stream"\n\nvar _ = stream.Mine\n')
    (program / "go.mod").write_text("module example.org/shop\n\ngo 1.24.0\n")
    (tmp_path / "go.work").write_text("go 1.24.0\n\nuse (\n\t./shop\n\t./fork\n)\n")
    build(program)
    init(program)
    ran(program, "go", "vet", ".")


def refused(program: Path) -> str:
    with pytest.raises(RunError) as caught:
        build(program)
    assert caught.value.exit_code == 4
    return str(caught.value)


def two_sdks(name: str, root: str, other: str, place: str) -> str:
    other_root = MODULE if root == PUBLISHED else PUBLISHED
    return (
        f"W433 the program imports the SDK by two paths, each with types of its own: {name} as {root}, and {other} as "
        f"{other_root}\n  at {place}\n  fix: import {root} in all of its files, or let the program import what the "
        "packages that it depends on do"
    )


@pytest.mark.parametrize("root", [MODULE, PUBLISHED])
@pytest.mark.parametrize("name", ["main.go", "main_test.go"])
def test_files_that_import_both(root: str, name: str, tmp_path: Path) -> None:
    program = made(tmp_path, root)
    other = MODULE if root == PUBLISHED else PUBLISHED
    lines = (program / name).read_text().replace(f'"{root}/w', f'"{other}/w').splitlines()
    (program / name).write_text("\n".join(lines))
    line = next(number for number, text in enumerate(lines, 1) if f'"{other}/w' in text)
    assert refused(program) == two_sdks("main.go", root, name, f"{program / name}:{line}")


@pytest.mark.parametrize("root", [MODULE, PUBLISHED])
@pytest.mark.parametrize("where", ["package", "module", "workspace"])
def test_packages_that_import_the_other(root: str, where: str, tmp_path: Path) -> None:
    program = made(tmp_path / "shop", root)
    other = MODULE if root == PUBLISHED else PUBLISHED
    (program / "go.mod").write_text("module example.org/shop\n\ngo 1.24.0\n")
    order = program / "order" if where == "package" else tmp_path / "order"
    order.mkdir()
    (order / "order.go").write_text(f'package order\n\nimport "{other}/stream"\n\nvar Text = stream.Text\n')
    path = "example.org/shop/order" if where == "package" else "example.org/order"
    if where != "package":
        (order / "go.mod").write_text("module example.org/order\n\ngo 1.24.0\n")
    if where == "module":
        required = "\nrequire example.org/order v0.0.0\n\nreplace example.org/order => ../order\n"
        (program / "go.mod").write_text("module example.org/shop\n\ngo 1.24.0\n" + required)
    if where == "workspace":
        (tmp_path / "go.work").write_text("go 1.24.0\n\nuse (\n\t./shop\n\t./order\n)\n")
    (program / "more.go").write_text(f'package main\n\nimport "{path}"\n\nvar _ = order.Text\n')
    assert refused(program) == two_sdks("example.org/shop", root, path, f"{order / 'order.go'}:3")


def test_a_module_with_programs_of_both(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module example.org/shop\n\ngo 1.24.0\n")
    for root, name in ((MODULE, "first"), (PUBLISHED, "second")):
        assert sdks_in(build(made(tmp_path / name, root))) == {root}
    init(tmp_path / "first")
    ran(tmp_path, "go", "vet", "./...")


def test_a_version_that_cannot_be_fetched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = made(tmp_path)
    (program / "go.mod").write_text(f"module example.org/shop\n\ngo 1.24.0\n\nrequire {PUBLISHED} v0.1.0\n")
    assert cli.main(["emit", str(program)]) == 4
    assert capsys.readouterr().err == (
        f"R796 go cannot fetch {PUBLISHED} v0.1.0, the SDK that go.mod requires; "
        "module lookup disabled by GOPROXY=off\n"
        f"  fix: set GOPROXY to where that version is, or `go mod edit -droprequire={PUBLISHED}`: then the SDK of this "
        "installation is used\n"
    )
    ran(program, "go", "mod", "edit", f"-droprequire={PUBLISHED}")
    assert build(program).is_file()
