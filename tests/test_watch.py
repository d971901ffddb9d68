"""`wallaroo run --watch`: a program that is edited while it runs, on a Spark that stays."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.kafka import free_port
from support.run import Receiver, Run, dial, framed, wallaroo
from wallaroo_runtime.checkpoint.lock import LOCK

APP = """
import os
from pathlib import Path

import wallaroo
from label import LABEL

if os.environ["WALLAROO_MODE"] == "emit":
    with Path(__file__).with_name("loads").open("a") as loads:
        loads.write("x")

def application_setup(args):
    ins, outs = wallaroo.tcp_parse_input_addrs(args)[0], wallaroo.tcp_parse_output_addrs(args)[0]
    return wallaroo.build_application(
        "NAME",
        wallaroo.source("lines", wallaroo.TCPSourceConfig(*ins, decode)).key_by(key).to(count)
        .to_sink(wallaroo.TCPSinkConfig(*outs, encode)))

class Count:
    value = 0

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(data):
    return data.decode()

@wallaroo.key_extractor
def key(line):
    return line

@wallaroo.state_computation("count", state=Count)
def count(line, state):
    state.value += 1
    return f"{line} {state.value} {LABEL}"

@wallaroo.encoder
def encode(line):
    return line + "\\n"
"""
FAILS_IN_WORKER = "if os.environ['WALLAROO_MODE'] == 'worker':\n    import no_such_module\n"
NEEDS_KAFKA = """
def application_setup(args):
    outs, topic = wallaroo.tcp_parse_output_addrs(args)[0], wallaroo.KafkaSourceConfig("topic", [("127.0.0.1", 1)])
    return wallaroo.build_application(
        "Watched", wallaroo.source("lines", topic).key_by(key).to(count).to_sink(wallaroo.TCPSinkConfig(*outs, encode)))
"""
FAILS = """
@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(data):
    raise ValueError(data)
