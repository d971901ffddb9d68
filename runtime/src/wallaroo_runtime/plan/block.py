"""Numbers origins (buckets of stages), by which Spark's store keeps states and the egress counts results."""

from wallaroo_runtime.plan.plan import Plan


def blocks_of(plan: Plan) -> dict[str, int]:
    """Return for each stage the number of its first block. A block has one origin for each bucket.

    Spark's store keeps the state of a bucket under its origin. In real-time mode the egress also counts results by
    origin, to recognize repeated results after a kill.

    Stages with state have the first blocks, in the order of the stages, because their numbers must not change when
    other stages are added or removed. A stage without state has one block for each pair of an entry and a stage that
    may send to this entry, i.e. any stage with an earlier block.
    """
    blocks = {stage.id: number for number, stage in enumerate(stage for stage in plan.stages if stage.has_state)}
    free = len(blocks)
    for stage in plan.stages:
        if not stage.has_state:
            blocks[stage.id] = free
            free += len(stage.entries) * (free + 1) if stage is not plan.levels[0][0] else 0
    return blocks
