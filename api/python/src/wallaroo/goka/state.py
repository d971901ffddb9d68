"""The state of a group for a key: its value in the group table, and its values in the joined tables."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class GroupState:
    """The state of a group for a key. Programs in Python and Go store it as a `GroupState` of `record.proto`.

    Attributes:
        value: Encoded value in the group table; None if the table does not have the key.
        joined: Encoded values in the joined tables that have the key, by topic.

    Example:
        >>> state = GroupState(b"7", {"users-table": b"Ann"})
        >>> GroupState.from_bytes(state.to_bytes()).joined
        {'users-table': b'Ann'}
    """

    value: bytes | None = None
    joined: dict[str, bytes] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether the key has no value in any table, so that it needs no state."""
        return self.value is None and not self.joined

    def to_bytes(self) -> bytes:
        """Return the state as bytes; equal states have equal bytes."""
        written = _message(value=self.value, joined=self.joined)
        return bytes(written.SerializeToString(deterministic=True))

    @classmethod
    def from_bytes(cls, data: bytes) -> "GroupState":
        """Return the state that `to_bytes` has written as these bytes.

        Raises:
            google.protobuf.message.DecodeError: The bytes are not a state.
        """
        message = _message()
        message.ParseFromString(data)
        return cls(message.value if message.HasField("value") else None, dict(message.joined))

    def __reduce__(self) -> Any:
        return GroupState.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        return f"GroupState({self.value!r}, {self.joined!r})"


def _message(**fields: Any) -> Any:
    # The declaration of groups works without protobuf; only workers read and write states.
    from wallaroo.worker._proto import record_pb2

    return record_pb2.GroupState(**fields)
