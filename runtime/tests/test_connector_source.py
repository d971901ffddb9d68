"""Connector sources of the gateway as a process: the protocol, what goes wrong in it, kills and restarts."""

import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from connector.gateway import CREDITS, DEADLINE_S, MOST, REFILL, Gateway, Peer
from wallaroo import experimental
from wallaroo.experimental import protocol
from wallaroo_runtime.gateway.source_progress import NAME
from wallaroo_runtime.storage.journal.reader import JournalReader

pytestmark = pytest.mark.slow


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    process = Gateway(tmp_path)
    yield process.start()
    process.end()


@pytest.fixture
def connect(gateway: Gateway) -> Iterator[Callable[[], Peer]]:
    peers: list[Peer] = []

    def make() -> Peer:
        peers.append(Peer(gateway))
        return peers[-1]

    yield make
    for peer in peers:
        peer.socket.close()


def opened(peer: Peer, stream: int = 1, instance: str = "one") -> Peer:
    assert peer.hello(instance).credits == CREDITS
    assert peer.notify(stream).is_accepted
    return peer


def test_messages_keep_key_and_time_and_are_acknowledged_only_when_processed(
    gateway: Gateway, connect: Callable[[], Peer]
) -> None:
    before_ms = time.time_ns() // 1_000_000
    peer = opened(connect())
    peer.write(5, 9, key=b"k", time_ns=1_700_000_000_123_456_789)
    peer.write(12)
    gateway.wait(lambda: len(gateway.payloads()) == 3, "three messages")
    *timed, (key, payload, arrived) = gateway.messages()
    assert timed == [(b"k", b"5", 1_700_000_000_123), (b"k", b"9", 1_700_000_000_123)]
    assert (key, payload) == (b"", b"12")
    assert before_ms <= arrived <= time.time_ns() // 1_000_000
    gateway.wait(lambda: gateway.status()["waits"], "the gateway to say that a connector waits")
    peer.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        peer.read()
    peer.socket.settimeout(DEADLINE_S)
    gateway.commit()
    assert peer.read() == protocol.ReceivedFrame(protocol.ACK, positions=((1, 12),))
    gateway.wait(lambda: not gateway.status()["waits"], "the gateway to wait no more")


def test_credits_are_filled_up_when_few_are_left_and_none_may_be_overdrawn(
    gateway: Gateway, connect: Callable[[], Peer]
) -> None:
    peer = opened(connect())
    peer.write(*range(1, CREDITS - REFILL + 2))
    assert peer.read() == protocol.ReceivedFrame(protocol.ACK, credits=CREDITS - REFILL + 1)
    peer.write(*range(100, 100 + CREDITS), 200)  # one block, and so one look at the credits
    refused = peer.read()
    assert refused.tag == protocol.ERROR
    assert "a message without a credit" in refused.error
    gateway.wait(lambda: len(gateway.payloads()) == 2 * CREDITS - REFILL + 1, "what had credits")


def test_duplicates_are_dropped_and_counted(gateway: Gateway, connect: Callable[[], Peer]) -> None:
    first = opened(connect())
    first.write(1, 2)
    gateway.wait(lambda: len(gateway.payloads()) == 2, "two messages")
    first.socket.close()
    second = connect()
    assert second.hello("two").tag == protocol.OK
    gateway.wait(lambda: gateway.status()["connectors"][0]["open"] == 0, "the stream to be free")
    answer = second.notify()
    assert (answer.is_accepted, answer.positions) == (True, ((1, 2),))
    second.write(1, 2, 3)
    gateway.wait(lambda: gateway.payloads() == [b"1", b"2", b"3"], "the third message")
    gateway.wait(lambda: gateway.status()["connectors"][0]["duplicates"] == 2, "the duplicates to be told")
    gateway.commit()
    points = dict(second.read().positions)
    if points == {1: 2}:  # what the first one has sent is reported by itself
        points = dict(second.read().positions)
    assert points == {1: 3}
    (status,) = gateway.status()["connectors"]
    assert status == {"name": "feed", "port": status["port"], "connected": 1, "streams": 1, "open": 1, "duplicates": 2}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_points_of_reference_survive_the_gateway(
    gateway: Gateway, connect: Callable[[], Peer], number: signal.Signals
) -> None:
    peer = opened(connect())
    assert peer.notify(2).is_accepted
    peer.write(7, 8)
    peer.write(70, stream=2)
    gateway.wait(lambda: len(gateway.payloads()) == 3, "three messages")
    gateway.end(number)
    if number == signal.SIGTERM:
        assert peer.read().tag == protocol.RESTART
    assert peer.is_closed()
    gateway.start()
    again = connect()
    assert again.hello().credits == CREDITS
    assert again.notify(1).positions == ((1, 8),)
    assert again.notify(2).positions == ((2, 70),)
    assert again.notify(3, point=40).positions == ((3, 40),)
    gateway.commit()
    assert dict(again.read().positions) == {1: 8, 2: 70}


