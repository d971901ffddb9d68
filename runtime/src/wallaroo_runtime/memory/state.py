"""Reads states out of their logs."""

from wallaroo_runtime.lowering.state_log import latest_states
from wallaroo_runtime.memory.store import Store
from wallaroo_runtime.plan import Plan
from wallaroo_runtime.plan.stage import STATE_ENTRIES


def read_states(plan: Plan, store: Store, name: str) -> dict[bytes, tuple[int, bytes]]:
    """Return encoding and bytes of the state of each key, as they are committed."""
    found: dict[bytes, tuple[int, bytes]] = {}
    for stage in plan.stages:
        ports = {node.state_port for node in stage.nodes if node.kind in STATE_ENTRIES and node.state == name}
        for entries in store.logs(stage.id) if ports else ():
            states = latest_states(entries)
            found.update({key: value for (port, key), value in states.items() if port in ports})
    return found


def state_names(plan: Plan) -> list[str]:
    """Return the names of the states of a plan."""
    return sorted({node.state for stage in plan.stages for node in stage.nodes if node.kind in STATE_ENTRIES})
