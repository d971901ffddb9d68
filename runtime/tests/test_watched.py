"""Which files a program is, drawn: folders, packages, modules of Go, and what lies next to them."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wallaroo_runtime.cli.main import main
from wallaroo_runtime.program import watched
from wallaroo_runtime.program.watched import ProgramFiles, file_states

PYTHON = {"app.py": True, "lib/__init__.py": True, "lib/deep/part.py": True, "data/rows.csv": False,
          "data/old/kept.py": False, "README.md": False, ".venv/site.py": False, "lib/__pycache__/part.py": False,
          "node_modules/x.py": False, "lib/.hidden.py": False}  # fmt: skip
GO = {"cmd/main.go": True, "go.mod": True, "inner/part.go": True, "inner/deep/part.go": True, "out.txt": False,
      ".git/x.go": False, "vendor/x.go": False, "testdata/x.go": False}  # fmt: skip
TREES = {"app.py": PYTHON, "cmd": GO, "worker": {"worker": True, "other.py": False}}


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


@settings(deadline=None)
@given(st.data())
def test_a_change_is_one_of_the_files_of_the_program(data: st.DataObject) -> None:
    main = data.draw(st.sampled_from(sorted(TREES)))
    tree = TREES[main]
    with tempfile.TemporaryDirectory() as folder:
        for name in tree:
            write(Path(folder, name), "#!")
        files = ProgramFiles(str(Path(folder, main)))
        for size in range(3, 3 + data.draw(st.integers(1, 5))):
            changed = data.draw(st.lists(st.sampled_from(sorted(tree)), unique=True))
            for name in changed:
                write(Path(folder, name), "#!" + "x" * size)
            assert files.have_changed(settle_s=0.0) == any(tree[name] for name in changed)
            assert not files.have_changed(settle_s=0.0)


def test_a_file_that_comes_or_goes_is_a_change(tmp_path: Path) -> None:
    app, more = tmp_path / "app.py", tmp_path / "more.py"
    app.write_text("")
    files = ProgramFiles(str(app))
    more.write_text("")
    assert files.have_changed(settle_s=0.0)
    more.unlink()
    assert files.have_changed(settle_s=0.0)
    app.unlink()  # an editor puts another in its place
    assert files.have_changed(settle_s=0.0)
    app.write_text("")
    assert files.have_changed(settle_s=0.0)


@pytest.mark.parametrize("app", ["shop.apps.main", "shop.apps.main:declare", "shop.apps", "top"])
def test_a_module_is_watched_from_where_it_is_imported(
    app: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["shop/__init__.py", "shop/apps/__init__.py", "shop/apps/main.py", "shop/lib/tax.py", "top.py"]
    for name in names:
        write(tmp_path / name, "")
    monkeypatch.chdir(tmp_path)
    assert set(file_states(app)) == {str(tmp_path / name) for name in names}


def test_the_lock_that_an_editor_puts_next_to_a_file_changes_nothing(tmp_path: Path) -> None:
    app, lock, dangling = tmp_path / "app.py", tmp_path / ".#app.py", tmp_path / "gone.py"
    app.write_text("")
    files = ProgramFiles(str(app))
    for link in (lock, dangling):  # Emacs names in the lock's target who edits: there is no such file
        link.symlink_to("somebody@somewhere.4711:1")
        assert not files.have_changed(settle_s=0.0)
    app.write_text("changed")
    assert files.have_changed(settle_s=0.0)


def test_a_folder_of_everything_costs_no_more_than_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        (tmp_path / f"app{number}.py").write_text("")
    assert len(file_states(str(tmp_path / "app0.py"))) == 50
    monkeypatch.setattr(watched, "MOST_FILES", 10)
    assert len(file_states(str(tmp_path / "app0.py"))) == 10


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--debug"], "--engine memory: that starts within a second"),
        (["--attach", "main=unix:///w"], "--attach: a worker that is started already keeps its code"),
        (["--master", "yarn"], "--master: a cluster has the code in an archive"),
        (["--engine", "memory"], "--engine memory: that starts within a second"),
    ],
)
def test_options_that_do_not_go_with_it(options: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "app.py", "--watch", *options]) == 2
    assert f"--watch does not go with {reason}" in capsys.readouterr().err
