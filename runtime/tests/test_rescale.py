"""Sorting logs by other buckets, and what refuses a rescale before anything is changed."""

from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wallaroo.message import state_piece
from wallaroo.message.frame import encode_frame, read_frame
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.spark_log import pending_batch
from wallaroo_runtime.storage.state_log import entries_of, latest_states
from wallaroo_runtime.system.stop import Ended
from wallaroo_runtime.topology.load import load

WORD_COUNT = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid" / "word_count.json"


def open_checkpoint(path: Path) -> Checkpoint:
    place = HeldDirectory.take(path)
    try:
        return Checkpoint.open(place, load(WORD_COUNT.read_bytes()), shuffle_partitions=3, buckets_per_partition=4)
    finally:
        place.release()


def entry(states: dict[bytes, bytes | None], port: int = 1, encoding: int = 17) -> bytes:
    keys = list(states)
    absent = [number for number, value in enumerate(states.values()) if value is None]
    values = [value or b"" for value in states.values()]
    return encode_frame(values, port=port, encoding=encoding, keys=keys, key_indexes=range(len(keys)), absent=absent)


def test_the_last_entry_of_a_key_counts_and_a_key_without_state_is_gone() -> None:
    entries = [
        entry({b"a": b"1", b"b": b"2", b"c": b""}),
        entry({b"a": b"3"}, port=2, encoding=16),
        entry({b"b": None, b"a": b"4"}),
        entry({b"d": b"5"}),
        entry({b"d": None}),
        entry({b"d": b"6"}),
    ]
    expected = {(1, b"a"): (17, b"4"), (1, b"c"): (17, b""), (2, b"a"): (16, b"3"), (1, b"d"): (17, b"6")}
    assert latest_states(entries) == expected


@settings(max_examples=50, deadline=None)
@given(
    states=st.dictionaries(st.tuples(st.integers(1, 2), st.binary(max_size=3)), st.binary(max_size=60), max_size=20),
    piece_bytes=st.integers(1, 30),
    cut=st.integers(0, 99),
)
def test_a_log_has_its_states(states: dict[tuple[int, bytes], bytes], piece_bytes: int, cut: int) -> None:
    expected = {key: (17, value) for key, value in states.items()}
    assert latest_states(entries_of(expected)) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_piece, "PIECE_BYTES", piece_bytes)
        pieces = [
            entry
            for (port, key), value in states.items()
            for entry in state_piece.write_pieces(value, key=key, port=port, encoding=17)
        ]
    assert latest_states(pieces) == expected
    parts = [at for at, data in enumerate(pieces) if read_frame(data).headers]
    if parts:
        at = parts[cut % len(parts)]
        with pytest.raises(RunError, match="R664"):
            latest_states(data for number, data in enumerate(pieces) if number != at)


def test_a_damaged_log_is_told() -> None:
    with pytest.raises(RunError, match="R664 the state was not moved; the checkpoint is as before; the log of a bu"):
        latest_states([entry({b"a": b"1"})[:-1] + b"x"])


def plan_batch(path: Path, batch: int, log_name: str = "offsets") -> None:
    folder = path / "spark" / log_name
    folder.mkdir(exist_ok=True)
    (folder / str(batch)).write_text("v1\n{}\n{}", encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("change", [("--partitions", "5"), ("--mode", "realtime")])
def test_the_first_micro_batch_must_be_finished_first(
    change: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    open_checkpoint(tmp_path)
    plan_batch(tmp_path, 0)
    assert pending_batch(tmp_path / "spark") == 0
    before = (tmp_path / "application.json").read_bytes()
    assert main(["state", "rescale", str(tmp_path), *change]) == 2
    said = capsys.readouterr().err
    assert f"R663 checkpoint {tmp_path} cannot be rescaled; micro-batch 0 is planned and not committed\n" in said
    assert "fix: run it once more with --mode microbatch --stop-when-idle 5, then repeat this command" in said
    assert (tmp_path / "application.json").read_bytes() == before


@pytest.mark.slow
def test_a_checkpoint_without_state_gets_the_numbers_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_checkpoint(tmp_path)
    assert main(["state", "rescale", str(tmp_path), "--partitions", "5", "--buckets", "2"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("5 shuffle partitions of 2 buckets, were 3 of 4; no state to move, in ")
    checkpoint = open_checkpoint(tmp_path)
    assert (checkpoint.manifest.numbers, checkpoint.manifest.spark) == ((5, 2), "spark")


@pytest.mark.slow
@pytest.mark.parametrize("change", [("--buckets", "5"), ("--mode", "realtime")])
def test_a_changed_application_that_has_processed_nothing_is_refused(
    change: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    open_checkpoint(tmp_path)
    for operator in "01":
        (tmp_path / "spark" / "state" / operator).mkdir(parents=True)
    assert main(["state", "rescale", str(tmp_path), *change]) == 2
    reason = "its last run had a changed application and has processed nothing"
    assert f"R663 checkpoint {tmp_path} cannot be rescaled; {reason}" in capsys.readouterr().err


@pytest.mark.slow
def test_a_checkpoint_that_is_in_use_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_checkpoint(tmp_path)
    place = HeldDirectory.take(tmp_path)
    try:
        assert main(["state", "rescale", str(tmp_path), "--buckets", "5"]) == 1
    finally:
        place.release()
    assert "is in use by another run (process" in capsys.readouterr().err


@pytest.mark.slow
def test_a_signal_is_confirmed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_checkpoint(tmp_path)
    monkeypatch.setattr("wallaroo_runtime.maintenance.rescale._rescale", Mock(side_effect=Ended(143)))
    assert main(["state", "rescale", str(tmp_path), "--buckets", "5"]) == 143
    assert capsys.readouterr().err == (
        "rescaling; the checkpoint changes at the end\n"
        "stopped; the checkpoint is as before, or rescaled: give the command again\n"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["s3a://bucket/c", "--buckets", "5"],
            "R608 --checkpoint s3a://bucket/c needs a remote gateway",
        ),
        (["c"], "R608 nothing says what shall change"),
        (["c", "--partitions", "0"], "R608 argument --partitions: '0' is not a number from 1 to 10000"),
        (["c", "--buckets", "1025"], "R608 argument --buckets: '1025' is not a number from 1 to 1024"),
    ],
)
def test_what_the_command_line_cannot_ask_for(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["state", "rescale", *arguments]) == 2
    assert text in capsys.readouterr().err
