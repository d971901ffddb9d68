"""Writes the state of a key of a group, as the worker of its language reads it from the log of a bucket."""

import struct
from collections.abc import Callable
from typing import NamedTuple

from wallaroo.worker._proto import record_pb2


class StateForm(NamedTuple):
    """How a language has states in its logs.

    Attributes:
        encoding: Of the frame.
        write: Returns the state that has a value of the group's table, and no joined ones.
    """

    encoding: int
    write: Callable[[bytes], bytes]


STATE = "GroupState"  # class of a group's state, in every language
LANGUAGES = ("python", "go")


def form_of(language: str) -> StateForm:
    r"""Return how the states of groups are written; `vectors/goka.json` has both forms as `table_states`.

    Raises:
        KeyError: There are no groups in this language.

    Example:
        >>> form_of("go").write(b"7")[-3:], form_of("python").encoding
        (b'\n\x017', 16)
    """
    return _FORMS[language]


def _in_python(value: bytes) -> bytes:
    data = _message(value)
    return b"%s%s%s%s" % (_PICKLE_HEAD, _U32.pack(len(data)), data, _PICKLE_END)


def _in_go(value: bytes) -> bytes:
    return _GO_HEAD + _message(value)


def _message(value: bytes) -> bytes:
    return bytes(record_pb2.GroupState(value=value).SerializeToString())


_U32 = struct.Struct("<I")
# A pickle of protocol 4: a function's name, bytes, a tuple of them, the call.
_PICKLE_HEAD, _PICKLE_END = b"\x80\x04cwallaroo.goka.state\nGroupState.from_bytes\nB", b"\x85R."
_NAME: bytes = record_pb2.GroupState.DESCRIPTOR.full_name.encode()
_GO_HEAD = bytes((72, len(_NAME))) + _NAME  # the tag of a message of protobuf
_FORMS = {"python": StateForm(16, _in_python), "go": StateForm(17, _in_go)}
