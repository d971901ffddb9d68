"""Messages that end or stall a worker of the engine in memory, and the words that name them."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wallaroo_runtime.case.case import read_case
from wallaroo_runtime.case.run import run_case
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.memory.run import MemoryRun
from wallaroo_runtime.memory.start import start
from wallaroo_runtime.program.application import load_application

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).with_name("poison")
ENDED = "the worker ended while it ran this message; it "
ACTIONS = {
    "first-exit": ("C508", ENDED + "exited with status 3"),
    "state-kill": ("C508", ENDED + "was ended by SIGKILL"),
    "save-exit": ("C508", ENDED + "exited with status 3"),
    "state-hang": ("C509", "no answer within 2 s"),
}
CASE = """app = "../topology.json"
args = []

[[input]]
file = "input.txt"
kind = "hex"
"""


@pytest.fixture(scope="module", params=["app.py", ""], ids=["python", "go"])
def topology(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Emit the program, which then runs as a process in Python, too."""
    path = tmp_path_factory.mktemp("poison") / "topology.json"
    document = load_application(str(FOLDER / request.param), [], "", "").topology.document
    for worker in document["workers"]:
        worker["call_deadline_ms"] = 2000
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.fixture
def started(topology: Path) -> Iterator[Callable[..., MemoryRun]]:
    runs: list[MemoryRun] = []

    def begin(on_error: str = "") -> MemoryRun:
        runs.append(start(str(topology), on_error=on_error))
        return runs[-1]

    yield begin
    for each in runs:
        each.close()


def test_the_message_that_ends_or_stalls_its_worker_is_a_dead_letter(
    started: Callable[..., MemoryRun], request: pytest.FixtureRequest
) -> None:
    is_go = request.node.callspec.id == "go"
    run = started()
    more = 12 if is_go else 1  # deaths than a worker may have whose messages are not found; Python's begins slowly
    texts = ["a ok", *(text for action in ACTIONS for text in (f"a {action}", "a ok")), *["a first-exit"] * more]
    run.send([text.encode() for text in texts])
    assert [record.value for record in run.records()] == [b"a %d\n" % (at + 1) for at in range(5)]
    assert [(each.sequence, each.code, each.error) for each in run.letters] == [
        *((2 * at + 1, *ACTIONS[action]) for at, action in enumerate(ACTIONS)),
        *((9 + at, *ACTIONS["first-exit"]) for at in range(more)),
    ]


def test_the_error_that_stops_the_run_names_the_message(started: Callable[..., MemoryRun]) -> None:
    with pytest.raises(RunError) as caught:
        started("fail").send([b"a ok", b"b state-exit"])
    text, preview = str(caught.value), caught.value.diagnostics[0].message.partition("(")[2].replace("'", "")
    assert text.startswith(f"R611 the query stopped; C508 {ENDED}exited with status 3 (key 'b'; ")
    assert (preview, "Traceback" in text) == ("key b; b state-exit)", False)


def test_a_case_shows_the_message(topology: Path) -> None:
    folder = topology.parent / "case"
    folder.mkdir()
    (folder / "case.toml").write_text(CASE, encoding="utf-8")
    (folder / "input.txt").write_text(b"a first-exit".hex() + "\n", encoding="utf-8")
    found = run_case(read_case(folder, folder), topology)
    assert (
        found.errors[0].replace("b'", "").replace("'", "") == f"C508 poison: {ENDED}exited with status 3 (a first-exit)"
    )
