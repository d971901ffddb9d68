"""Rules that a worker may break in what it answers, by name: each changes a reply of `plain_worker.py`."""

import threading

from wallaroo.message.frame import encode_frame, read_frame

PRIVATE = 16


def changed(name, value):
    """Return a fault that changes a field of each output."""

    def change(reply):
        if reply.WhichOneof("kind") == "output":
            setattr(reply.output, name, value)

    return change


def changed_frame(change):
    """Return a fault that changes the frame of each output."""

    def fault(reply):
        if reply.WhichOneof("kind") == "output":
            reply.output.frame = change(reply.output.frame)

    return fault


def changed_count(at, name):
    """Return a fault that counts one message too many."""

    def change(reply):
        if reply.WhichOneof("kind") == "done":
            count = reply.done.counts[at]
            setattr(count, name, getattr(count, name) + 1)

    return change


def without_counts(reply):
    """Count nothing."""
    if reply.WhichOneof("kind") == "done":
        del reply.done.counts[:]


def no_more(reply):
    """Let the last reply of a call never come."""
    if reply.WhichOneof("kind") == "done":
        threading.Event().wait()


def out_of_turn(reply):
    """Answer another call."""
    getattr(reply, reply.WhichOneof("kind")).index += 1


def other_port(frame):
    """Return the frame with another port in its header."""
    found = read_frame(frame)
    return encode_frame(found.values(), port=77, encoding=PRIVATE, keys=found.keys, key_indexes=found.key_indexes)


def keyless(frame):
    """Return the frame without its keys."""
    found = read_frame(frame)
    return encode_frame(found.values(), port=found.header.port, encoding=PRIVATE)


WRONG = {
    **{f"bucket {number}": changed("bucket", number) for number in (-1, 0, 2, 99)},
    "port": changed("port", 55),
    "index": out_of_turn,
    "no done": no_more,
    "damage": changed_frame(lambda frame: frame[:-1] + bytes((frame[-1] ^ 1,))),
    "cut": changed_frame(lambda frame: frame[:-1]),
    "two frames": changed_frame(lambda frame: frame + frame),
    "frame port": changed_frame(other_port),
    "no keys": changed_frame(keyless),
    "no counts": without_counts,
    "in": changed_count(0, "messages_in"),
    "out": changed_count(0, "messages_out"),
    "sink": changed_count(-1, "messages_out"),
    "dead": changed_count(-1, "dead_letters"),
}
