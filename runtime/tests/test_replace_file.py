"""Small files that are replaced as a whole, and findings about disks that take none."""

import errno
import os
import threading
from pathlib import Path

import pytest

from wallaroo_runtime.cli.main import main
from wallaroo_runtime.durable.file import replace_file


def test_threads_may_replace_a_file_at_once(tmp_path: Path) -> None:
    path, errors = tmp_path / "position", list[OSError]()

    def write(content: bytes) -> None:
        try:
            for _ in range(300):
                replace_file(path, content)
        except OSError as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(letter * 50,)) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert path.read_bytes() in (b"a" * 50, b"b" * 50, b"c" * 50)
    assert [each.name for each in tmp_path.iterdir()] == ["position"]


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.EROFS, "mount it for writing (`dmesg` may say why it is not)"),
        (errno.ESTALE, "mount it again"),
    ],
)
def test_a_disk_that_takes_nothing_is_named(
    number: int, remedy: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(arguments: object) -> int:
        raise OSError(number, os.strerror(number), "/c/application.json")

    monkeypatch.setattr("wallaroo_runtime.cli.validate.run", fail)
    assert main(["validate", "topology.json"]) == 1
    error = capsys.readouterr().err
    assert error == (
        f"R626 the disk of /c/application.json takes nothing more; {os.strerror(number)}\n"
        f"  fix: {remedy}, and repeat it; a run continues from its checkpoint, "
        "and nothing that was acknowledged is lost\n"
    )
