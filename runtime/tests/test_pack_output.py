"""`wallaroo pack`: what it writes next to other files, and names that no reader takes."""

import os
import shutil
from pathlib import Path

import pytest

from support.run import CASES
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.program.pack import PackOptions, pack

ADDRESSES = ("--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002")
pytestmark = pytest.mark.slow


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """Return a program in a folder of its own."""
    (tmp_path / "program").mkdir()
    return Path(shutil.copy(CASES / "reverse" / "app.py", tmp_path / "program"))


@pytest.mark.parametrize("name", [b"caf\xe9.py", b"a\\b.py", b"a\nb.py"])
def test_a_name_that_no_reader_takes_is_refused_before_anything_is_written(
    app: Path, tmp_path: Path, name: bytes
) -> None:
    (app.parent / os.fsdecode(name)).touch()
    out = tmp_path / "x.tar.gz"
    out.write_text("before")
    with pytest.raises(RunError) as caught:
        pack(PackOptions(str(app), out, ADDRESSES))
    assert str(caught.value).startswith(f"R658 {app} cannot be packed; a name in its manifest is not usable: 'source/")
    assert out.read_text() == "before"


def test_no_link_of_another_user_leads_the_writer_elsewhere(app: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    for name in ("x.tar.gz.part", f".x.tar.gz.{os.getpid()}.part"):
        (tmp_path / name).symlink_to(other)
    pack(PackOptions(str(app), tmp_path / "x.tar.gz", ADDRESSES))
    assert other.read_text() == "mine"
