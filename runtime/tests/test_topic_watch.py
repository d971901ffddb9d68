"""A topic that is deleted and created again: what a checkpoint keeps of it, and how a run notices."""

import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.checkpoint.manifest import read_manifest
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.durable.directory import LocalDirectory
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.source_progress import SourceProgress
from wallaroo_runtime.kafka.client import EARLIEST
from wallaroo_runtime.kafka.offset import lost_records
from wallaroo_runtime.maintenance.rescalable import Topics
from wallaroo_runtime.run import topic_watch, topics
from wallaroo_runtime.run.topic_watch import TopicWatch
from wallaroo_runtime.storage.journal.writer import JournalWriter
from wallaroo_runtime.storage.progress import plan_elsewhere
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import KafkaSource

VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"
TOPOLOGY = load_document(json.loads((VALID / "records.json").read_bytes()))
SOURCE = next(TOPOLOGY.kafka_sources())
IDS = {SOURCE.path: "one"}


def test_created_topics_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    monkeypatch.setattr(topics, "_create", lambda wanted: zip(wanted, (1, 2000), strict=True))
    topics.create_topics(TOPOLOGY, notes.append)
    assert notes == ['topic "counts-table" created, 1 partition', 'topic "users" created, 2,000 partitions']


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_watch, "LOOK_S", 0.001)


def opened(path: Path) -> Checkpoint:
    place = HeldDirectory.take(path)
    try:
        return Checkpoint.open(place, TOPOLOGY, shuffle_partitions=1, buckets_per_partition=4)
    finally:
        place.release()


def watched(answers: Iterator[str | RunError], ids: dict[str, str], *, is_realtime: bool = True) -> TopicWatch:
    """Return a watch that has had all answers."""

    def ask(source: KafkaSource) -> str:
        answer = next(answers)
        if isinstance(answer, RunError):
            raise answer
        return answer

    watch = TopicWatch(TOPOLOGY.kafka_sources(), ids, ask, is_realtime=is_realtime)
    watch.start()
    watch._thread.join(60)
    assert not watch._thread.is_alive()
    watch.close()
    return watch


def test_ids_stay_with_a_checkpoint_and_go_along_to_the_other_mode(tmp_path: Path) -> None:
    assert opened(tmp_path).topic_ids == {}, "of a new checkpoint, as of one of an earlier version"
    opened(tmp_path).record_topics(IDS)
    opened(tmp_path).record_topics({SOURCE.path: ""})
    assert opened(tmp_path).topic_ids == IDS
    JournalWriter(tmp_path / "journal").close()
    topics = Topics(tmp_path, read_manifest(tmp_path))
    topics.keep({SOURCE.path: {0: 7}})
    port = topics.ports[SOURCE.path]
    past = SourceProgress(tmp_path / "journal", (), (), [port])
    assert (past.points[port], past.topics[port]) == ({0: 7}, "one")


def test_a_topic_that_is_created_again_is_noticed_over_outages() -> None:
    away = RunError.of("R672", what="source", brokers="b:1", reason="no answer")
    watch = watched(iter(["one", away, "", "one", "other"]), IDS)
    with pytest.raises(RunError, match="R738 .* its id was one and is other; "):
        watch.check()


