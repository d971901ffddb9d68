"""What the end of a worker's process shows about a message."""

import json
import os
import signal
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from wallaroo_runtime.worker.flight import OUTSIDE, FlightFile, InFlight, Mark
from wallaroo_runtime.worker.poison import Cause, Ending, Quarantine, Suspect, look_back


def noted(directory: Path, *words: int) -> FlightFile:
    """Return a file in which a worker has noted something."""
    file = FlightFile(directory)
    file.path.write_bytes(struct.pack("<4Q", *words, 0))
    return file


def test_messages_at_work_in_the_process_that_ended_first(tmp_path: Path) -> None:
    here, there, rest = noted(tmp_path, 3, 8, 100), noted(tmp_path, 0, 1, 101), noted(tmp_path, 5, 0, 100)
    assert look_back(tmp_path, 100, 3) == (3, {here.path.name: (3, 7)})
    (tmp_path / "ended.json").write_text(json.dumps({"process_id": 101, "status": -11}))
    assert look_back(tmp_path, 100, 1) == (-11, {there.path.name: (0, 0)})
    assert not (tmp_path / "ended.json").exists()
    (tmp_path / "ended.json").write_text("{")
    assert look_back(tmp_path, 100, 1) == (1, {})
    for file in (here, there, rest):
        file.close()
    assert look_back(tmp_path, 102, 3) == (3, {})
    assert not list(tmp_path.iterdir())
    assert here.read() == Mark()


def test_a_message_of_a_stream_that_was_given_up_is_a_suspect(tmp_path: Path) -> None:
    """Its user code still runs, and may end the process while a message of another stream is in flight."""
    given_up, at_rest, other = noted(tmp_path, 3, 8, 100), noted(tmp_path, 4, 0, 100), noted(tmp_path, 1, 5, 100)
    given_up.close()
    at_rest.close()
    status, found = look_back(tmp_path, 100, 4)
    suspect = Ending(status, "", found, is_excused=True).suspect(other.path.name)
    assert suspect is not None
    assert suspect.is_shared
    assert list(tmp_path.iterdir()) == [other.path]
    other.close()


