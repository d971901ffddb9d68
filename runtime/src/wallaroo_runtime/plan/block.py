"""Numbers of origins: by them the egress knows results in real-time mode, and repeated ones after a kill."""

from wallaroo_runtime.plan.stage import Plan


def blocks_of(plan: Plan) -> dict[str, int]:
    """Return the number of the first block of origins of each stage.

    Those with state have the first blocks of origins, in their order: Spark's store has their states under these
    numbers, which must not change when other stages come or go. One without state has a block for each entry and each
    stage that may send there, which have blocks before it.
    """
    blocks = {stage.id: number for number, stage in enumerate(stage for stage in plan.stages if stage.has_state)}
    free = len(blocks)
    for stage in plan.stages:
        if not stage.has_state:
            blocks[stage.id] = free
            free += len(stage.entries) * (free + 1) if stage is not plan.levels[0][0] else 0
    return blocks
