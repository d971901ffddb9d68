"""The log of a worker that `--engine memory` cannot go on with."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from wallaroo.message.frame import FRAMED, FrameHeader, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.memory.calls import run_data
from wallaroo_runtime.memory.start import ProcessClient
from wallaroo_runtime.worker.discovery import stop_worker
from wallaroo_runtime.worker.spec import WorkerSpec

pytestmark = pytest.mark.slow
SPLIT = pb.Stage(id="s0", bucket_count=4, frame_bytes=1 << 20)
SPLIT.nodes.add(path="0/sources/0", kind=pb.NODE_KIND_SOURCE, port=0)
SPLIT.nodes.add(path="0/steps/0", kind=pb.NODE_KIND_COMPUTATION_MULTI, inputs=["0/sources/0"])
SPLIT.nodes.add(path="0/steps/1", kind=pb.NODE_KIND_KEY, inputs=["0/steps/0"], port=1)


@pytest.fixture
def client(plain_spec: WorkerSpec, tmp_path: Path) -> Iterator[ProcessClient]:
    logs = tmp_path / "logs"
    logs.mkdir()
    client = ProcessClient(replace(plain_spec, log_directory=str(logs), restart_limit=1, args=("print",)))
    yield client
    client.close()
    stop_worker(client.spec)


def sent(client: ProcessClient, text: str) -> None:
    data = len(text).to_bytes(4, "big") + text.encode()
    frame = write_frame(FrameHeader(0, 1, 0, encoding=FRAMED, timestamp_ms=1), [data])
    list(run_data(client, pb.Opening(application="counts", query="q", stage=SPLIT), [frame]))


def test_the_log_that_an_error_names_stays(client: ProcessClient) -> None:
    with pytest.raises(RunError) as caught:
        sent(client, "a !exit")
    (finding,) = caught.value.diagnostics
    client.close()
    stop_worker(client.spec)
    client.remove_logs()
    (log,) = Path(client.spec.log_directory).glob("*.log")
    assert (finding.code, str(log) in finding.fix) == ("W406", True)


def test_another_log_is_removed(client: ProcessClient) -> None:
    sent(client, "a b")
    client.close()
    stop_worker(client.spec)
    client.remove_logs()
    assert not Path(client.spec.log_directory).exists()
