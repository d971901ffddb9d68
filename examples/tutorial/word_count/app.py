"""Counts words: lines come in over TCP, and each word's total goes to the receiver."""

import wallaroo


def application_setup(args):
    """Declare the application; `wallaroo run` calls this."""
    totals = (
        wallaroo.source("lines", wallaroo.TCPSourceConfig("127.0.0.1", 7010, decode))
        .to(split)
        .key_by(by_word)
        .to(count)
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode))
    )
    return wallaroo.build_application("Word count", totals)


class Total:
    """The state of a word; each word has one of its own."""

    def __init__(self):
        self.count = 0


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    """Make a message of the bytes that follow the four bytes of length."""
    return payload.decode()


@wallaroo.computation_multi(name="split")
def split(line):
    """Return any number of messages for one."""
    return line.lower().split()


@wallaroo.key_extractor
def by_word(word):
    """Return the key: messages of one key meet the same state, in order."""
    return word


@wallaroo.state_computation("count", Total)
def count(word, total):
    """Change the state of the word, and return a message."""
    total.count += 1
    return f"{word} {total.count}"


@wallaroo.encoder
def encode(text):
    """Make bytes of a message, the newline included."""
    return (text + "\n").encode()
