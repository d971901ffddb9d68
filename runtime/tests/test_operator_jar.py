"""The jar of the operators and what runs it must be of one build; a Java without memory says so."""

import hashlib
import subprocess
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.executor_watch import ExecutorWatch, last_memory_error
from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.translate import needing_java, translated
from wallaroo_runtime.spark.machine import jar

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_jar_of_other_sources_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that `make` writes and what a start computes are the same, over the same files."""
    found = jar.operator_jar()
    said = (found.parent / jar.STAMP).read_text().split()[0]
    assert said == jar.sources_digest(ROOT)
    contracts = "topology-schema/*.proto topology-schema/errors.json"
    command = f"find runtime/java/src/main -name '*.java'; ls runtime/java/pom.xml {contracts}"
    piped = f"{{ {command}; }} | LC_ALL=C sort | xargs cat"
    whole = subprocess.run(piped, shell=True, cwd=ROOT, capture_output=True, check=True).stdout
    assert said == hashlib.sha256(whole).hexdigest()
    monkeypatch.setattr(jar, "sources_digest", lambda _: "0" * 64)
    with pytest.raises(RunError, match=r"R758 .*realtime.jar is of other sources than this checkout has") as caught:
        jar.operator_jar()
    assert "make setup" in str(caught.value)


def test_a_method_that_java_lacks_is_no_end_of_java(tmp_path: Path) -> None:
    text = (
        "An error occurred while calling z:org.wallaroo.spark.microbatch.MicroBatch.lower. Trace:\n"
        "py4j.Py4JException: Method lower([class java.lang.String]) does not exist\n\tat py4j.reflection\n"
    )
    with pytest.raises(RunError, match="R758 .*the jar is of another build"), needing_java(tmp_path / "spark.log"):
        raise Py4JError(text)
    text = "Answer from Java side is empty"
    with pytest.raises(RunError, match="R617 "), needing_java(tmp_path / "spark.log"):
        raise Py4JError(text)


@pytest.mark.parametrize("master", ["local[2]", "spark://host:7077"])
@pytest.mark.parametrize("threads", [[], ["executor-heartbeater"], ["executor-heartbeater (ended)"]])
def test_an_executor_that_has_ended_before_it_is_watched_is_gone(threads: list[str], master: str) -> None:
    session = Mock()
    session.sparkContext.master = master
    session.sparkContext._jvm.java.lang.Thread.getAllStackTraces().keySet.return_value = [
        Mock(getName=lambda name=name: name.partition(" ")[0], isAlive=lambda name=name: "ended" not in name)
        for name in ["main", *threads]
    ]
    assert ExecutorWatch(session).is_gone() == (master == "local[2]" and threads != ["executor-heartbeater"])


@given(before=st.integers(0, 3), size=st.sampled_from([0, 100, 300_000]), is_last=st.booleans())
def test_what_java_said_last_of_its_memory(
    before: int, size: int, is_last: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    log = tmp_path_factory.mktemp("logs") / "spark.log"
    assert last_memory_error(log) == ""
    line = "26/11/27 ERROR Executor: java.lang.OutOfMemoryError: Java heap space\n\tat org.example\n"
    log.write_text(line * before + "x" * size + "\n" + (line if is_last else ""))
    found = last_memory_error(log)
    assert found in ("", "java.lang.OutOfMemoryError: Java heap space")
    assert bool(found) == (is_last or (before > 0 and size < 300_000))
    if found:
        told = translated(causes_of(found), "/c", log)
        assert "R611 " in str(told) and "spark.driver.memory=4g" in str(told)
