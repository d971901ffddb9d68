"""The Go SDK as it is published: `make go-module`, `go get` from a proxy of files, and a program that requires it."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from wallaroo.testing import run
from wallaroo.topology import SDK_VERSION
from wallaroo_runtime.cli import main as cli
from wallaroo_runtime.program.import_path import NESTED, PUBLISHED

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "examples" / "tutorial" / "word_count"
VERSION = f"v{SDK_VERSION}"


def ran(directory: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the modules are published."""
    into = tmp_path_factory.mktemp("published")
    ran(ROOT, sys.executable, "api/publish.py", str(into))
    return into


@pytest.fixture
def shop(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of a program that imports the published module, without a go.mod."""
    fetched = ran(tmp_path, "go", "env", "GOMODCACHE").strip()
    # A cache of its own: a version that was fetched once is never fetched again, whatever its content is by then.
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    monkeypatch.setenv("GOPROXY", f"file://{published}/proxy,file://{fetched}/cache/download")
    monkeypatch.setenv("GOSUMDB", "off")
    monkeypatch.setenv("GOFLAGS", "-modcacherw")
    monkeypatch.setenv("GOWORK", "")
    directory = tmp_path / "shop"
    directory.mkdir()
    for name in ("main.go", "main_test.go"):
        text = (PROGRAM / name).read_text().replace('"wallarooapi/', f'"{PUBLISHED}/')
        (directory / name).write_text(text)
    ran(directory, "go", "mod", "init", "example.org/shop")
    return directory


@pytest.mark.long  # compiles gRPC and the SDK once more, in another cache of modules
def test_go_get_and_what_comes_after(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(shop, "go", "get", f"{PUBLISHED}/stream@{VERSION}", f"{PUBLISHED}/wallarootest@{VERSION}")
    for command in ("build", "vet", "test"):
        ran(shop, "go", command, "./...")
    required = (shop / "go.mod").read_text()
    assert f"{PUBLISHED} {VERSION}" in required
    assert cli.main(["build", str(shop)]) == 0
    binary = capsys.readouterr().out.strip()
    # What go.mod requires is what is built: not the SDK of this installation, which has no version.
    assert f"\tdep\t{PUBLISHED}\t{VERSION}\th1:" in ran(shop, "go", "version", "-m", binary)
    with run(str(shop)) as app:
        app.send([b"one two", b"two"])
        assert sorted(app.output()) == [b"one 1\n", b"two 1\n", b"two 2\n"]
    assert cli.main(["build", "--init", str(shop)]) == 0
    assert not (shop / "go.work").exists()
    assert (shop / "go.mod").read_text() == required


def test_a_dependency_that_imports_the_other_path(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order = shop.with_name("order")
    order.mkdir()
    (order / "order.go").write_text(f'package order\n\nimport "{PUBLISHED}/stream"\n\nvar Text = stream.Text\n')
    (order / "go.mod").write_text("module example.org/order\n\ngo 1.24.0\n")
    ran(order, "go", "get", f"{PUBLISHED}@{VERSION}")
    for file in shop.glob("*.go"):
        file.write_text(file.read_text().replace(f'"{PUBLISHED}/', '"wallarooapi/'))
    (shop / "more.go").write_text('package main\n\nimport "example.org/order"\n\nvar _ = order.Text\n')
    ran(shop, "go", "mod", "edit", "-require=example.org/order@v0.0.0", "-replace=example.org/order=../order")
    ran(shop, "go", "mod", "edit", f"-require={PUBLISHED}@{VERSION}")
    shutil.copy(order / "go.sum", shop)
    assert cli.main(["build", str(shop)]) == 4
    assert capsys.readouterr().err.splitlines()[:2] == [
        "W433 the program imports the SDK by two paths, each with types of its own: example.org/shop as wallarooapi, "
        f"and example.org/order as {PUBLISHED}",
        f"  at {order}/order.go:3",
    ]


def test_the_repository_is_whole(published: Path) -> None:
    repository = published / "repository"
    assert {"LICENSE", "README.md", "go.mod", "go.sum", "stream", *NESTED, "wallarootest"} <= {
        path.name for path in repository.iterdir()
    }
    assert ran(repository, "gofmt", "-l", ".") == ""
    ran(repository, "go", "vet", "./...")
    ran(repository, "go", "test", "./stream/...", "./application/...")
    for nested in NESTED:
        assert f"\t{PUBLISHED} {VERSION}\n" in (repository / nested / "go.mod").read_text()


def test_all_modules_are_on_the_proxy(published: Path) -> None:
    for path in (PUBLISHED, *(f"{PUBLISHED}/{nested}" for nested in NESTED)):
        versions = published / "proxy" / path / "@v"
        assert (versions / "list").read_text() == f"{VERSION}\n"
        with zipfile.ZipFile(versions / f"{VERSION}.zip") as archive:
            names = set(archive.namelist())
            assert archive.read(f"{path}@{VERSION}/go.mod") == (versions / f"{VERSION}.mod").read_bytes()
        assert f"{path}@{VERSION}/LICENSE" in names
        assert not [name for name in names if name.split("/")[2] in NESTED]


@pytest.mark.long  # compiles Sarama and what else Goka needs
def test_the_module_for_goka(shop: Path, published: Path) -> None:
    ran(published / "repository" / "goka", "go", "vet", "./...")
    for file in shop.glob("*.go"):
        file.unlink()
    case = ROOT / "tests" / "cases" / "goka_clicks" / "app.go"
    (shop / "main.go").write_text(case.read_text().replace('"wallarooapi', f'"{PUBLISHED}'))
    ran(shop, "go", "get", f"{PUBLISHED}/goka@{VERSION}")
    ran(shop, "go", "vet", "./...")
    assert cli.main(["emit", str(shop), "127.0.0.1:9092"]) == 0


@pytest.mark.parametrize("path", ["sdk/stream", "example.org/sdk.v2"])
def test_paths_that_cannot_be_published(path: str, tmp_path: Path) -> None:
    program = (
        f"import sys; sys.path.insert(0, 'api'); from publish import *; publish(Path({str(tmp_path)!r}), {path!r})"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == f"{path}: the first part must be a host, and the last one a name without a dot\n"
    assert list(tmp_path.iterdir()) == []
