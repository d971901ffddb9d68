"""`wallaroo state get|dump` of an application that was run as an archive: its workers show the states."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.memory_query import MemoryLogs
from support.run import TESTS
from wallaroo_runtime.archive.placeholder import ARCHIVE_PLACEHOLDER
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.checkpoint.manifest import read_manifest
from wallaroo_runtime.checkpoint.registry import registered
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.memory.start import start
from wallaroo_runtime.program.pack import PackOptions, pack
from wallaroo_runtime.run.offline_state import check_archive, check_state, read_workers, shower_of
from wallaroo_runtime.spark.state_store.state_query import StateQuery
from wallaroo_runtime.topology.load import load_document

VECTORS = TESTS.parent / "topology-schema" / "vectors" / "topologies" / "valid"
APP = """
import wallaroo

def application_setup(args):
    return wallaroo.build_application(
        "Tallies", wallaroo.source("lines", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
        .key_by(key).to(count).to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 9, encode)))

class Tally:
    count = 0

@wallaroo.key_extractor
def key(data):
    return data[:1]

@wallaroo.state_computation("count", Tally)
def count(data, tally):
    tally.count += 1
    return data

@wallaroo.line_decoder
def decode(data):
    return data

@wallaroo.line_encoder
def encode(data):
    return data
"""


def archived(path: Path, name: str = "") -> Path:
    """Write the checkpoint of an application that was run as an archive."""
    place = HeldDirectory.take(path)
    document = json.loads((VECTORS / "word_count.json").read_bytes())
    document["workers"][0]["directory"] = ARCHIVE_PLACEHOLDER
    document["name"] = name or document["name"]
    Checkpoint.open(place, load_document(document), shuffle_partitions=3, buckets_per_partition=4)
    place.release()
    return path


@pytest.mark.parametrize("url", ["", "file://"])
@pytest.mark.parametrize("action", [["get", "word totals", "a"], ["dump", "word totals"]])
def test_a_worker_of_an_archive_is_asked_for_before_spark_starts(
    tmp_path: Path, action: list[str], url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = archived(tmp_path / "checkpoint")
    assert main(["state", action[0], f"{url}{path}", *action[1:]]) == 1
    assert capsys.readouterr().err == (
        'R771 the states of Word Count Application cannot be shown; the program of worker "main" is in an archive\n'
        "  fix: give --archive FILE, the archive that was run last, "
        "or --raw, which shows the bytes of states and starts no worker\n"
    )


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    (folder / "app.py").write_text(APP)
    pack(PackOptions(str(folder / "app.py"), folder / "app.tar.gz"))
    return folder / "app.tar.gz"


@pytest.mark.slow
def test_the_worker_of_an_archive_shows_states(tmp_path: Path, packed: Path) -> None:
    archive = read_workers(str(packed))
    assert archive is not None
    topology = load_document(json.loads(archive.topology))
    place = HeldDirectory.take(tmp_path / "checkpoint")
    Checkpoint.open(place, topology, shuffle_partitions=3, buckets_per_partition=4)
    place.release()
    check_state(place.path, "count", archive, raw=False)
    check_archive(read_manifest(place.path), archive)
    with ExitStack() as stack:
        run = start(str(packed.with_name("app.py")), [])
        stack.callback(run.close)
        run.send([b"apple", b"pear", b"apricot"], "lines")
        shower = shower_of(topology, archive, tmp_path / "workers", stack)
        _, row = StateQuery(run.plan, MemoryLogs(run), shower).get("count", "a")
        assert row["value"] == {"count": 2}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", "Tallies"])
def test_another_archive_is_refused_before_spark_starts(
    tmp_path: Path, packed: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = archived(tmp_path / "checkpoint", name)
    with registered(path, name, packed) as note_chosen:
        note_chosen()
    arguments = [str(packed), "word totals"] if name else [str(path), "word totals", "--archive", str(packed)]
    assert main(["state", "dump", *arguments]) == 1
    what = "is another version of the application than that of the last run" if name else 'is the archive of "Tallies"'
    assert f"cannot be shown; {packed} {what}\n  fix: give the archive that was run last" in capsys.readouterr().err
