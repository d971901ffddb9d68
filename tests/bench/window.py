"""A worker with a million keys, each with an open window: what memory it takes with caches of several sizes.

`make bench-windows` starts a worker of each language alone and makes bucket calls, as a runtime does, over all keys in
several rounds; at the end a tick closes all windows, and what they give must be what was sent. What does not fit
into the cache is read again from the state log. Rates are those of the worker, gRPC and state logs included.
"""

import argparse
import json
import os
import shlex
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from processor_time import descendants  # noqa: E402

from conformance.process import Worker  # noqa: E402
from conformance.session import Answer, BucketStore, StateStream  # noqa: E402
from wallaroo.message.frame import FRAMED, PLAIN, TICK_PORT, FrameHeader, encode_frame, write_frame  # noqa: E402
from wallaroo.worker._proto import worker_pb2 as pb  # noqa: E402

FOLDER = TESTS / "conformance"
HOUR_MS = 3_600_000
WINDOW = {
    "kind": "range", "range_ms": HOUR_MS, "slide_ms": HOUR_MS, "delay_ms": 0, "late": "drop", "time": "ingest",
}  # fmt: skip
PATH, PORT, SINK = "0/steps/1", 50, 90
MIB = 1 << 20


def stage(buckets: int) -> pb.Stage:
    """Return the window step alone."""
    window = pb.Node(
        path=PATH, kind=pb.NODE_KIND_WINDOW, port=PORT, state="s", state_port=PORT, codec="int64",
        counters=["dropped_late"],
    )  # fmt: skip
    sink = pb.Node(path="0/sinks/0", kind=pb.NODE_KIND_SINK, port=SINK, inputs=[PATH])
    return pb.Stage(id="s1", nodes=[window, sink], bucket_count=buckets, frame_bytes=MIB)


def command(language: str, folder: Path) -> str:
    """Return how the worker starts; Go's is built first."""
    if language == "python":
        return shlex.join([sys.executable, "-m", "wallaroo.worker", str(FOLDER / "app.py")])
    binary = folder / "worker"
    wallaroo = Path(sys.executable).with_name("wallaroo")
    subprocess.run([wallaroo, "build", FOLDER, "-o", binary], check=True, stdout=subprocess.DEVNULL)
    return str(binary)


def memory(worker: Worker, name: str) -> int:
    """Return a number of the worker's processes, from /proc, in MiB."""
    total = 0
    for process in (worker.process.pid, *descendants(worker.process.pid)):
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
        total += sum(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
    return total // 1024


def call(worker: Worker, description: pb.Stage, store: BucketStore, frame: bytes, *, snapshot: bool = False) -> Answer:
    """Make one bucket call and commit it."""
    with StateStream(worker, description, store.bucket) as stream:
        stream.ask(store, [frame], snapshot=snapshot)
        answer = stream.answer(store)
    store.commit(answer)
    return answer


def measure(language: str, keys: int, rounds: int, buckets: int, cache_mib: int) -> str:
    """Run a worker over all keys; return what was seen.

    Raises:
        AssertionError: A window did not give what was sent.
    """
    description = stage(buckets)
    names = [[b"key %d" % number for number in range(bucket, keys, buckets)] for bucket in range(buckets)]
    stores = [BucketStore(bucket) for bucket in range(buckets)]
    args = ["--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002", "--windows", json.dumps([WINDOW])]
    variables = {"WALLAROO_STATE_CACHE_BYTES": str(cache_mib * MIB)}
    rates, reloads = [], 0
    with (
        tempfile.TemporaryDirectory() as folder,
        Worker(command(language, Path(folder)), args=args, variables=variables) as worker,
    ):
        worker.ready()
        idle = memory(worker, "VmRSS")
        for number in range(rounds):
            began = time.monotonic()
            for store, mine in zip(stores, names, strict=True):
                values = [struct.pack(">q", number)] * len(mine)
                frame = encode_frame(
                    values, port=PORT, sequence=number, encoding=PLAIN, timestamp_ms=1000 + number, keys=mine,
                    key_indexes=range(len(mine)), sequences=[0] * len(mine),
                )  # fmt: skip
                answer = call(worker, description, store, frame, snapshot=number == rounds - 1)
                assert not answer.letters, answer.codes()
                reloads += len(answer.rollbacks)
            rates.append(keys / (time.monotonic() - began))
        end = memory(worker, "VmRSS")
        tick = write_frame(FrameHeader(TICK_PORT, 0, rounds, 0, FRAMED, 1000 + HOUR_MS), [])
        values = " ".join(map(str, range(rounds)))
        for store, mine in zip(stores, names, strict=True):
            texts = [text for _, text in call(worker, description, store, tick).texts(SINK)]
            assert texts == [f"{name.decode()} {values}" for name in sorted(mine)], texts[:3]
        peak = memory(worker, "VmHWM")
    shown = ", ".join(f"{rate / 1000:.0f}" for rate in rates)
    log = sum(len(entry) for store in stores for entry in store.log) // MIB
    return (
        f"{language}: cache {cache_mib} MiB: {idle} MiB idle, {end} with {keys:,} open windows, at most {peak}; "
        f"{reloads} of {(rounds - 1) * buckets} buckets read again; {shown} thousand messages/s; logs {log} MiB; equal"
    )


def main() -> int:
    """Measure both languages; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--buckets", type=int, default=64)
    parser.add_argument("--cache-mib", type=int, nargs="+", default=[1024, 256])
    parser.add_argument("--languages", nargs="+", default=["go", "python"])
    options = parser.parse_args()
    for language in options.languages:
        for cache in options.cache_mib:
            print(f"load {os.getloadavg()[0]:.1f}", flush=True)
            print(measure(language, options.keys, options.rounds, options.buckets, cache), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
