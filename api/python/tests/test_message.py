"""Messages of protobuf at a border: declared, and run by the worker."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.wrappers_pb2 import StringValue

import wallaroo
from wallaroo.declare.library import Library
from wallaroo.message.frame import encode_frame, read_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.stage.stage import Stage

STRUCT, STRING = "protobuf:google.protobuf.Struct", "protobuf:google.protobuf.StringValue"
UNKNOWN = "protobuf:shop.v1.Order"


@wallaroo.computation("item")
def item(purchase):
    return 7 if purchase["amount"] == 7 else StringValue(value=purchase["item"])


def shop() -> Library:
    return wallaroo.build_library([wallaroo.offer(item, input=STRUCT, output=STRING)])


def purchase(**fields: Any) -> bytes:
    message = Struct()
    message.update(fields)
    return message.SerializeToString(deterministic=True)


def test_messages_cross(kit: Any) -> None:
    nodes = [
        pb.Node(path="0/sources/0", kind=pb.NODE_KIND_RECEIVE, port=7, codec=STRUCT),
        pb.Node(path="0/steps/0", kind=pb.NODE_KIND_COMPUTATION, inputs=["0/sources/0"], component="item"),
        pb.Node(path="0/steps/0", kind=pb.NODE_KIND_SEND, inputs=["0/steps/0"], port=8, codec=STRING),
    ]
    stage = Stage(shop().application(), pb.Stage(id="s", bucket_count=4, frame_bytes=1 << 20, nodes=nodes))
    values = [purchase(item="tea", amount=2), b"\xff", purchase(item="tea", amount=7), purchase(amount=1)]
    outputs = stage.run(0, encode_frame(values, port=7, sequence=10))
    (sent,) = [read_frame(output.frame) for output in outputs if output.port == 8]
    assert [StringValue.FromString(value).value for value in sent.values()] == ["tea"]
    refused, other, failed = sorted(kit.letters(outputs), key=lambda letter: letter.sequence)
    assert (refused.code, refused.path, refused.input) == ("C505", "0/sources/0", b"\xff")
    assert "Error parsing message with type 'google.protobuf.Struct'" in refused.error
    assert (other.code, other.sequence) == ("C504", 12)
    assert "the message is int; expected google.protobuf.StringValue" in other.error
    assert (failed.code, failed.sequence) == ("C501", 13)


@pytest.mark.parametrize(
    "declare",
    [
        lambda: wallaroo.offer(item, input=STRUCT, output=UNKNOWN),
        lambda: wallaroo.other_program("shop", "shop.py").computation("item", input=STRUCT, output=UNKNOWN),
    ],
)
def test_a_message_whose_module_is_not_imported(declare: Any) -> None:
    with pytest.raises(wallaroo.WallarooParameterError) as caught:
        declare()
    (found,) = caught.value.diagnostics
    assert found.code == "T207" and str(found.file).endswith("test_message.py")
    assert f"output is '{UNKNOWN}'; expected a message whose generated module is imported" in found.message
    assert found.fix == "import what protoc generated for shop.v1.Order"


@pytest.mark.slow
def test_a_program_without_protobuf(tmp_path: Path) -> None:
    (tmp_path / "google").mkdir()
    (tmp_path / "google" / "__init__.py").write_text("raise ImportError('no protobuf here')", encoding="utf-8")
    text = f"""if True:
        import sys
        from wallaroo.message.codec import codec_of
        assert codec_of("json") is not None
        assert "google" not in sys.modules
        sys.path.insert(0, {str(tmp_path)!r})
        sys.modules.pop("google", None)
        assert codec_of("protobuf:google.protobuf.Struct") is None
    """
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
