"""Branches, and the keys that messages carry; of the application Streams."""

from conformance.application import VECTOR_WINDOWS, WORDS, bucket_of, part, stage
from conformance.check import Context, check
from conformance.session import Answer, BucketStore, call, process, source_frame
from wallaroo.message.frame import encode_frame
from wallaroo.worker._proto import worker_pb2 as pb

FIRST = len(VECTOR_WINDOWS)  # the windows' sources and steps come first
SOURCE, NAME, LEFT, RIGHT, NUMBER, COLLECT, TOTAL = (
    f"0/sources/{FIRST}", *(f"0/steps/{2 * FIRST + at}" for at in range(6))
)  # fmt: skip
SINK = "0/sinks/0"
KEYED, SUNK, ONWARD = 30, 31, 32


def words(context: Context, payloads: list[str], *nodes: pb.Node) -> Answer:
    """Run texts through a stage that begins with their source."""
    data = source_frame(WORDS, [text.encode() for text in payloads], 3)
    description = stage("k", part(SOURCE, "SOURCE", port=WORDS), *nodes)
    (answer,) = process(context.streams, description, [data])
    return answer


def keyed(context: Context, payloads: list[str], *nodes: pb.Node) -> Answer:
    """Return what a KEY exit gives that takes the key of the message, and a sink; nodes come before them."""
    exit_ = part(NUMBER, "KEY", nodes[-1].path, port=KEYED, keys=True)
    return words(context, payloads, *nodes, exit_, part(SINK, "SINK", nodes[-1].path, port=SUNK))


def rows(answer: Answer) -> list[tuple[bytes, int, str]]:
    """Return the key that each message has at the KEY exit, its sequence, and its text at the sink, by sequence."""
    keys, texts = answer.keyed(KEYED), answer.texts(SUNK)
    assert [sequence for sequence, _ in keys] == [sequence for sequence, _ in texts]
    return [(key, sequence, text) for (sequence, key), (_, text) in zip(keys, texts, strict=True)]


@check("branch: a message goes to each reader in the order of the nodes, depth first")
def branch(context: Context) -> None:
    sides = [part(LEFT, "COMPUTATION", SOURCE), part(RIGHT, "COMPUTATION", SOURCE)]
    sink = part(SINK, "SINK", LEFT, RIGHT, port=SUNK)
    assert words(context, ["a", "b"], *sides, sink).texts(SUNK) == [(3, "<a"), (3, "a>"), (4, "<b"), (4, "b>")]
    assert words(context, ["a"], *sides[::-1], sink).texts(SUNK) == [(3, "a>"), (3, "<a")]
    deep = part(RIGHT, "COMPUTATION", LEFT)
    sink = part(SINK, "SINK", SOURCE, RIGHT, port=SUNK)
    got = words(context, ["a", "b"], part(LEFT, "COMPUTATION", SOURCE), deep, sink).texts(SUNK)
    assert got == [(3, "<a>"), (3, "a"), (4, "<b>"), (4, "b")]


@check("branch: counts of a node with two inputs")
def branch_counts(context: Context) -> None:
    sides = [part(LEFT, "COMPUTATION", SOURCE), part(RIGHT, "COMPUTATION", SOURCE)]
    answer = words(context, ["a", "b"], *sides, part(SINK, "SINK", LEFT, RIGHT, port=SUNK))
    found = {each.path: (each.messages_in, each.messages_out) for each in answer.done.counts}
    assert (found[LEFT], found[RIGHT], found[SINK][0]) == ((2, 2), (2, 2), 4)


@check("key_by: a message has the key that the component gives, and goes on as it is")
def key_by(context: Context) -> None:
    answer = keyed(context, ["x:1", "Grüße", "x"], part(NAME, "KEY_BY", SOURCE))
    assert not answer.letters, answer.codes()
    assert rows(answer) == [(b"x", 3, "x:1"), ("Grüße".encode(), 4, "Grüße"), (b"x", 5, "x")]


@check("key_by: a failure is C501 of its path, the others go on")
def key_by_fails(context: Context) -> None:
    answer = keyed(context, ["x", "", "y"], part(NAME, "KEY_BY", SOURCE))
    assert answer.codes() == [("C501", NAME, 4)]
    assert rows(answer) == [(b"x", 3, "x"), (b"y", 5, "y")]


@check("key_by: the key stays with what is made of the message")
def key_stays(context: Context) -> None:
    answer = keyed(context, ["x:1"], part(NAME, "KEY_BY", SOURCE), part(LEFT, "COMPUTATION", NAME))
    assert rows(answer) == [(b"x", 3, "<x:1")]


@check("collect: a message has the empty key, and goes on as it is")
def collect(context: Context) -> None:
    answer = keyed(context, ["x:1", "y"], part(NAME, "KEY_BY", SOURCE), part(COLLECT, "COLLECT", NAME))
    assert not answer.letters, answer.codes()
    assert rows(answer) == [(b"", 3, "x:1"), (b"", 4, "y")]


@check("key: without a partition and without a key a step of this program has the empty key")
def no_key(context: Context) -> None:
    assert words(context, ["x"], part(TOTAL, "KEY", SOURCE, port=KEYED)).keyed(KEYED) == [(3, b"")]


@check("key: frames carry the times of messages where the node says so")
def times(context: Context) -> None:
    exit_ = part(NUMBER, "KEY", NAME, port=KEYED, keys=True, timestamps=True)
    nodes = (part(SOURCE, "SOURCE", port=WORDS), part(NAME, "KEY_BY", SOURCE), exit_)
    data = encode_frame([b"x:1", b"x:2", b"x:3"], port=WORDS, timestamp_ms=1000, timestamps=[5, 0, 700])
    (answer,) = process(context.streams, stage("times", *nodes), [data])
    assert [(each.key, each.time) for each in answer.messages] == [(b"x", 1005), (b"x", 1000), (b"x", 1700)]


@check("state: a single state for all messages of the empty key")
def single(context: Context) -> None:
    made = words(context, ["x", "y", "x"], part(COLLECT, "COLLECT", SOURCE), part(
        TOTAL, "KEY", COLLECT, port=KEYED, keys=True))  # fmt: skip
    entry = part(TOTAL, "STATE_COMPUTATION", port=KEYED, state="total", state_port=KEYED)
    sink = part(SINK, "SINK", TOTAL, port=SUNK)
    store = BucketStore(bucket_of(b""))
    for number in (0, 3):
        answer = call(context.streams, stage("single", entry, sink), store, made.frames[store.bucket])
        assert [text for _, text in answer.texts(SUNK)] == [f"x={number + 1}", f"y={number + 2}", f"x={number + 3}"]
        assert answer.done.keys == 1
        store.commit(answer)


@check("state: the key goes on with what a state step gives")
def key_after_state(context: Context) -> None:
    made = keyed(context, ["x:1"], part(NAME, "KEY_BY", SOURCE))
    entry = part(NUMBER, "STATE_COMPUTATION", port=KEYED, state="number", state_port=KEYED)
    onward = part(TOTAL, "KEY", NUMBER, port=ONWARD, keys=True)
    store = BucketStore(bucket_of(b"x"))
    answer = call(context.streams, stage("k", entry, onward), store, made.frames[store.bucket])
    assert answer.keyed(ONWARD) == [(3, b"x")]