"""
KEPT = {"broken": "1 / 0\n", "for Kafka": NEEDS_KAFKA}
EDITS = ["label", "label", "failing", "broken in worker", *KEPT, "other"]


class Editor:
    """Someone who edits the program of a run: in its own file, or in one that it imports."""

    def __init__(self, folder: Path) -> None:
        self._app, self._label = folder / "app.py", folder / "label.py"
        self.label = ""
        self.write()
        self.name(0)

    def write(self, name: str = "Watched", more: str = "") -> None:
        self._app.write_text(APP.replace("NAME", name) + more)

    def name(self, number: int) -> None:
        self.label = "v" + "x" * number  # each file has another size: two may be written at one moment of its clock
        self._label.write_text(f'LABEL = "{self.label}"\n')


def told(run: Run, state: str) -> int:
    return sum(report.get("state") == state for report in run.reports)


def starts(run: Run) -> int:
    return told(run, "initialized")


def dead_letters(run: Run) -> int:
    return max((report.get("dead_letters", 0) for report in run.reports), default=0)


def after(run: Run, count: Callable[[], int], edit: Callable[[], None]) -> None:
    """Edit, and wait until something has been counted once more."""
    before = count()
    edit()
    run.wait_while_alive(lambda: count() > before, lambda: "what follows from the edit")


@pytest.mark.jvm
@pytest.mark.long
@settings(max_examples=1, deadline=None)
@example(edits=["for Kafka", "failing", "broken in worker", "label"], keys=list("abcabc"))
@given(
    # Not Hypothesis' first example, which has one edit three times.
    edits=st.lists(st.sampled_from(EDITS), min_size=3, max_size=6).filter(lambda edits: len(set(edits)) > 1),
    keys=st.lists(st.sampled_from("abc"), min_size=6),
)
def test_each_message_meets_the_program_as_it_was_last_saved(
    tmp_path_factory: pytest.TempPathFactory, edits: list[str], keys: list[str]
) -> None:
    folder, port = tmp_path_factory.mktemp("watch"), free_port()
    editor, counts, expected, failed = Editor(folder), Counter[str](), [], 0
    is_live, is_failing, edits_made = True, False, 0
    options = ("--watch", "--fresh")
    with Receiver() as receiver, Run(folder / "app.py", receiver, folder / "checkpoint", *options,
                                     source=f"127.0.0.1:{port}") as run:  # fmt: skip
        run.ready()
        for number, edit in enumerate(["none", *edits, "label"]):
            if edit == "label":  # a program that was broken, or another one, is right again, too
                after(run, lambda: starts(run), lambda number=number: (editor.name(number), editor.write()))  # type: ignore[misc]
                is_live, is_failing = True, False
            elif edit == "failing" and is_live and not is_failing:
                after(run, lambda: starts(run), lambda: editor.write(more=FAILS))
                is_failing = True
            elif edit == "broken in worker" and is_live:  # known when the run before has ended
                after(run, lambda: told(run, "waiting"), lambda: editor.write(more=FAILS_IN_WORKER))
                is_live = False
            elif edit in KEPT and is_live:
                after(run, lambda: told(run, "kept"), lambda edit=edit: editor.write(more=KEPT[edit]))  # type: ignore[misc]
            elif edit == "other" and is_live:
                after(run, lambda: told(run, "kept"), lambda: editor.write("Other"))  # the checkpoint refuses it
            else:
                edits_made -= 1
            edits_made += 1
            if not is_live:
                continue
            lines = keys[number::2]
            with dial(("127.0.0.1", port)) as connection:
                connection.sendall(framed(line.encode() for line in lines))
            if is_failing:  # with nothing but dead letters the run ends with R741 when the next program is to be run
                failed += len(lines)
                run.wait_while_alive(lambda failed=failed: dead_letters(run) == failed, lambda: "the dead letters")  # type: ignore[misc]
                continue
            counts.update(lines)
            for key in set(lines):
                most = counts[key]
                expected += [f"{key} {count} {editor.label}" for count in range(most - lines.count(key) + 1, most + 1)]
            receiver.wait_for_lines(len(expected), run)
        assert run.stop() == 0, run.said()
    assert sorted(receiver.lines()) == sorted(expected)
    assert len((folder / "loads").read_text()) == 1 + edits_made, "each change is loaded once"
    assert all("time" in report for report in run.reports)


@pytest.mark.jvm
@pytest.mark.long
def test_a_program_that_was_broken_at_first_starts_over_where_that_was_asked_for(tmp_path: Path) -> None:
    editor, checkpoint = Editor(tmp_path), tmp_path / "checkpoint"
    checkpoint.mkdir()
    old = checkpoint / "old"
    for path in (checkpoint / LOCK, old):
        path.touch()
    editor.write(more=KEPT["broken"])
    with Receiver() as receiver, Run(tmp_path / "app.py", receiver, checkpoint, "--watch", "--fresh") as run:
        run.wait_while_alive(lambda: told(run, "waiting") > 0, lambda: "it cannot be loaded")
        assert old.exists()
        after(run, lambda: not old.exists(), editor.write)
        assert run.stop() in (0, 130), run.said()  # it may be ready by now


@pytest.mark.jvm
def test_a_signal_while_the_run_before_ends_starts_nothing_more(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    with Receiver() as receiver, Run(tmp_path / "app.py", receiver, tmp_path / "checkpoint", "--watch") as run:
        run.ready()
        after(run, lambda: told(run, "changed"), lambda: editor.name(1))
        assert run.stop() == 0, run.said()
        assert starts(run) == 1


@pytest.mark.jvm
@pytest.mark.long
def test_an_archive_that_is_packed_again_is_run(tmp_path: Path) -> None:
    editor, archive = Editor(tmp_path), tmp_path / "packed" / "app.tar.gz"

    def pack() -> None:
        places = ("--in", f"127.0.0.1:{port}", "--out", receiver.address)
        packed = wallaroo("pack", tmp_path / "app.py", "-o", tmp_path / "new.tar.gz", *places)
        assert packed.returncode == 0, packed.stderr
        (tmp_path / "new.tar.gz").replace(archive)

    archive.parent.mkdir()
    port = free_port()
    with Receiver() as receiver:
        pack()
        with Run(archive, receiver, tmp_path / "checkpoint", "--watch", source=f"127.0.0.1:{port}") as run:
            run.ready()
            editor.name(1)
            after(run, lambda: starts(run) + told(run, "waiting"), pack)
            assert starts(run) == 2, run.said()
            with dial(("127.0.0.1", port)) as connection:
                connection.sendall(framed([b"a"]))
            receiver.wait_for_lines(1, run)
            assert receiver.lines() == [f"a 1 {editor.label}"]
            assert run.stop() == 0, run.said()
