"""What is said when Spark does not start."""

import os
from pathlib import Path

import pytest

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.session import create_session


@pytest.mark.slow
def test_only_lines_of_this_start_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(settings: dict[str, str]) -> None:  # as Java does: it says why, and PySpark only that it has ended
        os.write(1, b"of this start\n")
        reason = "Java gateway process exited"
        raise OSError(reason)

    monkeypatch.setattr("wallaroo_runtime.spark.session._start_java", fails)
    (tmp_path / "spark.out").write_text("of an earlier run\n")
    with pytest.raises(RunError) as caught:
        create_session("a", master="local[1]", shuffle_partitions=1, directory=tmp_path)
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.traceback) == ("R611", "of this start")
