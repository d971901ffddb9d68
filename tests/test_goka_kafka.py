"""Emitters and views against a real broker, and click counts end to end, in Python and Go."""

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaException

from support.case import Case
from support.kafka import Broker
from support.kafka_application import Application, application
from support.run import READY, wait_until, wallaroo
from wallaroo import goka
from wallaroo.goka.lookup import Lookups

pytestmark = pytest.mark.kafka
__all__ = ["application"]  # the fixture
WAIT_S = 400.0
CASE = Case("goka_clicks")
CLICKS, PURCHASES, REPORTS, LATELY = "user-clicks", "purchases", "reports", goka.group_table("lately")
Make = Callable[..., Application]


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"topic-{uuid.uuid4().hex}"
    broker.create(name, 8)
    return name


def emitted(broker: Broker, topic: str, pairs: dict[str, Any], **options: Any) -> list["Future[goka.Delivered]"]:
    with goka.Emitter([broker.address], topic, goka.Int64(), **options) as emitter:
        return [emitter.emit(key, value) for key, value in pairs.items()]


@pytest.mark.parametrize("partitioner", ["fnv1a", "murmur2"])
def test_an_emitter_puts_keys_where_views_look(broker: Broker, topic: str, partitioner: str) -> None:
    pairs = {f"user-{number}": number for number in range(100)} | {"": 5, "né": 7, "\udcff": 9}
    promises = emitted(broker, topic, pairs, partitioner=partitioner)
    for key, promise in zip(pairs, promises, strict=True):
        assert promise.result(0).partition == goka.partition_of(key, 8, partitioner)
    with goka.View([broker.address], topic, goka.Int64(), partitioner=partitioner) as view:
        view.wait_running(WAIT_S)
        assert {key: view.get(key) for key in pairs} == pairs
        assert dict(view.iterate()) == pairs and list(view.iterate()) == sorted(view.iterate())
        assert [key for key, _ in view.iterate("user-1", "user-12")] == ["user-1", "user-10", "user-11"]
        assert len(list(view.iterate("user-9"))) == 11
        view.evict("user-9")
        assert not view.has("user-9") and view.has("user-90") and view.get("user-9") is None


def test_a_view_follows_its_table(broker: Broker, topic: str) -> None:
    seen: list[goka.ViewState] = []
    view = goka.View([broker.address], topic, goka.Int64())
    stop = view.observe(seen.append)
    with pytest.raises(goka.ViewError, match="View is either not running, not correctly initialized or stopped"):
        view.get("a")
    emitted(broker, topic, {"a": 1, "b": 2})
    with view:
        view.wait_running(WAIT_S)
        assert view.recovered and (view.get("a"), view.get("b")) == (1, 2)
        emitted(broker, topic, {"a": 3, "b": None})
        wait_until(lambda: view.get("a") == 3 and not view.has("b"), lambda: "the update", WAIT_S)
    stop()
    order = [state for at, state in enumerate(seen) if state not in seen[:at]]
    assert order[:2] == [goka.ViewState.INITIALIZING, goka.ViewState.CONNECTING]
    assert order[-2:] == [goka.ViewState.RUNNING, goka.ViewState.IDLE] and view.state == goka.ViewState.IDLE
    with pytest.raises(goka.ViewError):
        view.get("a")


def test_a_view_s_callback_decides_what_is_kept(broker: Broker, topic: str) -> None:
    def update(at: goka.Update, storage: goka.Storage, key: str, value: bytes | None) -> None:
        assert at.topic == topic and at.timestamp is not None and at.headers == {"h": b"1"}
        storage.set(key, b"%d" % (int(storage.get(key) or b"0") + int(value or b"-100")))

    with goka.Emitter([broker.address], topic, goka.Int64(), default_headers={"h": b"1"}) as emitter:
        for number in (5, 6, None):
            emitter.emit_sync("a", number)
    with goka.View([broker.address], topic, goka.Int64(), callback=update) as view:
        view.wait_running(WAIT_S)
        assert view.get("a") == -89


def test_a_value_that_the_codec_cannot_read_is_the_reader_s(broker: Broker, topic: str) -> None:
    with goka.Emitter([broker.address], topic, goka.String()) as emitter:
        emitter.emit("a", "x")
    with goka.View([broker.address], topic, goka.Int64()) as view:
        view.wait_running(WAIT_S)
        with pytest.raises(goka.ViewError, match=r"error decoding value \(key a\): Error parsing data"):
            view.get("a")


