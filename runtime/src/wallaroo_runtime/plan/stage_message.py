"""Converts a stage of a plan to the message of the worker protocol."""

from dataclasses import fields

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.plan import Stage
from wallaroo_runtime.plan.counter import COUNTERS


def stage_message(stage: Stage) -> pb.Stage:
    """Return the message that describes a stage to a worker."""
    nodes = [
        pb.Node(
            **{field.name: getattr(node, field.name) for field in fields(node)},  # they have the same names
            counters=[name for name, counter in COUNTERS.items() if counter.is_of(node)],
        )
        for node in stage.nodes
    ]
    return pb.Stage(id=stage.id, nodes=nodes, bucket_count=stage.bucket_count, frame_bytes=stage.frame_bytes)
