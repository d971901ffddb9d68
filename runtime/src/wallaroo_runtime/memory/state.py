"""Reads states out of their logs."""

from wallaroo.goka.state import GroupState
from wallaroo_runtime.memory.store import LogStore
from wallaroo_runtime.plan import Plan
from wallaroo_runtime.plan.stage import STATE_ENTRIES
from wallaroo_runtime.storage.state_log import latest_states

# How Go's worker writes a message of protobuf: a mark, the length of its name, the name, its bytes.
PROTOBUF_MARK = 0x48
GROUP_STATE = b"wallaroo.record.v1.GroupState"


def read_states(plan: Plan, store: LogStore, name: str) -> dict[bytes, tuple[int, bytes]]:
    """Return encoding and bytes of the state of each key, as they are committed."""
    of_ports: dict[bytes, tuple[int, bytes]] = {}
    for stage in plan.stages:
        ports = {node.state_port for node in stage.nodes if node.kind in STATE_ENTRIES and node.state == name}
        for entries in store.logs(stage.id) if ports else ():
            states = latest_states(entries)
            of_ports.update({key: value for (port, key), value in states.items() if port in ports})
    return of_ports


def foreign_state(data: bytes) -> GroupState | bytes:
    """Return a state of a program in another language: of a group its data, else its bytes."""
    mark = bytes([PROTOBUF_MARK, len(GROUP_STATE)]) + GROUP_STATE
    return GroupState.from_bytes(data.removeprefix(mark)) if data.startswith(mark) else data


def state_names(plan: Plan) -> list[str]:
    """Return the names of the states of a plan."""
    return sorted({node.state for stage in plan.stages for node in stage.nodes if node.kind in STATE_ENTRIES})
