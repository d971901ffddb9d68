"""Counts words with one state per word; keys are made as words are met."""

import wallaroo


def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]

    ab = wallaroo.ApplicationBuilder("Dynamic Word Count")
    ab.new_pipeline("Split and Count", wallaroo.TCPSourceConfig(in_host, in_port, decode_line))
    ab.to_parallel(split)
    ab.to_state_partition(count_word, WordTotal, "word totals", word_of)
    ab.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode_count))
    return ab.build()


class WordTotal:
    """How often one word was seen."""

    def __init__(self):
        self.total = 0


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_line(bs):
    return bs.decode("utf-8")


@wallaroo.computation_multi("split")
def split(data):
    return data.lower().split()


@wallaroo.state_computation("count word")
def count_word(data, state):
    state.total += 1
    return (data, state.total), True


@wallaroo.partition
def word_of(data):
    return data


@wallaroo.encoder
def encode_count(data):
    word, total = data
    return f"{word} {total}\n"
