"""Counts words: the tutorial of Wallaroo 0.4 and 0.5, with decorators."""

import string

import wallaroo

PUNCTUATION = " " + string.punctuation


def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    letters = [*string.ascii_lowercase, "!"]

    ab = wallaroo.ApplicationBuilder("Word Count Application")
    ab.new_pipeline("Split and Count", wallaroo.TCPSourceConfig(in_host, in_port, decode_line))
    ab.to_parallel(split)
    ab.to_state_partition(count_words, WordTotals, "word totals", first_letter, letters)
    ab.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode_count))
    return ab.build()


class WordTotals:
    """How often each word of one letter was seen."""

    def __init__(self):
        self.totals = {}

    def add(self, word):
        total = self.totals.get(word, 0) + 1
        self.totals[word] = total
        return total


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_line(bs):
    return bs.decode("utf-8")


@wallaroo.computation_multi("split into words")
def split(data):
    words = []
    for line in data.split("\n"):
        for word in line.lower().strip(PUNCTUATION).split(" "):
            words.append(word.strip(PUNCTUATION))
    return words


@wallaroo.state_computation("Count Words")
def count_words(data, state):
    return (data, state.add(data)), True


@wallaroo.partition
def first_letter(data):
    # An empty word has no first character: it becomes a dead letter, the application goes on.
    letter = data[0]
    return letter if "a" <= letter <= "z" else "!"


@wallaroo.encoder
def encode_count(data):
    word, total = data
    return f"{word} => {total}\n"
