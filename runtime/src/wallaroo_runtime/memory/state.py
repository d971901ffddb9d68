"""Reads states from the logs of buckets."""

from wallaroo.goka.state import GroupState
from wallaroo_runtime.memory.store import LogStore
from wallaroo_runtime.plan import Plan
from wallaroo_runtime.plan.plan import STATE_ENTRIES
from wallaroo_runtime.storage.state_log import latest_states

# A Go worker writes a message of protobuf as a mark, the length of the message's name, the name, and the message.
PROTOBUF_MARK = 0x48
GROUP_STATE = b"wallaroo.record.v1.GroupState"
TIMES_BYTES = 19  # with a ttl the key's times precede the state


def read_states(plan: Plan, store: LogStore, name: str) -> dict[bytes, tuple[int, bytes]]:
    """Return the committed states with a name: encoding and bytes for each key."""
    of_ports: dict[bytes, tuple[int, bytes]] = {}
    for stage in plan.stages:
        ports = {node.state_port for node in stage.nodes if node.kind in STATE_ENTRIES and node.state == name}
        for entries in store.logs(stage.id) if ports else ():
            states = latest_states(entries)
            of_ports.update({key: value for (port, key), value in states.items() if port in ports})
    return of_ports


def foreign_state(data: bytes) -> GroupState | bytes:
    """Return the state of a program in another language: for a group a `GroupState`, else bytes."""
    mark = bytes([PROTOBUF_MARK, len(GROUP_STATE)]) + GROUP_STATE
    start = next((at + len(mark) for at in (0, TIMES_BYTES) if data.startswith(mark, at)), 0)
    return GroupState.from_bytes(data[start:]) if start else data


def state_names(plan: Plan) -> list[str]:
    """Return the names of the states of a plan."""
    return sorted({node.state for stage in plan.stages for node in stage.nodes if node.kind in STATE_ENTRIES})
