"""Small files that are replaced as a whole."""

import threading
from pathlib import Path

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