@given(outages=st.lists(st.integers(0, 4), max_size=6), is_realtime=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
def test_each_outage_of_micro_batches_is_reported_once(outages: list[int], is_realtime: bool) -> None:
    """One look that fails is none. In real-time mode the gateway reports outages."""
    away = RunError.of("R672", what="source", brokers="b:1", reason="no answer")
    answers = [answer for looks in outages for answer in [*[away] * looks, "one"]]
    watch = watched(iter([*answers, "other"]), IDS, is_realtime=is_realtime)
    findings = watch.new_findings()
    assert len(findings) == (0 if is_realtime else sum(looks >= topic_watch.AWAY_LOOKS for looks in outages))
    assert all(f'source "{SOURCE.name}": Kafka at' in finding.message for finding in findings)
    assert all("; no answer; reading goes on by itself" in finding.message for finding in findings)
    assert watch.new_findings() == []
    assert watch.outages == {}, "the last answer has ended the last outage"


FINDINGS = {name: Diagnostic.of("R801", source=name, path=f"/{name}") for name in "ab"}


@given(st.lists(st.sets(st.sampled_from("ab")), min_size=1, max_size=6), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_files_that_are_gone_are_reported_once_until_they_are_back(looks: list[set[str]], kafka: bool) -> None:
    answers = ({name: FINDINGS[name] for name in sorted(look)} for look in looks)  # their end ends the thread
    watch = TopicWatch([SOURCE], IDS if kafka else {}, lambda source: "one", lambda: next(answers), is_realtime=False)
    watch.start()
    watch._thread.join(60)
    expected = [name for before, now in itertools.pairwise(looks) for name in sorted(now - before)]
    assert [finding.message for finding in watch.new_findings()] == [FINDINGS[name].message for name in expected]
    assert set(watch.outages) == looks[-1]


@given(looks=st.integers(0, 5), is_realtime=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=12)
def test_an_outage_lasts_until_brokers_answer(looks: int, is_realtime: bool) -> None:
    away = RunError.of("R672", what="source", brokers="b:1", reason="no answer")
    watch = watched(iter(["one", *[away] * looks]), IDS, is_realtime=is_realtime)  # the end of the answers ends it
    is_away = looks >= topic_watch.AWAY_LOOKS and not is_realtime
    assert list(watch.outages) == [SOURCE.path] * is_away
    assert list(watch.outages.values()) == watch.new_findings()


@pytest.mark.parametrize("is_realtime", [False, True])
def test_a_topic_that_stays_away_ends_a_run_of_micro_batches(is_realtime: bool) -> None:
    gone = RunError.of("R673", topic="clicks", brokers="b:1", reason="it does not exist")
    watch = watched(iter(["one", gone, "one", gone, gone, "other"]), IDS, is_realtime=is_realtime)
    with pytest.raises(RunError, match="^R738" if is_realtime else "^R673"):
        watch.check()
    assert watch.new_findings() == []


def test_what_ends_the_looking_ends_the_run() -> None:
    def ask(source: KafkaSource) -> str:
        raise NotImplementedError

    watch = TopicWatch([SOURCE], IDS, ask, is_realtime=True)
    watch.start()
    watch._thread.join(60)
    with pytest.raises(NotImplementedError):
        watch.check()


def test_brokers_without_ids_are_not_asked() -> None:
    watch = TopicWatch([SOURCE], {SOURCE.path: ""}, lambda source: "", is_realtime=True)
    watch.start()
    assert not watch._thread.is_alive()
    watch.check()
    watch.close()


def test_micro_batches_do_not_take_the_remedy_of_real_time_mode(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "app.py", "--topic-reset", "end"]) == 2
    assert "--topic-reset end is for --mode realtime" in capsys.readouterr().err


class Drawn:
    """Brokers whose topic has drawn partitions: first offset and end of each."""

    def __init__(self, ranges: dict[int, tuple[int, int]]) -> None:
        self._ranges = ranges

    def partitions(self, topic: str) -> list[int]:
        return sorted(self._ranges)

    def offsets(self, topic: str, partitions: Iterable[int], kind: int) -> dict[int, int]:
        return {number: self._ranges[number][0 if kind == EARLIEST else 1] for number in partitions}


RANGE = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda pair: (min(pair), max(pair)))


@given(st.dictionaries(st.integers(0, 3), RANGE), st.dictionaries(st.integers(0, 3), st.integers(0, 9)))
def test_what_a_topic_has_lost_is_counted(ranges: dict[int, tuple[int, int]], position: dict[int, int]) -> None:
    found = {finding.message for finding in lost_records(Drawn(ranges), "in", "t", position)}
    for number, offset in position.items():
        head = f'source "in": unread records of topic t are gone, in partition {number} from offset {offset} on; '
        first, end = ranges.get(number, (0, -1))
        said = next((text.removeprefix(head) for text in found if text.startswith(head)), "")
        if number not in ranges:
            assert said == "the topic has no such partition now"
        elif offset < first:
            assert said == f"{first - offset} records are gone, and the first one is now {first}"
        else:
            assert said.startswith(f"the partition ends at {end} now") == (offset > end)
    assert len(found) == sum(
        not (number in ranges and ranges[number][0] <= offset <= ranges[number][1])
        for number, offset in position.items()
    )


OFFSETS = st.dictionaries(st.integers(0, 3), st.integers(0, 9))


@given(OFFSETS, OFFSETS, st.integers(0, 3), st.booleans(), st.booleans())
def test_the_next_micro_batch_ends_where_a_topic_begins(
    past: dict[int, int], begins: dict[int, int], last: int, is_planned: bool, has_other: bool
) -> None:
    with TemporaryDirectory() as place:
        for folder in ("offsets", "commits"):
            Path(place, folder).mkdir()
        others = ['{"journal":"0f","offset":9,"sequence":3}', "-", '{"u":{"0":5}}'] if has_other else []
        lines = ["v1", '{"batchWatermarkMs":0}', *others, json.dumps({"t": past})]
        for batch in range(last + 1):
            Path(place, "offsets", str(batch)).write_text("\n".join(lines))
            if batch < last or not is_planned:
                Path(place, "commits", str(batch)).write_text("v1\n{}")
        plan_elsewhere(LocalDirectory(Path(place)), {"t": begins})
        batch = last if is_planned else last + 1
        assert sorted(int(path.name) for path in Path(place, "offsets").iterdir()) == list(range(batch + 1))
        *same, line = Path(place, "offsets", str(batch)).read_text().split("\n")
        assert same == lines[:-1]
        assert json.loads(line) == {"t": {str(at): begins[at] for at in past if at in begins}}
