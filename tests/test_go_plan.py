"""The plans by which the planner of the Go test kit is checked are those of the runtime's planner as it is now."""

import json

from model.plans import FILE, case_topologies, planned


def test_go_plans_are_fresh() -> None:
    lines = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    stale = [line["name"] for line in lines if json.loads(json.dumps(planned(line["topology"]))) != line["plan"]]
    cases = {line["name"]: line["topology"] for line in lines}
    stale += [name for name, topology in case_topologies() if cases.get(name) != topology]
    assert stale == [], "run `PYTHONPATH=tests python -m model.plans`"
