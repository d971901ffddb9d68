"""Writes topologies with their plans, by which the planner of the Go test kit is checked.

`PYTHONPATH=tests python -m model.plans` (a part of `make golden`) writes the file; `tests/test_go_plan.py` finds it
stale. A line has one topology, without workers: of a case that one program runs, or drawn.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from model.application import PYTHON, Application
from model.draw import applications
from model.emitted import emitted
from model.worker import Nursery
from support.case import NAMES, Case
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import Node, compile_topology
from wallaroo_runtime.topology.load import load_document

FILE = Path(__file__).resolve().parents[2] / "api/go/internal/plan/testdata/plans.jsonl"
DRAWN, KEPT, SEED = 200, 26, 5
WORKER = {
    "name": "main",
    "language": "go",
    "sdk_version": "0.1.0",
    "protocol_version": 1,
    "command": ["/bin/true"],
    "directory": "/",
    "args": [],
    "call_deadline_ms": 60000,
    "interface_hash": "sha256:" + "0" * 64,
    "code_hash": "sha256:" + "0" * 64,
    "components": [],
}


def described(node: Node) -> dict[str, Any]:
    """Return a node without what has the value of nothing."""
    names = ("path", "inputs", "port", "state", "state_port", "timestamps", "keys", "ttl_ms", "event_time", "timers")
    fields = {name: getattr(node, name) for name in (*names, "sessions", "arrival")}
    assert not node.codec and not node.component
    return {"kind": node.kind.name, **{name: value for name, value in fields.items() if value}}


def planned(topology: dict[str, Any]) -> dict[str, Any]:
    """Return what the runtime's planner makes of a topology without workers: a plan, or the codes of its findings."""
    try:
        plan = compile_topology(load_document({**topology, "workers": [WORKER]}), shuffle_partitions=2)
    except RunError as error:
        return {"codes": [found.code for found in error.diagnostics]}
    levels = []
    for (stage,) in plan.levels:
        nodes = [described(node) for node in stage.nodes]
        levels.append({"id": stage.id, "bucket_count": stage.bucket_count, "nodes": nodes})
    return {"ports": dict(plan.ports), "levels": levels}


def case_topologies() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the golden topologies of the cases that one program runs."""
    for name in NAMES:
        for file in sorted(Case(name).folder.glob("topology*.json"), reverse=True):  # topology.json is the first
            topology = json.loads(file.read_text(encoding="utf-8"))
            steps = [step for pipeline in topology["pipelines"] for step in pipeline["steps"]]
            if all(step["worker"] == "main" for step in steps):
                yield f"{name}{file.stem.removeprefix('topology')}", topology


def drawn_topologies() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield drawn topologies; one may have a state that feeds itself."""
    found: list[Application] = []

    @seed(SEED)
    @settings(
        max_examples=DRAWN,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(applications((PYTHON,), messages=0))
    def each(application: Application) -> None:
        found.append(application)

    each()
    nursery, seen = Nursery(), set[str]()
    try:
        for application in sorted(found, key=richness, reverse=True):
            topology = emitted(application, "main", nursery)["topology"]
            del topology["workers"]
            text = json.dumps(topology)
            if text not in seen and len(seen) < KEPT:
                seen.add(text)
                yield f"drawn {len(seen)}", topology
    finally:
        nursery.close()


def richness(application: Application) -> tuple[int, int]:
    """Say how much there is to plan: steps that share a state, and steps."""
    states = [step["state"] for step in application.steps if step.get("state")]
    return len(states) - len(set(states)), len(application.steps)


def selfish() -> dict[str, Any]:
    """Return a topology with a state that feeds itself, which no planner can cut."""
    topology: dict[str, Any] = json.loads((Case("word_count").folder / "topology.json").read_text(encoding="utf-8"))
    (pipeline,) = topology["pipelines"]
    last = pipeline["steps"][-1]
    pipeline["steps"].append({**last, "path": "0/steps/2", "inputs": [last["path"]]})
    pipeline["sinks"][0]["inputs"] = ["0/steps/2"]
    return topology


def main() -> int:
    """Write the file."""
    FILE.parent.mkdir(exist_ok=True)
    topologies = [*case_topologies(), ("selfish", selfish()), *drawn_topologies()]
    with FILE.open("w", encoding="utf-8") as file:
        for name, topology in topologies:
            line = {"name": name, "topology": topology, "plan": planned(topology)}
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
