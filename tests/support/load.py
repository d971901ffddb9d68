"""Loads for the word count and the alphabet, and what their output must be."""

from collections import Counter
from collections.abc import Callable

WORDS = [f"word{number}" for number in range(40)]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def word_messages(count: int) -> tuple[list[bytes], int, Callable[[bytes], None]]:
    """Return messages of two words, the bytes of the output, and its check."""
    pairs = [f"{WORDS[i % 40]} {WORDS[(i * 7 + i // 40) % 40]}" for i in range(count)]
    expected = Counter(word for pair in pairs for word in pair.split(" "))
    size = sum(len(f"{word} => {n}\n") for word, total in expected.items() for n in range(1, total + 1))

    def check(data: bytes) -> None:
        counts: Counter[str] = Counter()
        for line in data.decode().splitlines():
            word, _, count = line.partition(" => ")
            counts[word] += 1
            assert int(count) == counts[word], line
        assert counts == expected

    return [pair.encode() for pair in pairs], size, check


def vote_messages(count: int) -> tuple[list[bytes], int, Callable[[bytes], None]]:
    """Return votes for letters, the bytes of the output, and its check."""
    votes = [(LETTERS[i % 26], i % 1000) for i in range(count)]

    def check(data: bytes) -> None:
        last = dict.fromkeys(LETTERS, 0)
        left = {letter: [count for other, count in votes if other == letter] for letter in LETTERS}
        for rows in left.values():
            rows.reverse()
        for at in range(0, len(data), 13):
            letter, total = data[at + 4 : at + 5].decode(), int.from_bytes(data[at + 5 : at + 13], "big")
            last[letter] += left[letter].pop()
            assert total == last[letter], f"{letter} {total}"
        assert not any(left.values())

    messages = [letter.encode() + count.to_bytes(4, "big") for letter, count in votes]
    return messages, 13 * count, check
