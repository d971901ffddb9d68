"""Go modules as Go developers have them: what `build --init` writes, and programs with modules of their own."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, assume, example, given, settings
from hypothesis import strategies as st

from wallaroo_runtime.cli import main as cli
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.program.app import resolve
from wallaroo_runtime.program.build import build
from wallaroo_runtime.program.emit import emit
from wallaroo_runtime.program.init import init
from wallaroo_runtime.program.sdk import sdk_directory

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
TEMPLATE = Path(__file__).parents[1] / "src" / "wallaroo_runtime" / "template" / "go"
# As earlier versions of `build --init` wrote it, on another machine.
OLD = "\nrequire wallarooapi v0.0.0\n\nreplace wallarooapi => /home/other/sdk/go\n"
ELSEWHERE = "\nreplace golang.org/x/text => /home/other/text\n"


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("GOWORK", "")
    monkeypatch.setenv("GOFLAGS", "")


def made(directory: Path) -> Path:
    """Write a program with a test, as `wallaroo new go` does."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("main.go", "main_test.go"):
        text = (TEMPLATE / f"{name}.template").read_text(encoding="utf-8")
        (directory / name).write_text(text.replace("{name}", "counter"), encoding="utf-8")
    return directory


def ran(directory: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def declared(directory: Path) -> dict[str, Any]:
    """Return what a program emits, but for what says where it is and what its binary is called."""
    document = emit(resolve(str(directory)), ())
    for entry in document["workers"]:
        for name in ("command", "directory", "code_hash"):
            del entry[name]
        for component in entry["components"]:
            component["file"] = Path(component["file"]).name
    return document


def committed(directory: Path) -> dict[str, str]:
    """Return what git would commit, by path."""
    ran(directory, "git", "add", "--all")
    names = ran(directory, "git", "ls-files", "-z").split("\0")
    return {name: (directory / name).read_text(encoding="utf-8") for name in names if name}


def test_nothing_of_this_machine_is_committed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path)
    ran(tmp_path, "git", "init", "--quiet")
    assert [path.name for path in init(tmp_path)] == ["go.mod", "go.work", ".gitignore"]
    assert main(["build", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ("go.mod", "go.work", ".gitignore"))
    first = committed(tmp_path)
    assert sorted(first) == [".gitignore", "go.mod", "main.go", "main_test.go"]
    assert first["go.mod"] == "module wallaroo.local/program\n\ngo 1.24.0\n"
    assert [path.name for path in init(tmp_path)] == ["go.work"]
    assert committed(tmp_path) == first
    ran(tmp_path, "go", "build")
    assert (tmp_path / "program").is_file()
    assert committed(tmp_path) == first


@pytest.mark.parametrize("count", [2, pytest.param(30, marks=pytest.mark.long)])
def test_what_is_there_is_amended(count: int) -> None:
    @settings(deadline=None, max_examples=count)
    @given(
        ignored=st.lists(st.sampled_from(["go.work", "*.work", "go.work.sum", "# mine", "", "/bin"]), max_size=4),
        ends=st.sampled_from(["", "\n"]),
        module=st.sampled_from(["none", "own", "above"]),
        old=st.booleans(),
        uses=st.sets(st.sampled_from(["/home/other/sdk/go", "./sdk", "./sibling"])),
    )
    @example(ignored=["# mine", "*.work"], ends="", module="above", old=True, uses={"/home/other/sdk/go", "./sibling"})
    def holds(ignored: list[str], ends: str, module: str, old: bool, uses: set[str]) -> None:
        amend(ignored, ends, module, old=old, uses=uses)

    holds()


def amend(ignored: list[str], ends: str, module: str, *, old: bool, uses: set[str]) -> None:
    """Let `build --init` find such files."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        ran(root, "git", "init", "--quiet")
        program = made(root / "program")
        home = root if module == "above" else program
        if module != "none":
            (home / "go.mod").write_text("module example.org/counter\n\ngo 1.23\n" + OLD * old)
        for name, path in (("sdk", "wallarooapi"), ("sibling", "example.org/sibling")):
            (home / name).mkdir()
            (home / name / "go.mod").write_text(f"module {path}\n\ngo 1.22\n")
        if uses:
            text = "go 1.23\n\n" + "".join(f"use {each}\n" for each in sorted({".", *uses}))
            (home / "go.work").write_text(text)
        mine = "\n".join(ignored) + ends
        (home / ".gitignore").write_text(mine)
        init(program)
        for name, text in committed(root).items():
            assert str(root) not in text and str(sdk_directory()) not in text and "/home/other" not in text, name
        kept = {root / "sibling" if home == root else program / "sibling"} if "./sibling" in uses else set()
        assert set(workspace(home / "go.work")) == {home, sdk_directory(), *kept}
        assert (home / ".gitignore").read_text().startswith(mine)
        assert module != "above" or not (program / "go.mod").exists()
        before = set(committed(root))
        ran(program, "go", "vet", ".")
        assert set(committed(root)) == before


def workspace(file: Path) -> list[Path]:
    """Return what a go.work names: a reader of its own, for the form that go commands write."""
    lines = file.read_text(encoding="utf-8").replace("use ", "").splitlines()
    paths = [line.strip() for line in lines if line.strip().startswith((".", "/")) and not line.startswith("//")]
    return [(file.parent / path).resolve() for path in paths]


@pytest.mark.parametrize(
    "version", ["1.23", *(pytest.param(each, marks=pytest.mark.long) for each in ("1.24", "1.25.0", "1.26"))]
)
def test_plain_go_commands_work_in_a_module_of_any_version(version: str, tmp_path: Path) -> None:
    program = made(tmp_path / "counter")
    (tmp_path / "go.mod").write_text(f"module example.org/mine\n\ngo {version}\n")
    init(program)
    assert not (program / "go.mod").exists()
    for command in ("build", "vet", "test"):
        ran(program, "go", command, "./...")
    assert (tmp_path / "go.mod").read_text() == f"module example.org/mine\n\ngo {version}\n"


@pytest.mark.parametrize("text", [OLD, ELSEWHERE])
def test_replacements_of_another_machine_do_not_stop_a_build(
    text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = made(tmp_path)
    module = "module example.org/mine\n\ngo 1.23\n" + text
    (program / "go.mod").write_text(module)
    assert cli.main(["emit", str(program)]) == 0
    assert (program / "go.mod").read_text() == module
    said = capfd.readouterr().err
    remark = f"{program}/go.mod replaces golang.org/x/text by /home/other/text, which is not there; it is not replaced"
    assert (remark in said) == (text == ELSEWHERE)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what the program emits that has no module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GOPROXY", "off")
        return declared(made(tmp_path_factory.mktemp("plain")))


@pytest.mark.parametrize("count", [3, pytest.param(30, marks=pytest.mark.long)])
def test_a_program_is_the_same_in_any_module(plain: dict[str, Any], count: int) -> None:
    @settings(deadline=None, max_examples=count, phases=[Phase.generate])  # shrinking takes minutes
    @given(
        name=st.sampled_from(["shop", "with a space", "-a😀\"b'", "v2", "internal", "x_test", "a.b", "%d", "Ä" * 60]),
        module=st.sampled_from(["", "example.org/shop", "main", "example.org/UPPER/v3", "wallaroo", "shop_test"]),
        version=st.sampled_from(["1.23", "1.24.0", "1.25", "1.26"]),
        above=st.booleans(),
        workspace=st.sampled_from(["none", "own", "init"]),
        replace=st.sampled_from(["", OLD]),
    )
    def holds(name: str, module: str, version: str, above: bool, workspace: str, replace: str) -> None:
        # In a module of a directory above, the name is a part of a package's path, and go has rules for that.
        assume(not (module and above) or name.isascii() and not set(name) & set(' "%'))
        with tempfile.TemporaryDirectory() as folder:
            program = made(Path(folder).resolve() / "all" / name)
            home = program.parent if above else program
            if module:
                (home / "go.mod").write_text(f"module {module}\n\ngo {version}\n{replace}")
            if module and workspace == "own":
                (home / "go.work").write_text("go 1.26\n\nuse .\n")
            if workspace == "init":
                init(program)
                ran(program, "go", "vet", ".")
            assert declared(program) == plain

    holds()


@pytest.mark.parametrize("name", ["l" * 255, "-a😀\"b'"])
def test_a_directory_of_any_name_is_built(name: str, tmp_path: Path) -> None:
    assert build(made(tmp_path / name)).is_file()


def test_a_program_without_a_module_imports_its_own_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GO111MODULE", "off")  # as those have it whose programs are in a GOPATH
    program = made(tmp_path / "any name")
    (program / "order").mkdir()
    (program / "order" / "order.go").write_text("package order\n\nconst Empty = 0\n")
    (program / "more.go").write_text('package main\n\nimport "wallaroo.local/program/order"\n\nvar _ = order.Empty\n')
    build(program)
    init(program)
    monkeypatch.delenv("GO111MODULE")
    ran(program, "go", "list", "-deps", "./...")


def test_a_workspace_of_the_user_is_part_of_the_build(tmp_path: Path) -> None:
    program = made(tmp_path / "program")
    (program / "go.mod").write_text("module example.org/program\n\ngo 1.23\n")
    (program / "more.go").write_text('package main\n\nimport "example.org/order"\n\nvar _ = order.Empty\n')
    order = tmp_path / "order"
    order.mkdir()
    (order / "order.go").write_text('package order\n\nimport "example.org/price"\n\nconst Empty = price.None\n')
    (order / "go.mod").write_text("module example.org/order\n\ngo 1.23\n\nrequire example.org/price v0.0.0\n" + OLD)
    (tmp_path / "price").mkdir()
    (tmp_path / "price" / "price.go").write_text("package price\n\nconst None = 0\n")
    (tmp_path / "price" / "go.mod").write_text("module example.org/price\n\ngo 1.23\n")
    text = "go 1.24\n\nuse (\n\t./program\n\t./order\n\t/home/other/sdk\n)\n\nreplace example.org/price => ./price\n"
    (tmp_path / "go.work").write_text(text)
    assert build(program).is_file()
    assert (tmp_path / "go.work").read_text() == text


def test_the_sdk_of_another_installation_in_a_workspace_is_renewed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = made(tmp_path / "shop")
    (program / "go.mod").write_text("module example.org/shop\n\ngo 1.23\n")
    (old := tmp_path / "old").mkdir()
    shutil.copy(sdk_directory() / "go.mod", old)
    (program / "go.work").write_text(f"go 1.24.0\n\nuse (\n\t.\n\t{old}\n)\n")
    build(program)
    remark = f"note: {program}/go.work names {old}, another SDK than is built with; `wallaroo build --init` renews it\n"
    assert remark in capsys.readouterr().err
    init(program)
    build(program)
    assert workspace(program / "go.work") == [program, sdk_directory()]
    assert "another SDK" not in capsys.readouterr().err


def test_the_sdk_alone_in_a_workspace(tmp_path: Path) -> None:
    ran(ROOT, "make", "--silent", "go-module")
    program = made(tmp_path / "program")
    (program / "go.mod").write_text("module example.org/program\n\ngo 1.24.0\n")
    (sdk := tmp_path / "wallarooapi").mkdir()
    ran(sdk, "tar", "-xzf", str(ROOT / "build" / "wallarooapi.tar.gz"))
    # As docs/languages.md says.
    ran(program, "go", "work", "init", ".", "../wallarooapi")
    ran(program, "go", "test", "./...")
    assert (sdk / "goka" / "go.mod").is_file() and not [*sdk.rglob("*_test.go")]


@pytest.mark.long  # compiles Sarama and what else Goka needs
def test_a_program_for_goka_gets_the_version_of_go_that_its_module_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOPROXY")
    shutil.copy(ROOT / "tests" / "cases" / "goka_clicks" / "app.go", tmp_path)
    init(tmp_path)
    ran(tmp_path, "go", "vet", "./...")
    assert f"{sdk_directory()}/goka" in (tmp_path / "go.work").read_text()
    assert all("\ngo 1.25.0\n" in (tmp_path / name).read_text() for name in ("go.work", "go.mod"))


def test_a_committed_workspace_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = made(tmp_path)
    (program / "go.mod").write_text("module example.org/mine\n\ngo 1.23\n")
    text = "go 1.23\n\nuse .\n"
    (program / "go.work").write_text(text)
    ran(program, "git", "init", "--quiet")
    ran(program, "git", "add", "go.work")
    assert cli.main(["build", "--init", str(program)]) == 2
    assert capsys.readouterr().err == (
        f"R780 {program}/go.work is committed to git, so it cannot name the SDK's directory, which exists only on "
        f"this machine\n"
        "  fix: copy it to a file that git ignores, e.g. local.work, `export GOWORK` with the copy's path, "
        "and repeat this command; or `git rm --cached` it\n"
    )
    assert (program / "go.work").read_text() == text


def test_the_remedy_for_a_committed_workspace_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = made(tmp_path)
    (program / "go.mod").write_text("module example.org/mine\n\ngo 1.23\n")
    (program / "go.work").write_text("go 1.23\n\nuse .\n")
    ran(program, "git", "init", "--quiet")
    committed(program)
    shutil.copy(program / "go.work", program / "local.work")
    monkeypatch.setenv("GOWORK", str(program / "local.work"))
    init(program)
    assert not [name for name, text in committed(program).items() if str(sdk_directory()) in text]
    ran(program, "go", "list", "-deps", "./...")


def test_a_workspace_that_go_does_not_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GOWORK", "off")
    init(made(tmp_path))
    assert capsys.readouterr().err == f"note: GOWORK is off, so that go commands do not read {tmp_path}/go.work\n"
    assert os.environ["GOWORK"] == "off"