def test_points_of_reference_outlive_the_segments_of_the_journal(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, segment_bytes=500).start()
    try:
        peer = opened(Peer(gateway))
        for number in range(1, 21):
            peer.write(number)
            gateway.wait(lambda most=number: JournalReader(tmp_path / "journal").end().messages == most, "it")
            gateway.commit()
            while peer.read().positions != ((1, number),):
                pass
        gateway.wait((tmp_path / "journal" / NAME).exists, "a segment to be removed")
        peer.socket.close()
        gateway.end()
        gateway.start()
        again = Peer(gateway)
        again.hello()
        assert again.notify().positions == ((1, 20),)
        again.socket.close()
    finally:
        gateway.end()


def test_a_stream_has_one_owner_and_a_connector_that_comes_again_takes_over(
    gateway: Gateway, connect: Callable[[], Peer]
) -> None:
    owner = opened(connect())
    other = connect()
    other.hello("two")
    answer = other.notify()
    assert (answer.tag, answer.is_accepted) == (protocol.NOTIFY_ACK, False)
    gateway.wait_for_finding("stream 1 was refused; connector 127.0.0.1:")
    assert gateway.findings()[0].startswith('R676 source "feed", connector 127.0.0.1:')
    again = connect()
    again.hello("one")
    assert again.notify().is_accepted
    assert "another connection of connector 'program one' took over" in owner.read().error
    again.write(1)
    gateway.wait(lambda: gateway.payloads() == [b"1"], "its message")
    again.send(protocol.end_of_stream(1))
    gateway.wait(lambda: gateway.status()["connectors"][0]["open"] == 0, "the end of the stream")
    assert other.notify().positions == ((1, 1),)


def test_a_wrong_greeting_is_refused(gateway: Gateway, connect: Callable[[], Peer]) -> None:
    version = "it speaks version '0.0.2' of the protocol, the gateway '0.0.1'"
    cookie = "its cookie is not that of the source"
    for greeting, reason in ((("one", "word", "0.0.1"), cookie), (("one", "wörd", "0.0.2"), version)):
        peer = connect()
        answer = peer.hello(*greeting)
        place = f'source "feed", connector 127.0.0.1:{peer.socket.getsockname()[1]}'
        assert (answer.tag, answer.error) == (protocol.ERROR, f"R676 {place}: refused; {reason}")
        gateway.wait_for_finding(answer.error)
        peer.send(protocol.hello("0.0.1", "wörd", "program", "one"))
        peer.socket.shutdown(socket.SHUT_WR)
        assert peer.is_closed()


GARBAGE = [
    (b"GET / HTTP/1.1\r\n\r\n", "a header announces 1195725856 bytes"),
    (b"\0\0\0\0", "a frame is empty"),
    (b"\0\0\0\x01\x63", "no connector sends a frame of tag 99"),
    (protocol.framed(protocol.OK, b"\0\0\0\1"), "no connector sends a frame of tag 1"),
    (protocol.framed(protocol.HELLO, b"\0\x09abc"), "a frame of tag 0 is damaged: 9 bytes were expected, 3 are left"),
    (protocol.framed(protocol.HELLO, b"\0\x01\xff" * 4), "a frame of tag 0 is damaged: 'utf-8' codec"),
    (protocol.framed(protocol.NOTIFY, b"\0" * 18 + b"x"), "1 bytes are left after a frame of tag 3"),
    (protocol.framed(protocol.NOTIFY, b"\0" * 5), "8 bytes were expected, 5 are left"),
    (protocol.framed(protocol.NOTIFY, b"\0" * 70_000), "a frame of tag 3 has 70000 bytes; at most 65536"),
    (
        protocol.framed(protocol.MESSAGE, struct.pack(">QQqH", 1, 1, 0, 300) + b"k"),
        "a frame of tag 5 is damaged: 300 bytes were expected, 1 are left",
    ),
    (protocol.message(9, 1, 0, b"", b""), "a message of stream 9, which is not open"),
    (protocol.message(1, 0, 0, b"", b""), "a message of stream 1 with id 0; they begin at 1"),
    (protocol.message(1, 1, 0, b"", bytes(MOST + 1)), "a header announces 200001 bytes"),
    (b"\xff\xff\xff\xff\x05", "a header announces 4294967295 bytes"),
    (protocol.end_of_stream(2), "the end of stream 2, which is not open"),
    (protocol.hello("0.0.1", "wörd", "p", "i"), "a second HELLO"),
]
UNGREETED = [
    (protocol.notify(1, "a", 0), "it did not begin with HELLO"),
    (protocol.message(1, 1, 0, b"", b""), "a message of stream 1, which is not open"),
    (struct.pack(">I", MOST) + b"\5", f"it begins with a frame of {MOST + 4} bytes"),
]


