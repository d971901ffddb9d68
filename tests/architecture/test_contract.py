"""The contract files keep the rules that they set for those who read them."""

import re

import pytest
from google.protobuf.descriptor import FileDescriptor

from wallaroo.worker._proto import worker_pb2
from wallaroo_runtime.remote._proto import service_pb2


@pytest.mark.parametrize("file", [worker_pb2.DESCRIPTOR, service_pb2.DESCRIPTOR], ids=lambda file: str(file.name))
def test_enum_values_have_their_enums_prefix_and_zero_is_unspecified(file: FileDescriptor) -> None:
    for enum in file.enum_types_by_name.values():
        prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum.name).upper() + "_"
        names = [value.name for value in enum.values]
        assert [name for name in names if not name.startswith(prefix)] == []
        assert enum.values_by_number[0].name == f"{prefix}UNSPECIFIED"


def test_both_protocols_have_one_error_model() -> None:
    models = [
        [(field.name, field.number, field.type) for field in file.message_types_by_name["Failure"].fields]
        for file in (worker_pb2.DESCRIPTOR, service_pb2.DESCRIPTOR)
    ]
    assert models[0] == models[1]
    assert {"code", "message", "retriable", "traceback", "fix"} <= {name for name, _, _ in models[0]}
