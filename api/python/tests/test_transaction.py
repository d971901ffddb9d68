"""What is said of transactions between an application and a connector sink."""

import socket
import threading
from collections.abc import Sequence
from contextlib import nullcontext

import pytest

import wallaroo
from wallaroo import experimental
from wallaroo.emit.topology import topology
from wallaroo.experimental import protocol, transaction
from wallaroo.experimental.transaction import Order
from wallaroo.experimental.transactional import _Session

ORDERS = [
    (Order(transaction.LIST_UNCOMMITTED, number=7), "c9 0000000000000007"),
    (Order(transaction.REPLY_UNCOMMITTED, ("a", "é"), number=7), "ca 0000000000000007 00000002 0001 61 0002 c3a9"),
    (
        Order(transaction.PHASE_1, ("t",), ((1, 2, 3),)),
        "cb 0001 74 00000001 0000000000000001 0000000000000002 0000000000000003",
    ),
    (Order(transaction.REPLY, ("t",), is_commit=True), "cc 0001 74 01"),
    (Order(transaction.PHASE_2, ("t",)), "cd 0001 74 00"),
]


@pytest.mark.parametrize(("order", "data"), ORDERS)
def test_orders_of_transactions(order: Order, data: str) -> None:
    (frame,) = protocol.cut(bytearray(transaction.framed(order)))
    assert (frame.tag, frame.positions) == (protocol.MESSAGE, ((0, 0),))
    assert frame.payload == bytes.fromhex(data)
    assert transaction.read(frame.payload) == order


@pytest.mark.parametrize("data", ["", "c9 00", "ca 0000000000000007 00000001 0002 61", "c8 0001 74", "cd 0001 74"])
def test_what_is_no_order(data: str) -> None:
    with pytest.raises(protocol.ProtocolError, match="a message of stream 0"):
        transaction.read(bytes.fromhex(data))


@experimental.octet_message_encoder
def encode(data: bytes) -> bytes:
    return data


@experimental.octet_message_decoder
def decode(bs: bytes) -> bytes:
    return bs


def test_a_sink_config_with_a_cookie_speaks_the_protocol() -> None:
    source = experimental.SourceConnectorConfig("feed", encode, decode, 7100, cookie="word")
    sink = experimental.SinkConnectorConfig("out", encode, decode, 7200, cookie="word")
    app = wallaroo.build_application("app", wallaroo.source("line", source).to_sink(sink))
    found = topology(app, "/nowhere", "app.py", [])["pipelines"][0]["sinks"][0]
    assert {name: found[name] for name in ("name", "kind", "host", "port", "cookie")} == {
        "name": "out", "kind": "connector", "host": "127.0.0.1", "port": 7200, "cookie": "word"
    }  # fmt: skip


class Full(experimental.TransactionalTarget):
    """A target without room on its disk."""

    def committed(self, sender: str) -> int:
        raise OSError(28, "No space left on device")

    def prepared(self, sender: str) -> dict[str, int]:
        return {}

    def prepare(self, sender: str, name: str, end: int, messages: Sequence[bytes]) -> bool:
        return False

    def commit(self, sender: str, name: str) -> None:
        pass

    def abort(self, sender: str, name: str) -> None:
        pass


def test_an_error_of_the_target_is_no_lost_connection() -> None:
    hello = protocol.hello(protocol.PROTOCOL_VERSION, "word", "app", "one")
    for sent, error in ((hello, None), (hello + protocol.notify(transaction.OUTPUT, "out", 0), OSError)):
        ours, theirs = socket.socketpair()
        with ours:
            ours.sendall(sent)
            ours.shutdown(socket.SHUT_WR)
            with theirs, pytest.raises(error, match="No space left") if error else nullcontext():
                _Session(theirs, "word", Full()).run(threading.Event())
