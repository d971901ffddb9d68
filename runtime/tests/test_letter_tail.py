"""The dead letters of a running query are found once each, wherever their file was cut when it was looked at."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.letter import Kept
from wallaroo.message.frame import DEAD_LETTER_PORT, encode_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.checkpoint.dead_letter import read_letters
from wallaroo_runtime.storage.outbox import letter_tail
from wallaroo_runtime.storage.outbox.refused_record import set_aside

QUERY = "0a1b2c3d-1111-2222-3333-444455556666"


def frame(random: Random) -> bytes:
    values = [
        pb.DeadLetter(sequence=random.randrange(99), code="C501", path="0/steps/0").SerializeToString()
        for _ in range(random.randint(1, 4))
    ]
    return encode_frame(values, port=DEAD_LETTER_PORT)


def append(path: Path, content: bytes, random: Random, tail: letter_tail.LetterTail) -> None:
    with path.open("ab", buffering=0) as file:
        while content:
            cut = random.randint(1, len(content))
            file.write(content[:cut])
            content = content[cut:]
            if random.random() < 0.5:
                tail.look()


@given(st.randoms(use_true_random=False))
def test_each_letter_is_found_once_with_its_id(random: Random) -> None:
    with TemporaryDirectory() as directory:
        folder = Path(directory) / "dead-letters"
        folder.mkdir()
        begun = b"".join(frame(random) for _ in range(random.randint(0, 3)))
        (folder / f"{QUERY}-0-0.frames").write_bytes(begun)
        known = [letter.id for letter in read_letters(folder.parent)]
        tail = letter_tail.LetterTail(folder, (watch := Kept()).add)
        for batch in range(random.randint(1, 3)):
            content = b"".join(frame(random) for _ in range(random.randint(0, 4)))
            append(folder / f"{QUERY}-{batch}-0.frames", content, random, tail)
            if random.random() < 0.5:  # its sink counts and reports these
                letter = pb.DeadLetter(code="R674", path="0/sinks/0", step="out", error="no")
                finding = set_aside(folder, 3, {random.randrange(99): letter})
                ids = [letter.id for letter in read_letters(folder.parent)]
                known.append(next(name for name in ids if f"show {folder.parent} {name}`" in finding.fix))
        tail.look()
        expected = [(letter.id, letter.record) for letter in read_letters(folder.parent) if letter.id not in known]
        assert sorted(watch.found, key=lambda each: each[0]) == sorted(expected, key=lambda each: each[0])
        assert tail.count == len(expected)


@given(st.randoms(use_true_random=False))
def test_letters_that_are_written_again_in_other_frames_count_once(random: Random) -> None:
    """The egress dies before its log has what a file has; started again it cuts that, and gets it in other frames."""
    records = [pb.DeadLetter(sequence=at, code="C501").SerializeToString() for at in range(random.randint(2, 12))]

    def cut() -> bytes:
        ends = sorted({*random.sample(range(1, len(records)), random.randrange(len(records))), len(records)})
        parts = [records[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
        return b"".join(encode_frame(part, port=DEAD_LETTER_PORT) for part in parts)

    with TemporaryDirectory() as directory:
        path = Path(directory) / f"{QUERY}-7-0.frames"
        tail = letter_tail.LetterTail(path.parent, Kept().add)
        path.write_bytes(cut()[: random.randrange(400)])
        tail.look()
        path.write_bytes(whole := cut())
        tail.look()
        path.write_bytes(whole + encode_frame([records[0]], port=DEAD_LETTER_PORT))
        tail.look()
        assert tail.count == len(records) + 1


def test_of_very_many_letters_only_the_first_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letter_tail, "LETTERS_PER_BATCH", 3)
    tail = letter_tail.LetterTail(tmp_path, (watch := Kept()).add)
    random = Random(1)
    (tmp_path / f"{QUERY}-7-0.frames").write_bytes(b"".join(frame(random) for _ in range(50)))
    tail.look()
    assert 3 <= len(watch.found) < 7 < tail.count
    assert watch.news()[0].is_least
