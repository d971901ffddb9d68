"""Writes the state of a key of a group, as the worker of its language reads it from the log of a bucket."""

import pickle
from collections.abc import Callable
from typing import NamedTuple

from wallaroo.goka.state import GroupState
from wallaroo.worker._proto import record_pb2


class StateForm(NamedTuple):
    """How a language has states in its logs.

    Attributes:
        encoding: Of the frame.
        write: Returns the state that has a value of the group's table, and no joined ones.
    """

    encoding: int
    write: Callable[[bytes], bytes]


def form_of(language: str) -> StateForm:
    r"""Return how the states of groups are written; `SPECIFICATION.md`, section 4, describes both forms.

    Raises:
        KeyError: There are no groups in this language.

    Example:
        >>> form_of("go").write(b"7")[-3:], form_of("python").encoding
        (b'\n\x017', 16)
    """
    return _FORMS[language]


def _in_python(value: bytes) -> bytes:
    return pickle.dumps(GroupState(value), _PICKLE_PROTOCOL)


def _in_go(value: bytes) -> bytes:
    return _GO_HEAD + bytes(record_pb2.GroupState(value=value).SerializeToString())


_PICKLE_PROTOCOL = 5
_NAME: bytes = record_pb2.GroupState.DESCRIPTOR.full_name.encode()
_GO_HEAD = bytes((72, len(_NAME))) + _NAME  # the tag of a message of protobuf
_FORMS = {"python": StateForm(16, _in_python), "go": StateForm(17, _in_go)}
