"""The call that the specification prints in hexadecimal digits is what the workers of both languages do."""

import re
import shlex
import sys

import pytest
from google.protobuf import text_format

from conformance.process import CALL_S, Worker
from support.annotated import message_parts, printed, read_back
from support.run import TESTS
from wallaroo.emit.program import LoadedProgram, load
from wallaroo.emit.topology import topology
from wallaroo.message.frame import FRAMED, FrameHeader, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.host.call import CallRunner
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.plan.stage_message import stage_message
from wallaroo_runtime.program.build import build
from wallaroo_runtime.topology.load import load_document

PAGE = TESTS.parent / "topology-schema" / "SPECIFICATION.md"
CASE = TESTS / "cases" / "reverse"
ARGS = ["--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002"]
PARTS = re.compile(r"(?<=\n### A call in hexadecimal digits\n)(.*?)(?=\n## 5\. )", re.DOTALL)


def program() -> LoadedProgram:
    """Return the application, declared."""
    sys.modules.pop("app", None)
    return load(str(CASE / "app.py"), ARGS)


def requests() -> list[pb.Request]:
    """Return the opening and the data of the call."""
    application = program().application
    declared = load_document(topology(application, str(CASE), "app.py", ARGS))
    ((stage,),) = compile_topology(declared, shuffle_partitions=2).levels
    opening = pb.Opening(application=application.name, query="q", stage=stage_message(stage), batch=3, attempt=7)
    header = FrameHeader(port=0, count=2, sequence=500, encoding=FRAMED, timestamp_ms=1_700_000_000_000)
    frame = write_frame(header, [len(payload).to_bytes(4, "big") + payload for payload in (b"my", b"eel")])
    return [pb.Request(opening=opening), pb.Request(data=pb.Data(frames=frame))]


def replies() -> list[pb.Reply]:
    """Return what the worker in Python answers."""
    return list(CallRunner(program(), cache_bytes=1 << 20).process(iter(requests())))


def page() -> str:
    """Return the section of the specification."""
    opening, data = requests()
    output, done = replies()
    return f"""
A stream of `Process`, for the application `tests/cases/reverse`. The opening, in protobuf's text form:

```text
{text_format.MessageToString(opening)}```

A data with two messages, "my" and "eel", as `Request`. Fields that are 0, as its `index`, are not written:

```text
{printed(message_parts(data))}```

The worker answers with an `Output` in a `Reply`:

```text
{printed(message_parts(output))}```

and, since that is all, with `Done` in another one:

```text
{printed(message_parts(done))}```
"""


def test_the_specification_has_the_call(rewrites_golden: bool) -> None:
    text = PAGE.read_text(encoding="utf-8")
    if rewrites_golden:
        PAGE.write_text(PARTS.sub(lambda _: page(), text), encoding="utf-8")
    (found,) = PARTS.findall(PAGE.read_text(encoding="utf-8"))
    assert found == page(), "`pytest tests/test_worked_call.py --golden` writes it"


def test_the_printed_bytes_are_those_of_the_codec() -> None:
    for message in (*requests(), *replies()):
        assert read_back(printed(message_parts(message))) == message.SerializeToString(deterministic=True)


@pytest.mark.slow
def test_the_worker_in_go_answers_the_printed_bytes() -> None:
    (section,) = PARTS.findall(PAGE.read_text(encoding="utf-8"))
    opening, *blocks = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    data, *answers = map(read_back, blocks)
    sent = [text_format.Parse(opening, pb.Request()), pb.Request.FromString(data)]
    with Worker(shlex.quote(str(build(CASE))), args=ARGS) as worker:
        worker.ready().handshake(interface_hash="")
        got = list(worker.stub().Process(iter(sent), timeout=CALL_S))
    assert got == [pb.Reply.FromString(answer) for answer in answers]