@pytest.mark.slow
def test_files_of_a_client_that_was_killed_are_removed(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    (tmp_path / f"flight-{gone.pid}-0").write_bytes(struct.pack("<4Q", 0, 1, 100, 0))
    assert look_back(tmp_path, 100, 3) == (3, {f"flight-{gone.pid}-0": (0, 0)})
    assert not list(tmp_path.iterdir())


def test_what_counts_as_progress(tmp_path: Path) -> None:
    mine, other = noted(tmp_path, 3, 8, 100), noted(tmp_path, 0, 4, 100)
    assert mine.look() == (Mark(3, 8, 100), InFlight.OWN)
    mine.path.write_bytes(struct.pack("<4Q", 3, 0, 100, 0))
    before, flying = mine.look()
    assert flying is InFlight.OTHER
    other.path.write_bytes(struct.pack("<4Q", 0, 5, 100, 0))
    assert mine.look()[0] != before
    other.path.write_bytes(struct.pack("<4Q", 0, 0, 100, 0))
    assert mine.look()[1] is InFlight.NONE
    for process, expected in ((100, InFlight.OTHER), (99, InFlight.NONE)):
        given_up = noted(tmp_path, 0, 4, process)
        given_up.close()
        assert mine.look()[1] is expected, "a message in a process that is gone is in nobody's way"
        (tmp_path / f"{given_up.path.name}.left").unlink()
    mine.close()
    other.close()


@pytest.mark.parametrize(
    ("status", "killed_for", "cause"),
    [
        (0, "", Cause.CRASHED),
        (3, "", Cause.CRASHED),
        (-signal.SIGSEGV, "", Cause.CRASHED),
        (-signal.SIGABRT, "", Cause.CRASHED),
        (-signal.SIGKILL, "", Cause.KILLED),
        (-signal.SIGTERM, "", Cause.KILLED),
        (-signal.SIGKILL, "another stream's call hung", None),
    ],
)
def test_causes(status: int, killed_for: str, cause: Cause | None) -> None:
    ending = Ending.from_json(json.loads(json.dumps(Ending(status, killed_for, {"a": (1, 2)}, False).to_json())))
    suspect = ending.suspect("a")
    assert (suspect and (suspect.index, suspect.ordinal, suspect.cause)) == (cause and (1, 2, cause))
    assert ending.suspect("b") is None


def suspected(cause: Cause, ordinal: int = 2, is_shared: bool = False) -> Suspect:
    return Suspect(0, ordinal, cause, "it exited with status 3", is_shared)


def test_a_message_that_hung_or_crashed_is_skipped_at_once() -> None:
    quarantine = Quarantine()
    assert quarantine.learn(suspected(Cause.CRASHED))
    assert quarantine.learn(Suspect(0, 5, Cause.HUNG, "2"))
    assert [(skip.ordinal, skip.code, skip.reason) for skip in quarantine.skips] == [
        (2, "C508", "the worker ended while it ran this message; it exited with status 3"),
        (5, "C509", "no answer within 2 s"),
    ]
    assert not quarantine.is_alone
    with pytest.raises(ValueError, match="it runs message 5 of a call, which it was asked to skip"):
        quarantine.learn(suspected(Cause.CRASHED, 5))


def test_one_of_several_suspects_is_run_alone_first() -> None:
    quarantine = Quarantine()
    assert not quarantine.learn(suspected(Cause.CRASHED, is_shared=True))
    assert quarantine.is_alone
    assert quarantine.learn(suspected(Cause.CRASHED, 9, is_shared=True)), "alone it was, whatever else was noted"
    assert [skip.ordinal for skip in quarantine.skips] == [9]


def test_a_signal_from_outside_tells_against_the_same_message_only() -> None:
    quarantine = Quarantine()
    for ordinal in (2, 3, 2):
        assert not quarantine.learn(suspected(Cause.KILLED, ordinal)), "it is another message than before"
    assert quarantine.is_alone
    assert quarantine.learn(suspected(Cause.KILLED, 2))
    assert not quarantine.is_alone


def test_what_runs_for_no_message_makes_the_call_careful_and_then_is_beyond_help() -> None:
    hung, crashed = (suspected(cause, OUTSIDE - 1) for cause in (Cause.HUNG, Cause.CRASHED))
    shared, killed = suspected(Cause.CRASHED, OUTSIDE - 1, is_shared=True), suspected(Cause.KILLED, OUTSIDE - 1)
    quarantine = Quarantine()
    assert not quarantine.learn(killed)
    assert not quarantine.is_careful, "a signal from outside reports nothing"
    assert not quarantine.is_beyond(crashed)
    assert not quarantine.learn(crashed)
    assert (quarantine.is_careful, quarantine.is_alone, quarantine.skips) == (True, False, [])
    assert [quarantine.is_beyond(suspect) for suspect in (hung, crashed, shared, killed)] == [True, True, False, False]
    assert not quarantine.learn(shared), "a neighbour may have ended it"
    assert quarantine.is_alone
    assert quarantine.is_beyond(shared)
    assert quarantine.learn(suspected(Cause.CRASHED, 4)), "the message that spoils its state is in flight"
    assert quarantine.is_careful
    other = Quarantine()
    assert other.learn(hung)
    assert other.is_careful


def test_the_worker_s_note_is_read(tmp_path: Path) -> None:
    file = FlightFile(tmp_path)
    assert file.note() == ""
    content = file.path.read_bytes()
    assert len(content) == 256
    file.path.write_bytes(content[:32] + b"wrote the state".ljust(224, b"\0"))
    assert file.note() == "wrote the state"
    file.close()
    assert file.note() == ""


def test_the_client_names_its_process(tmp_path: Path) -> None:
    file = FlightFile(tmp_path)
    assert file.path.name.startswith(f"flight-{os.getpid()}-")
    assert file.read() == Mark()
    file.close()
    file.close()


# The table of `Quarantine`, for those that have skipped nothing yet: cause, whether another message was in flight,
# whether the call ran alone, whether the same message was there at the signal before -> skipped, alone.
TABLE = {
    (Cause.HUNG, shared, alone, again): (True, False)
    for shared in (False, True) for alone in (False, True) for again in (False, True)
} | {
    (Cause.CRASHED, shared, alone, again): (alone or not shared, shared and not alone)
    for shared in (False, True) for alone in (False, True) for again in (False, True)
} | {
    (Cause.KILLED, shared, alone, again): (again, not again)
    for shared in (False, True) for alone in (False, True) for again in (False, True)
}  # fmt: skip
EVENTS = some.tuples(some.sampled_from(Cause), some.sampled_from((0, 1, OUTSIDE - 1)), some.booleans())


@given(some.lists(EVENTS, max_size=8))
def test_drawn_histories_follow_the_table(events: list[tuple[Cause, int, bool]]) -> None:
    quarantine = Quarantine()
    killed, alone, careful, skipped = -1, False, False, list[int]()
    for cause, ordinal, shared in events:
        suspect = suspected(cause, ordinal, shared)
        if ordinal == OUTSIDE - 1:
            hopeless = cause is Cause.HUNG or cause is Cause.CRASHED and (alone or not shared)
            assert quarantine.is_beyond(suspect) == (careful and hopeless)
            careful, alone = careful or cause is not Cause.KILLED, shared and cause is Cause.CRASHED
            assert quarantine.learn(suspect) == (cause is Cause.HUNG)
        elif ordinal in skipped:
            with pytest.raises(ValueError, match="asked to skip"):
                quarantine.learn(suspect)
        else:
            is_skipped, alone = TABLE[cause, shared, alone, killed == ordinal]
            assert quarantine.learn(suspect) == is_skipped
            skipped += [ordinal] if is_skipped else []
            killed = ordinal if cause is Cause.KILLED and not is_skipped else -1
        assert [skip.ordinal for skip in quarantine.skips] == skipped
        assert (quarantine.is_alone, quarantine.is_careful) == (alone, careful)
