"""The faults of visits of the wrong worker."""

from collections.abc import Callable
from typing import Any

from conformance.wire import Fault
from wallaroo.message.frame import check_frame, encode_frame, read_frame, split_frames
from wallaroo.worker._proto import worker_pb2 as pb


class VisitsTwice(Fault):
    """A visit runs twice."""

    def request(self, request: Any) -> None:
        if request.WhichOneof("kind") == "bucket":
            data = request.bucket.frames
            parts = [data[start : start + 40 + header.body_bytes] for header, start, _ in split_frames(data)]
            request.bucket.frames = b"".join(each * (1 + (check_frame(each).port == 65533)) for each in parts)


def other_order(visit: pb.Visit) -> None:
    visit.id = 100 - visit.id


def on_visit(change: Callable[[pb.Visit], None]) -> type[Fault]:
    """Make a fault that changes visits before the right worker sees them."""

    class VisitFault(Fault):
        def request(self, request: Any) -> None:
            if request.WhichOneof("kind") != "bucket":
                return
            data, changed = request.bucket.frames, b""
            for header, start, _ in split_frames(data):
                each = data[start : start + 40 + header.body_bytes]
                if header.port == 65533:
                    visit = pb.Visit.FromString(read_frame(each).values()[0])
                    change(visit)
                    each = encode_frame([visit.SerializeToString()], port=65533, sequence=header.sequence)
                changed += each
            request.bucket.frames = changed

    return VisitFault


def without_visits(done: Any) -> None:
    if isinstance(done, pb.Done):
        done.ClearField("visits")