def test_garbage_is_refused_with_a_reason_and_harms_nobody(gateway: Gateway, connect: Callable[[], Peer]) -> None:
    innocent, credits = opened(connect(), 2, "innocent"), CREDITS
    for number, (data, text) in enumerate(GARBAGE, 1):
        guilty = opened(connect())
        guilty.write(number)
        refused(guilty, data, text)
        innocent.write(number, stream=2)
        credits -= 1
        if credits < REFILL:
            credits += innocent.read().credits
    for data, text in UNGREETED:
        refused(connect(), data, text)
    expected = sorted(2 * [b"%d" % number for number in range(1, len(GARBAGE) + 1)])
    gateway.wait(lambda: sorted(gateway.payloads()) == expected, "the messages of both")
    gateway.wait(lambda: len(gateway.findings()) == len(GARBAGE + UNGREETED), "all findings")
    for (_, text), finding in zip(GARBAGE + UNGREETED, gateway.findings(), strict=True):
        assert finding.startswith(("R676 source", "R606 source"))
        assert text in finding


def refused(peer: Peer, data: bytes, text: str) -> None:
    peer.send(data)
    answer = peer.read()
    assert answer.tag == protocol.ERROR
    assert text in answer.error
    peer.socket.shutdown(socket.SHUT_WR)
    assert peer.is_closed()


def test_half_a_frame_waits_for_its_rest_and_is_told_when_none_comes(
    gateway: Gateway, connect: Callable[[], Peer]
) -> None:
    peer = opened(connect())
    data = protocol.message(1, 1, 0, b"", b"x" * MOST)
    peer.send(data[:3])
    peer.send(data[3:100_000])
    peer.send(data[100_000:] + data[:50])
    gateway.wait(lambda: gateway.payloads() == [b"x" * MOST], "the whole message")
    peer.socket.close()
    gateway.wait_for_finding(f"only 50 bytes of a message of {len(data)} bytes arrived; the sender closed")


def test_who_says_no_hello_is_closed(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, hello_s=0.5).start()
    try:
        silent, talking = Peer(gateway), opened(Peer(gateway))
        silent.send(protocol.hello("0.0.1", "wörd", "program", "two")[:-1])
        refused = silent.read()
        assert refused.error.startswith("R676 ")
        silent.socket.shutdown(socket.SHUT_WR)
        assert silent.is_closed()
        (finding,) = gateway.findings()
        assert finding.startswith('R676 source "feed", connector 127.0.0.1:')
        assert finding.endswith("refused; no HELLO within 0.5 s")
        talking.write(1)
        gateway.wait(lambda: gateway.payloads() == [b"1"], "the message of the other one")
        for peer in (silent, talking):
            peer.socket.close()
    finally:
        gateway.end()


def test_a_connector_that_does_not_listen_is_closed(gateway: Gateway, connect: Callable[[], Peer]) -> None:
    peer = opened(connect())
    notify = protocol.notify(1, "a", 0) * 1000
    with pytest.raises(OSError, match="reset|pipe|timed out"):
        while True:
            peer.send(notify)
    gateway.wait_for_finding("it does not read what is sent to it")


def test_the_client_of_the_sdk_over_kills_of_the_gateway(gateway: Gateway, tmp_path: Path) -> None:
    payloads = [b"message %d" % number for number in range(400)]
    sources = []
    for name in ("a", "b"):
        path = tmp_path / name
        path.write_bytes(b"".join(struct.pack(">I", len(each) + 1) + name.encode() + each for each in payloads))
        sources.append(experimental.FramedFileReader(str(path)))
    connector = experimental.MultiSourceConnector(
        "0.0.1", "wörd", "program", "one", "127.0.0.1", gateway.tcp_port, delay=0.002
    )
    for source in sources:
        connector.add_source(source)
    connector.start()
    for share in (150, 400):
        gateway.wait(lambda least=share: len(gateway.payloads()) > least, f"{share} messages")
        gateway.end()
        gateway.start()
    gateway.wait(lambda: len(gateway.payloads()) == 800, "all messages")
    gateway.commit()
    connector.wait_until_finished(DEADLINE_S)
    found = gateway.payloads()
    assert [each[1:] for each in found if each[:1] == b"a"] == payloads
    assert [each[1:] for each in found if each[:1] == b"b"] == payloads
    for source in sources:
        source.close()
