"""The worker in JavaScript, as an author of a third language would write it: it conforms, and runs a word count.

`make test-javascript` has these tests; without Node they fail and say so.
"""

import json
import random
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance import every, stateful  # noqa: F401
from conformance.check import CHECKS, capability_of, option_of
from conformance.process import Worker
from support.drive import drive
from support.run import Receiver, Run, framed

pytestmark = [pytest.mark.javascript, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "javascript"
MOST_LINES = 620  # of the worker and its application; the page "A worker in your language" follows them


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return Node; what the worker requires is fetched, and found, as `npm ci` leaves it."""
    found, npm = shutil.which("node"), shutil.which("npm")
    if found is None or npm is None:
        pytest.fail("node and npm were not found: the tests of the worker in JavaScript need Node 20.15 or newer")
    folder = tmp_path_factory.mktemp("javascript")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(EXAMPLE / name, folder)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NODE_PATH", str(folder / "node_modules"))
        yield found


def test_worker_conforms(node: str) -> None:
    """It has what every worker must have, and names no capability."""
    worker = [node, str(ROOT / "tests" / "conformance" / "app.js")]
    done = drive(worker, without=("cache", "kill_points"))
    left_out = [name for name in CHECKS if capability_of(name) or option_of(name)]
    passed = len(CHECKS) - len(left_out)
    assert done.returncode == 0, "\n".join(line for line in done.stdout.splitlines() if line[:2] != "ok") + done.stderr
    assert f"\n{passed} of {passed} checks passed" in done.stdout, done.stdout
    assert f", {len(left_out)} left out" in done.stdout


def test_a_state_of_more_than_4_mib_is_refused(node: str) -> None:
    """The worker has no pieces, so the message that makes a state so large is a dead letter."""
    with Worker(shlex.join([node, str(ROOT / "tests" / "conformance" / "app.js")])) as worker:
        worker.ready().handshake()
        key, store = stateful.fresh()
        answer = stateful.run(worker, store, key, "add", "keep:" + "x" * (5 << 20), "add")
        assert answer.codes() == [("C525", stateful.STATE, 1)]
        assert stateful.outputs(answer) == [f"add:{key}=1", f"add:{key}=2"]


def test_worker_is_short() -> None:
    lines = [line for file in EXAMPLE.glob("*.js") for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= 110


@pytest.mark.jvm
def test_word_count_runs_on_spark(node: str, tmp_path: Path) -> None:
    """The topology is written by hand; its worker is another process of this machine."""
    document = json.loads((EXAMPLE / "topology.json").read_text(encoding="utf-8"))
    source = random.Random(11)
    words = [source.choice(["one", "two", "three", "four"]) for _ in range(3000)]
    with Receiver() as receiver:
        pipeline = document["pipelines"][0]
        pipeline["sources"][0]["port"] = 0
        pipeline["sinks"][0]["port"] = int(receiver.address.rpartition(":")[2])
        document["workers"][0] |= {"command": [node, "word_count.js"], "directory": str(EXAMPLE)}
        topology = tmp_path / "topology.json"
        topology.write_text(json.dumps(document, indent=2), encoding="utf-8")
        with Run(topology, None, tmp_path / "checkpoint", source="") as run:
            run.ready()
            run.send(framed([" ".join(words[at : at + 10]).encode() for at in range(0, len(words), 10)]))
            lines = receiver.wait_for_lines(len(words), run)
            assert run.stop() == 0, run.said()
    seen: Counter[str] = Counter()
    for line in lines:
        word, _, number = line.partition(": ")
        seen[word] += 1
        assert int(number) == seen[word]
    assert seen == Counter(words)
