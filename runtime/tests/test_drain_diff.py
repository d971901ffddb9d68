"""Changes that need a drain: `diff` and a run find the same work that is left."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.word_count import WORD_COUNT
from wallaroo.message.frame import encode_frame
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.errors import RunError, count
from wallaroo_runtime.storage.journal.writer import JournalWriter
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.outbox.position import SinkPosition, write_position
from wallaroo_runtime.storage.outbox.staging import StagingWriter
from wallaroo_runtime.topology.load import load_document

Change = Callable[[Any], object]


def changed(change: Change) -> Any:
    document = copy.deepcopy(WORD_COUNT)
    change(document)
    return document


def opened(path: Path, change: Change) -> Checkpoint:
    place = HeldDirectory.take(path)
    try:
        topology = load_document(changed(change))
        return Checkpoint.open(place, topology, shuffle_partitions=3, buckets_per_partition=4)
    finally:
        place.release()


def compared(path: Path, change: Change, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what is left, as `diff` prints it, and compare it with what a run says; empty if nothing is left."""
    (path.parent / "new.json").write_text(json.dumps(changed(change)))
    code = main(["diff", str(path), str(path.parent / "new.json")])
    shown, _, left = capsys.readouterr().out.splitlines()[0].rpartition("; ")
    assert shown.startswith("needs drain" if code else "safe")
    if not code:
        assert left == "nothing is left to drain"
        opened(path, change)
        return ""
    with pytest.raises(RunError) as caught:
        opened(path, change)
    assert str(caught.value).startswith("R790 the program was changed, ")
    assert f"checkpoint {path}: {left}; " in str(caught.value)
    return left


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(received=st.integers(0, 1), published=st.integers(0, 3), data=st.data())
def test_work_that_is_left(
    received: int,
    published: int,
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The sink whose content changes has another place in the new version, or is gone."""

    def with_kafka(document: Any, before: int, **content: str) -> None:
        sinks = document["pipelines"][0]["sinks"]
        own = {"kind": "kafka", "brokers": ["h:1"], "topic": "t", "name": "table", "options": {}, **content}
        head = {name: sinks[0][name] for name in ("inputs", "worker")}
        sinks[:] = [{**sinks[0], "name": f"new {index}", "port": 9 + index} for index in range(before)]
        sinks.append(head | own)
        for index, sink in enumerate(sinks):
            sink["path"] = f"0/sinks/{index}"

    path = tmp_path_factory.mktemp("drain") / "c"
    port = opened(path, lambda document: with_kafka(document, 0)).manifest.ports.parts["0/sinks/0"]
    if published:
        staging = StagingWriter(path / "staging", "q", 0, 0, 0)
        staging.write(port, encode_frame([b"a"] * published, port=port))
        Outbox(path / "outbox", path / "dead-letters").publish("q", 0, staging.finish())
        delivered = data.draw(st.sampled_from([0, published]))
        position = SinkPosition(record=bool(delivered), messages=delivered, total_bytes=delivered)
        write_position(path / "outbox", port, position, durable=True)
        published -= delivered
    if received:
        writer = JournalWriter(path / "journal")
        writer.append(0, 1, [b"\0\0\0\1a"], timestamp_ms=1)
        writer.close()
    new = data.draw(st.integers(0, 2))
    left = compared(path, lambda document: new and with_kafka(document, new - 1, content="record"), capsys)
    if received:
        assert left == "the journal has 1 unprocessed message"
    else:
        assert left == (f"its outbox has {count(published, 'undelivered message')}" if published else "")
