"""A driver that does not see the files of its egress learns of each dead letter, and counts each once."""

import random
from pathlib import Path

import pytest

from support.delivery import Attempt, Receiver, attach
from support.letter import Kept
from support.service import code_of, serving
from wallaroo.message.frame import DEAD_LETTER_PORT, encode_frame
from wallaroo.worker._proto import worker_pb2 as worker
from wallaroo_runtime.checkpoint.dead_letter import read_letters
from wallaroo_runtime.egress import fresh_letter
from wallaroo_runtime.spark.letter_watch import LetterWatch
from wallaroo_runtime.spark.realtime.letters import RemoteLetters
from wallaroo_runtime.storage.outbox.letter_tail import Found
from wallaroo_runtime.storage.remote_outbox import RemoteOutbox


def letters(draw: random.Random, sequence: int, count: int) -> bytes:
    """Return a frame of dead letters, some of which have much in them."""
    found = [
        worker.DeadLetter(
            sequence=sequence + at, code="C501", path="0/steps/0", step="count", error=f"number {sequence + at}",
            input=b"secret" * draw.choice((1, 100_000)), traceback="line\n" * draw.choice((1, 5000)),
        )
        for at in range(count)
    ]  # fmt: skip
    return encode_frame([each.SerializeToString() for each in found], port=DEAD_LETTER_PORT, sequence=sequence)


def sent(attempt: Attempt, draw: random.Random, sequence: int) -> int:
    """Send some letters, of which some come again, as after a death of Java; return the sequence after them."""
    begin = draw.randint(max(0, sequence - 3), sequence)
    end = begin + draw.randint(1, 5)
    attempt.send(letters(draw, begin, end - begin), port=DEAD_LETTER_PORT)
    attempt.settle()
    attempt.end()
    return max(sequence, end)


def perhaps_look(outbox: RemoteOutbox, found: RemoteLetters, draw: random.Random) -> None:
    if draw.random() < 0.5:
        outbox.fresh_letters(0)  # an answer that is lost
        found.look()


@pytest.mark.parametrize("seed", range(4))
def test_each_letter_is_counted_and_shown_once(tmp_path: Path, seed: int) -> None:
    draw, receiver, sequence, number = random.Random(seed), Receiver(), 0, 0
    counted, shown, lost = 0, Found(), 0
    for life in range(3):
        with serving("egress", tmp_path) as place:
            attach(place, receiver, driver=f"d{life}")
            outbox = RemoteOutbox(place.service)
            watch = Kept()
            found = RemoteLetters(outbox, before := outbox.letters(), watch.add)
            assert before == sequence
            for _ in range(5):
                sequence = sent(Attempt(place.service, attempt=(number := number + 1)), draw, sequence)
                perhaps_look(outbox, found, draw)
            found.look()
            found.look()
            counted, lost = counted + found.count, lost + found.count - len(watch.found)
            shown += watch.found
    receiver.close()
    assert counted == sequence
    assert lost == 0
    assert [letter.error for _, letter in shown] == [f"number {at}" for at in range(sequence)]
    assert [name for name, _ in shown] == [letter.id for letter in read_letters(tmp_path)]
    assert not any(letter.input for _, letter in shown)
    assert max(letter.ByteSize() for _, letter in shown) < 5000


def test_of_very_many_letters_some_are_shown_and_all_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fresh_letter, "MOST_LETTERS", 7)
    receiver = Receiver()
    with serving("egress", tmp_path) as place:
        attach(place, receiver)
        watch = LetterWatch()
        found = RemoteLetters(RemoteOutbox(place.service), 0, watch.add)
        attempt = Attempt(place.service)
        attempt.send(letters(random.Random(1), 0, 50), port=DEAD_LETTER_PORT)
        attempt.settle()
        found.look()
        (first,) = watch.news()
        assert (found.count, first.count, first.is_least) == (50, 1, True)
        attempt.end()
    receiver.close()


def test_letters_that_no_answer_has_room_for_come_with_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fresh_letter, "MOST_BYTES", 5000)
    receiver = Receiver()
    with serving("egress", tmp_path) as place:
        attach(place, receiver)
        watch = Kept()
        found = RemoteLetters(RemoteOutbox(place.service), 0, watch.add)
        attempt = Attempt(place.service)
        attempt.send(letters(random.Random(1), 0, 50), port=DEAD_LETTER_PORT)
        attempt.settle()
        looks = 0
        while len(watch.found) < 50:
            assert (looks := looks + 1) <= 50
            found.look()
            assert found.count == 50
        assert looks > 1
        assert [letter.error for _, letter in watch.found] == [f"number {at}" for at in range(50)]
        attempt.end()
    receiver.close()


def test_an_egress_that_is_away_is_asked_later_and_another_driver_never(tmp_path: Path) -> None:
    receiver = Receiver()
    with serving("egress", tmp_path) as place:
        attach(place, receiver)
        outbox = RemoteOutbox(place.service)
        attach(place, receiver, driver="d2")
        assert code_of(lambda: outbox.fresh_letters(0)) == "R644"
        assert code_of(outbox.published) == "R644"
    away = RemoteLetters(RemoteOutbox(place.service), 0, Kept().add)
    away.look()
    assert away.count == 0
    receiver.close()
