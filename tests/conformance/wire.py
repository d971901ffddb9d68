"""What faults of the wire are made of: each changes one kind of request or reply of a right worker."""

from collections.abc import Callable, Iterator
from typing import Any

from wallaroo.message.frame import encode_frame, read_frame
from wallaroo.worker._proto import worker_pb2 as pb

Reply = Any


class Fault:
    """Breaks nothing; one object per stream."""

    shared: dict[str, Any] = {}
    has_state = False  # whether the stream is one of ProcessState

    def init_request(self, request: pb.InitRequest) -> None:
        """Change what the right worker hears in Init."""

    def request(self, request: Any) -> None:
        """Change a request of a stream."""

    def reply(self, reply: Reply) -> Iterator[Reply]:
        """Yield what is said instead of one reply of a stream."""
        yield reply

    def split(self, reply: pb.SplitReply) -> None:
        """Change the reply of SplitFrames."""

    def generate_request(self, request: pb.GenerateRequest) -> None:
        """Change a request of Generate."""

    def generate(self, reply: pb.GenerateReply) -> None:
        """Change its reply."""

    def shown(self, reply: pb.ShowStateReply) -> None:
        """Change the reply of ShowState."""

    def init(self, reply: pb.InitReply) -> None:
        """Change the reply of Init."""


def on_reply(kind: str, change: Callable[[Any], None]) -> type[Fault]:
    """Make a fault that changes replies of one kind: `done`, `failure`, `need_state`, `change`, `output`."""

    class ReplyFault(Fault):
        def reply(self, reply: Reply) -> Iterator[Reply]:
            if reply.WhichOneof("kind") == kind:
                change(getattr(reply, kind))
            yield reply

    return ReplyFault


def on_node(change: Callable[[pb.Node], object]) -> type[Fault]:
    """Make a fault that changes the nodes of a stage before the right worker sees them."""

    class NodeFault(Fault):
        def request(self, request: Any) -> None:
            if request.WhichOneof("kind") == "opening":
                for node in request.opening.stage.nodes:
                    change(node)

    return NodeFault


def on_bucket(change: Callable[[pb.Bucket], object]) -> type[Fault]:
    """Make a fault that changes bucket calls before the right worker sees them."""

    class BucketFault(Fault):
        def request(self, request: Any) -> None:
            if request.WhichOneof("kind") == "bucket":
                change(request.bucket)

    return BucketFault


def on_opening(**fields: Any) -> type[Fault]:
    """Make a fault that sets fields of the stage in the opening."""

    class OpeningFault(Fault):
        def request(self, request: Any) -> None:
            if request.WhichOneof("kind") == "opening":
                for name, value in fields.items():
                    setattr(request.opening.stage, name, value)

    return OpeningFault


def unhosted(*kinds: int) -> type[Fault]:
    """Make a fault for which nodes of some kinds are of no program."""

    def change(node: pb.Node) -> None:
        if node.kind in kinds:
            node.path = "9/steps/9"

    return on_node(change)


def on_letter(change: Callable[[pb.DeadLetter], object]) -> type[Fault]:
    """Make a fault that changes dead letters."""

    def rewrite(out: pb.Output) -> None:
        if out.port != 65535:
            return
        frame = read_frame(out.frame)
        letters = [pb.DeadLetter.FromString(value) for value in frame.values()]
        for letter in letters:
            change(letter)
        out.frame = encode_frame(
            [letter.SerializeToString() for letter in letters], port=65535, sequence=frame.header.sequence,
            timestamp_ms=frame.header.timestamp_ms,
            sequences=frame.sequences or list(range(len(letters))),
        )  # fmt: skip

    return on_reply("output", rewrite)


def output(change: Callable[[pb.Output], Iterator[None] | None]) -> type[Fault]:
    """Make a fault that changes outputs; `change` may return an iterator, which has an item per copy to be sent."""

    class OutputFault(Fault):
        def reply(self, reply: Reply) -> Iterator[Reply]:
            copies = change(reply.output) if reply.WhichOneof("kind") == "output" else None
            for _ in [None] if copies is None else copies:
                yield reply

    return OutputFault
