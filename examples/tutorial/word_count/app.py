"""Counts words: lines come in over TCP, and each word's total goes to the receiver."""

import wallaroo


def application_setup(args: list[str]) -> wallaroo.Application:
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
    """The state of a word: its count. Each word has its own state."""

    def __init__(self) -> None:
        self.count = 0


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> str:
    """Return a line from its bytes, which follow four bytes with their length."""
    return payload.decode()


@wallaroo.computation_multi(name="split")
def split(line: str) -> list[str]:
    """Return the words of a line."""
    return line.lower().split()


@wallaroo.key_extractor
def by_word(word: str) -> str:
    """Return the word as the key. Messages with the same key share a state and are processed in order."""
    return word


@wallaroo.state_computation("count", Total)
def count(word: str, total: Total) -> str:
    """Count a word, and return the word with its total."""
    total.count += 1
    return f"{word} {total.count}"


@wallaroo.encoder
def encode(text: str) -> bytes:
    """Return a text as a line of bytes."""
    return (text + "\n").encode()
