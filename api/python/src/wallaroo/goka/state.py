"""The state of a key of a group: its value, and the values of the joined tables under the same key."""

from typing import Any


class GroupState:
    """The data of a group for a key, as bytes; those of `GroupState` in `record.proto`, as programs in Go write it.

    Attributes:
        value: Of the group table; None: there is none.
        joined: Of the joined tables that have the key, by topic.

    Example:
        >>> state = GroupState(b"7", {"users-table": b"Ann"})
        >>> GroupState.from_bytes(state.to_bytes()).joined
        {'users-table': b'Ann'}
    """

    __slots__ = ("joined", "value")

    def __init__(self, value: bytes | None = None, joined: dict[str, bytes] | None = None) -> None:
        self.value, self.joined = value, {} if joined is None else joined

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing, so that the key needs no state."""
        return self.value is None and not self.joined

    def to_bytes(self) -> bytes:
        """Return its bytes, which are the same for equal states."""
        written = _message(value=self.value, joined=self.joined)
        return bytes(written.SerializeToString(deterministic=True))

    @classmethod
    def from_bytes(cls, data: bytes) -> "GroupState":
        """Return the state of its bytes.

        Raises:
            google.protobuf.message.DecodeError: They are none.
        """
        message = _message()
        message.ParseFromString(data)
        return cls(message.value if message.HasField("value") else None, dict(message.joined))

    def __reduce__(self) -> Any:
        return GroupState.from_bytes, (self.to_bytes(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GroupState) and (self.value, self.joined) == (other.value, other.joined)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"GroupState({self.value!r}, {self.joined!r})"


def _message(**fields: Any) -> Any:
    # A front-end declares groups without protobuf; only workers read and write states.
    from wallaroo.worker._proto import record_pb2

    return record_pb2.GroupState(**fields)