@pytest.mark.parametrize("partitioner", ["fnv1a", "murmur2"])
def test_a_lookup_has_the_whole_table_and_follows_it(broker: Broker, topic: str, partitioner: str) -> None:
    pairs = {f"user-{number}": number for number in range(20)}
    emitted(broker, topic, pairs, partitioner=partitioner)
    lookups = Lookups([broker.address], [topic], partitioner, {})
    assert {key: lookups.get(topic, key) for key in pairs} == {key: b"%d" % number for key, number in pairs.items()}
    emitted(broker, topic, {"user-1": None}, partitioner=partitioner)
    wait_until(lambda: lookups.get(topic, "user-1") is None, lambda: "the update", WAIT_S)
    with pytest.raises(goka.ViewError, match="topic nowhere: requested topic was not found"):
        Lookups([broker.address], ["nowhere"], partitioner, {}).start()


def test_a_view_of_a_topic_that_does_not_exist(broker: Broker) -> None:
    view = goka.View([broker.address], "nowhere", goka.Int64())
    text = "Error getting partitions for topic nowhere: requested topic was not found"
    with pytest.raises(goka.ViewError, match=text):
        view.run()
    with view, pytest.raises(goka.ViewError, match=text):
        view.wait_running(WAIT_S)


def test_an_emitter_that_has_finished(broker: Broker, topic: str) -> None:
    emitter = goka.Emitter([broker.address], topic, goka.Int64())
    emitter.finish()
    emitter.finish()
    promise = emitter.emit("a", 1)
    assert isinstance(promise.exception(0), goka.EmitterClosedError)
    with pytest.raises(goka.EmitterClosedError, match="emitter already closed"):
        emitter.emit_sync("a", 1)


def test_an_emitter_reports_what_kafka_refuses(broker: Broker, topic: str) -> None:
    with goka.Emitter([broker.address], topic, goka.String(), options={"message.max.bytes": 10_000_000}) as emitter:
        with pytest.raises(KafkaException):
            emitter.emit_sync("a", "x" * 5_000_000)
        assert emitter.emit_sync("a", "x").offset == 0


@pytest.fixture
def topics(broker: Broker) -> Iterator[None]:
    for name, partitions in ((CLICKS, 3), (PURCHASES, 2), (REPORTS, 1)):
        broker.create(name, partitions)
    yield
    broker.delete(CLICKS, PURCHASES, REPORTS, goka.group_table("click-counts"), LATELY)


def ended(update: goka.Update, storage: goka.Storage, key: str, value: bytes | None) -> None:
    """Keep 0 for each key whose record without a value came after one with a value."""
    if value or storage.has(key):
        storage.set(key, value or b"0")


@pytest.mark.jvm
@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("language", ["python", pytest.param("go", marks=pytest.mark.long)])
def test_click_counts_end_to_end(language: str, broker: Broker, application: Make) -> None:  # noqa: F811
    users = [f"user-{number % 7}" for number in range(60)]
    counts = Counter(users)
    table = goka.group_table("click-counts")
    app = application(CASE.app(language), broker.address)
    app.start()
    wait_until(lambda: READY in app.output(), app.output, WAIT_S)
    with goka.Emitter([broker.address], CLICKS, goka.String()) as emitter:
        for user in users:
            emitter.emit(user, "clicked")
    with goka.View([broker.address], table, goka.Int64()) as view:
        view.wait_running(WAIT_S)
        wait_until(lambda: dict(view.iterate()) == counts, lambda: f"{dict(view.iterate())} in\n{app.output()}", WAIT_S)
        reports = goka.View([broker.address], REPORTS, goka.String())
        with goka.Emitter([broker.address], PURCHASES, goka.String()) as emitter, reports:
            reports.wait_running(WAIT_S)
            expected = {user: f"a hat after {number} clicks" for user, number in counts.items()}

            def buy() -> bool:
                for user in counts:
                    emitter.emit_sync(user, "a hat")
                return dict(reports.iterate()) == expected

            # A join follows its table on its own: a purchase may be read before the last counts.
            wait_until(buy, lambda: f"{dict(reports.iterate())} in\n{app.output()}", WAIT_S, every=2.0)
    with goka.View([broker.address], LATELY, goka.Int64(), callback=ended) as lately:
        lately.wait_running(WAIT_S)
        wait_until(lambda: dict(lately.iterate()) == dict.fromkeys(counts, 0), app.output, WAIT_S)
    status = json.loads(wallaroo("status", app.directory / "checkpoint", "--json").stdout)
    assert sum(part["expired"] for part in status["parts"]) >= len(counts)
    assert app.end() == 0, app.output()
    assert "Traceback" not in app.output()
