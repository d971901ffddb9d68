"""Numbers the blocks of origins, by which the egress recognizes repeated results of real-time mode after a kill."""

from wallaroo_runtime.plan.plan import Plan


def blocks_of(plan: Plan) -> dict[str, int]:
    """Return for each stage the number of its first block of origins.

    Stages with state have the first blocks, in the order of the stages. Spark's store has their states under these
    numbers, which must not change when other stages are added or removed. A stage without state has one block for each
    pair of an entry and a stage that may send to this entry, i.e. any stage with an earlier block.
    """
    blocks = {stage.id: number for number, stage in enumerate(stage for stage in plan.stages if stage.has_state)}
    free = len(blocks)
    for stage in plan.stages:
        if not stage.has_state:
            blocks[stage.id] = free
            free += len(stage.entries) * (free + 1) if stage is not plan.levels[0][0] else 0
    return blocks
