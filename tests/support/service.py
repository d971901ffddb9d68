"""Gateway and egress as services, in the process of a test."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from support.run import wait_until
from wallaroo_runtime.egress.service import EgressHost
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.service import GatewayHost
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.attachment import PROTOCOL_VERSION
from wallaroo_runtime.service.client import ServiceClient, _channels
from wallaroo_runtime.service.credential import Listen
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.service.server import serve

TOKEN = "a-token-of-thirty-two-characters"
SINK = 7


def code_of(call: Callable[[], Any]) -> str:
    """Return the code of the error that a call ends with."""
    with pytest.raises(RunError) as caught:
        call()
    return str(caught.value.diagnostics[0].code)


def certified(folder: Path) -> tuple[Path, Path]:
    """Make a certificate of 127.0.0.1 that its own key signs; returns it and the key."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-subj", "/CN=s", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key


@dataclass
class Place:
    """A service in this process, and how to reach it."""

    service: Service
    host: Any
    server: grpc.Server

    def attach(
        self,
        driver: str = "d1",
        checkpoint: str = "c1",
        *,
        store: str = "",
        fresh: bool = False,
        tick_ms: int = 0,
        tcp_port: int = 0,
    ) -> Service:
        """Attach as a driver."""
        who = pb.Driver(
            protocol_version=PROTOCOL_VERSION,
            id=driver,
            application="app",
            checkpoint=checkpoint,
            store=store,
            fresh=fresh,
        )
        if self.service.kind == "gateway":
            source = pb.Source(
                port=1, path="0/sources/0", name="in", host="127.0.0.1", framing="u32be", max_message_bytes=1 << 24,
                tcp_port=tcp_port,
            )  # fmt: skip
            request: Any = pb.AttachJournalRequest(
                driver=who,
                sources=[source],
                fsync="interval",
                fsync_interval_ms=5,
                backlog_bytes=1 << 30,
                tick_ms=tick_ms,
            )
        else:
            sink = pb.Sink(port=SINK, name="out", host="127.0.0.1", tcp_port=1)
            request = pb.AttachOutboxRequest(driver=who, sinks=[sink])
        reply = ServiceClient(self.service, 1.0).call("Attach", request)
        return self.service.attached(reply.epoch, reply.store)


@contextmanager
def serving(kind: str, directory: Path, address: str = "127.0.0.1:0", **options: bytes) -> Iterator[Place]:
    """Run a service until the block ends."""
    host: Any = GatewayHost(directory, address) if kind == "gateway" else EgressHost(directory, address)
    try:
        server, real = serve(kind, Listen(address, TOKEN, **options), host.answer)
        try:
            yield Place(Service(kind, real, TOKEN), host, server)
        finally:
            server.stop(None).wait()
    finally:
        host.close()
        os.close(host.lock_file)
        close_channels()


def listening(place: Place) -> Place:
    """Return a gateway with a driver, as it is when it listens."""
    place.service = place.attach()
    wait_until_listening(place)
    return place


def wait_until_listening(place: Place) -> None:
    """Wait until the gateway's status says so."""
    wait_until(lambda: json.loads(place.host.status()).get("state") == "listening", lambda: "the gateway to listen")


def close_channels() -> None:
    """Close all channels of this process to services."""
    while _channels:
        _channels.popitem()[1].close()
