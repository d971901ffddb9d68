"""ShowState: a state log as JSON for people."""

import json
from typing import Any

from conformance.application import COUNT, SECOND
from conformance.check import Context, check
from conformance.process import CALL_S
from conformance.stateful import fresh, run
from wallaroo.worker._proto import worker_pb2 as pb


def show(context: Context, entries: list[bytes], stage: pb.Stage = SECOND) -> pb.ShowStateReply:
    """Ask for the states of a log."""
    return context.worker.stub().ShowState(pb.ShowStateRequest(stage=stage, entries=entries), timeout=CALL_S)


def numbers(value: Any) -> list[int]:
    """Return the numbers in a JSON value, wherever they are."""
    if isinstance(value, (dict, list)):
        return [number for part in (value.values() if isinstance(value, dict) else value) for number in numbers(part)]
    return [value] if isinstance(value, int) else []


@check("show state: each key has its state, as JSON")
def each_key(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "add", "add", "add")
    reply = show(context, store.log)
    assert not reply.HasField("failure"), reply.failure
    ((port, name, text),) = [(state.port, state.key, state.json) for state in reply.states]
    assert (port, name) == (COUNT, key.encode())
    assert 3 in numbers(json.loads(text.decode("utf-8"))), text


@check("show state: the last entry of a key counts, and the copy in the worker stays as it is")
def last_entry(context: Context) -> None:
    key, store = fresh()
    for _ in range(4):
        run(context.worker, store, key, "add")
    (state,) = show(context, store.log).states
    assert 4 in numbers(json.loads(state.json)), state.json
    (state,) = show(context, store.log[:2]).states
    assert 2 in numbers(json.loads(state.json)), state.json
    assert run(context.worker, store, key, "add").rollbacks == [], "the worker has lost its copy"


@check("show state: no entries, no states")
def empty(context: Context) -> None:
    reply = show(context, [])
    assert not reply.HasField("failure")
    assert not reply.states


@check("show state: a damaged entry is W410, and a stage of another application W403")
def damaged(context: Context) -> None:
    key, store = fresh()
    run(context.worker, store, key, "add")
    assert show(context, [store.log[0][:-1]]).failure.code == "W410"
    stage = pb.Stage()
    stage.CopyFrom(SECOND)
    stage.nodes[0].path = "9/steps/9"
    assert show(context, store.log, stage).failure.code == "W403"
