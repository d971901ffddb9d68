"""Counts words: the tutorial of Wallaroo 0.1 to 0.3, with classes. Gives the same topology as app.py."""

import string
import struct

import wallaroo

PUNCTUATION = " " + string.punctuation


def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    letters = list(string.ascii_lowercase)
    letters.append("!")

    ab = wallaroo.ApplicationBuilder("Word Count Application")
    ab.new_pipeline("Split and Count", wallaroo.TCPSourceConfig(in_host, in_port, LineDecoder()))
    ab.to_parallel(Split)
    # Lists of class-based programs are closed; app.py's is a hint, and this program is to give the same topology.
    ab.to_state_partition(
        CountWords(), WordTotalsBuilder(), "word totals", FirstLetter(), letters, unknown_keys="create"
    )
    ab.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, CountEncoder()))
    return ab.build()


class WordTotals:
    """How often each word of one letter was seen."""

    def __init__(self):
        self.totals = {}

    def add(self, word):
        total = self.totals.get(word, 0) + 1
        self.totals[word] = total
        return total


class WordTotalsBuilder:
    """Makes the state of one letter."""

    def build(self):
        return WordTotals()


class LineDecoder:
    """Reads lines of text after a length of 4 bytes."""

    def header_length(self):
        return 4

    def payload_length(self, bs):
        return struct.unpack(">I", bs)[0]

    def decode(self, bs):
        return bs.decode("utf-8")


class Split:
    """Cuts lines into words."""

    def name(self):
        return "split into words"

    def compute_multi(self, data):
        words = []
        for line in data.split("\n"):
            for word in line.lower().strip(PUNCTUATION).split(" "):
                words.append(word.strip(PUNCTUATION))
        return words


class CountWords:
    """Counts one word."""

    def name(self):
        return "Count Words"

    def compute(self, data, state):
        return (data, state.add(data)), True


class FirstLetter:
    """Gives the letter that holds a word's count."""

    def partition(self, data):
        letter = data[0]
        return letter if "a" <= letter <= "z" else "!"


class CountEncoder:
    """Writes one count per line."""

    def encode(self, data):
        word, total = data
        return f"{word} => {total}\n"
