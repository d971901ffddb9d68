"""Converts a stage of a plan to the message of the worker protocol."""

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.plan import Stage
from wallaroo_runtime.plan.counter import COUNTERS


def stage_message(stage: Stage) -> pb.Stage:
    """Return the message that describes a stage to a worker."""
    nodes = [
        pb.Node(
            path=node.path,
            kind=pb.NodeKind.ValueType(int(node.kind)),
            inputs=node.inputs,
            port=node.port,
            state=node.state,
            state_port=node.state_port,
            timestamps=node.timestamps,
            component=node.component,
            codec=node.codec,
            keys=node.keys,
            output=node.output,
            ttl_ms=node.ttl_ms,
            event_time=node.event_time,
            timers=node.timers,
            sessions=node.sessions,
            visits=node.visits,
            watermarks=node.watermarks,
            arrival=node.arrival,
            counters=[name for name, counter in COUNTERS.items() if counter.is_of(node)],
        )
        for node in stage.nodes
    ]
    return pb.Stage(id=stage.id, nodes=nodes, bucket_count=stage.bucket_count, frame_bytes=stage.frame_bytes)
