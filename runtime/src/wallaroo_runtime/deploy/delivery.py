"""Who writes to TCP sinks, when a command line says so in place of the topology."""

import json
from collections.abc import Sequence

from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology

DELIVERIES = ("outbox", "executor")


def delivered(topology: Topology, choices: Sequence[str]) -> Topology:
    """Return the topology with other deliveries and nothing else changed; the interface hash does not notice.

    Args:
        topology: As it was loaded.
        choices: `NAME=DELIVERY` for the TCP sinks of that name, or `DELIVERY` for all that no name chooses.

    Raises:
        RunError: R608, there is no such delivery, or no TCP sink of that name.
    """
    if not choices:
        return topology
    chosen = dict(map(_parsed, choices))
    document = json.loads(json.dumps(topology.document))
    sinks = [sink for pipeline in document["pipelines"] for sink in pipeline["sinks"] if sink["kind"] == "tcp"]
    names = list(dict.fromkeys(sink["name"] for sink in sinks))
    for name in filter(lambda name: name and name not in names, chosen):
        reason = f'--delivery: no TCP sink is called "{name}"'
        raise RunError.of("R608", USAGE, reason=reason, fix=f"use one of {', '.join(names) or 'none, there are none'}")
    for sink in sinks:
        if delivery := chosen.get(sink["name"], chosen.get("")):
            sink["delivery"] = delivery
    return load_document(document)


def _parsed(choice: str) -> tuple[str, str]:
    name, _, delivery = choice.rpartition("=")
    if delivery not in DELIVERIES:
        fix = "give outbox or executor, or NAME=executor for one sink"
        raise RunError.of("R608", USAGE, reason=f"--delivery {choice} is neither outbox nor executor", fix=fix)
    return name, delivery
