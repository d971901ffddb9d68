"""Messages of dead letters that run again."""

from conformance.application import COUNT, FIRST, SECOND, part, stage
from conformance.check import Context, check
from conformance.keys import NUMBER
from conformance.session import TIME_MS, Answer, call, process
from conformance.stateful import fresh, run
from conformance.stateless import words
from conformance.visit import keys_of_one_bucket, messages, visit
from conformance.visit import run as run_visits
from wallaroo.frame import encode_frame
from wallaroo.worker._proto import worker_pb2 as pb

REPLAY = 65532
LOST = 250  # a private encoding that no program has


def frame(letter: pb.DeadLetter, port: int, encoding: int | None = None) -> bytes:
    """Return the message of a dead letter as it enters again."""
    keys = [letter.key] if letter.has_key else []
    return encode_frame(
        [letter.input], port=port, sequence=9, encoding=letter.encoding if encoding is None else encoding,
        timestamp_ms=TIME_MS, keys=keys, key_indexes=[0] * len(keys), sequences=[0],
    )  # fmt: skip


def entered(context: Context, letter: pb.DeadLetter, encoding: int | None = None) -> Answer:
    """Run the message of a step without state, or of a sink, at that part again."""
    known = {node.path: node for each in (FIRST, SECOND) for node in each.nodes if node.kind not in (1, 4, 5)}
    entry = part(f"{letter.path}/replay", "RECEIVE", port=REPLAY)
    node = pb.Node()
    node.CopyFrom(known[letter.path])
    node.inputs[:] = [entry.path]
    (answer,) = process(context.worker, stage("replay", entry, node), [frame(letter, REPLAY, encoding)])
    return answer


def same(letter: pb.DeadLetter, answer: Answer) -> None:
    """Assert that a message has failed as before."""
    assert answer.codes() == [(letter.code, letter.path, 9)], answer.codes()
    (again,) = answer.letters
    assert (again.input, again.encoding, again.preview) == (letter.input, letter.encoding, letter.preview)


@check("replay: messages of computations, keys and sinks enter again")
def stateless(context: Context) -> None:
    (answer,) = process(context.worker, FIRST, [words("raise", "raise multi", "a,,b")])
    assert [letter.path for letter in answer.letters] == ["0/steps/0", "0/steps/1", "0/steps/2"], answer.codes()
    key, store = fresh()
    unencoded = run(context.worker, store, key, "unencodable").letters
    assert len(unencoded) == 1
    for letter in (*answer.letters, *unencoded):
        same(letter, entered(context, letter))


@check("replay: messages of state computations enter again with their key")
def stateful(context: Context) -> None:
    key, store = fresh()
    (letter,) = run(context.worker, store, key, "add", "boom").letters
    same(letter, call(context.worker, SECOND, store, [frame(letter, COUNT)]))


@check("replay: a private encoding that the program does not read is a dead letter, not damage")
def lost(context: Context) -> None:
    (answer,) = process(context.worker, FIRST, [words("raise")])
    again = entered(context, answer.letters[0], LOST)
    assert [(code in ("C504", "C505"), path) for code, path, _ in again.codes()] == [(True, "0/steps/0/replay")]
    key, store = fresh()
    (letter,) = run(context.worker, store, key, "boom").letters
    again = call(context.worker, SECOND, store, [frame(letter, COUNT, LOST)])
    assert [(code, path) for code, path, _ in again.codes()] == [("C504", "0/steps/2")], again.codes()


@check("visit: the input of a dead letter has encoding 0, so that it is not taken for a message")
def of_visit(context: Context) -> None:
    (a,), store = keys_of_one_bucket(1)
    run_visits(context, store, [messages(context, [a])])
    (letter,) = run_visits(context, store, [visit("add", "12", 5)]).letters
    assert (letter.path, letter.encoding, letter.input) == (NUMBER, 0, b"12"), letter
