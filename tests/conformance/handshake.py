"""Start, emit, health and Init."""

import json
import os
import stat

from conformance.application import TOPOLOGY, interface_hash
from conformance.check import Context, check
from conformance.process import START_S, Worker


def emitted(command: str, args: list[str] | None = None) -> dict[str, object]:
    """Run the program in mode emit and return what it wrote."""
    with Worker(command, "emit", args) as worker:
        assert worker.end(START_S) == 0, worker.said()
        result: dict[str, object] = json.loads((worker.directory / "emitted.json").read_text(encoding="utf-8"))
        return result


@check("emit: the topology is the one that every language emits")
def emit(context: Context) -> None:
    topology = emitted(context.command)["topology"]
    assert isinstance(topology, dict)
    workers = topology.pop("workers")
    assert topology == TOPOLOGY, "the topology differs from topology.json"
    assert [worker["interface_hash"] for worker in workers] == [interface_hash()]
    assert workers[0]["name"] == "main"
    assert workers[0]["protocol_version"] == 1


@check("emit: a setup that fails gives a diagnostic with code, message and fix")
def emit_failure(context: Context) -> None:
    found = emitted(context.command, ["--fail"])["diagnostics"]
    assert isinstance(found, list)
    assert [finding["code"] for finding in found] == ["T217"], found
    assert "the setup was asked to fail" in found[0]["message"] + found[0].get("traceback", "")
    assert found[0]["fix"]


@check("worker: a setup that fails leaves failure.json and status 3")
def start_failure(context: Context) -> None:
    with Worker(context.command, args=["--fail"]) as worker:
        assert worker.end(START_S) == 3, worker.said()
        found = json.loads((worker.directory / "failure.json").read_text(encoding="utf-8"))
        assert [finding["code"] for finding in found["diagnostics"]] == ["T217"], found
        assert not worker.socket.exists()


@check("by hand: W412 and status 2")
def by_hand(context: Context) -> None:
    with Worker(context.command, mode="") as worker:
        assert worker.end(START_S) == 2, worker.said()
        worker.err.join(timeout=5)
        assert b"W412" in worker.err.tail + worker.out.tail, worker.said()


@check("health: SERVING as soon as worker.sock is there, and nobody else may connect")
def health(context: Context) -> None:
    assert context.worker.serving()
    assert isinstance(context.worker, Worker)
    assert all(context.worker.serving(target) for target in context.worker.endpoints), "an endpoint does not serve"
    mode = stat.S_IMODE(os.stat(context.worker.directory).st_mode)
    assert mode == 0o700, f"the directory has mode {mode:o}"


@check("init: versions, language, hash, endpoints")
def init(context: Context) -> None:
    reply = context.worker.init()
    assert 1 <= reply.protocol_min <= reply.protocol_max
    assert reply.protocol_min == 1, "this driver speaks version 1"
    assert reply.language
    assert reply.interface_hash == interface_hash(), "the interface hash differs from the specification's"
    assert reply.endpoints, "no endpoints"
    assert all(target.startswith("unix:") for target in reply.endpoints), reply.endpoints


@check("init: every endpoint answers the same")
def init_endpoints(context: Context) -> None:
    replies = [context.worker.init(target) for target in context.worker.endpoints]
    assert len({tuple(reply.endpoints) for reply in replies}) == 1
    assert len({(reply.language, reply.interface_hash) for reply in replies}) == 1


@check("init: no hash given, nothing is compared")
def init_without_hash(context: Context) -> None:
    assert not context.worker.init(interface_hash="").HasField("failure")


@check("init: a wider range of versions and unknown capabilities are no reason to refuse")
def init_range(context: Context) -> None:
    reply = context.worker.init(protocol_max=1000, capabilities=["of-the-future"])
    assert not reply.HasField("failure"), reply.failure


@check("init: a range of versions that does not meet the worker's is refused with W416")
def init_version(context: Context) -> None:
    highest = context.worker.init().protocol_max
    failure = context.worker.init(protocol_min=highest + 1, protocol_max=highest + 9).failure
    assert failure.code == "W416", failure
    assert not failure.retriable


@check("init: another interface hash is refused with W403")
def init_hash(context: Context) -> None:
    failure = context.worker.init(interface_hash="sha256:" + "0" * 64).failure
    assert failure.code == "W403", failure
    assert not failure.retriable
