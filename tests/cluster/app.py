"""Counts words with numpy, and says with each count where its worker runs and where numpy came from."""

import os

import numpy

import wallaroo


def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    ab = wallaroo.ApplicationBuilder("Places")
    ab.new_pipeline("places", wallaroo.TCPSourceConfig(in_host, in_port, decode))
    ab.to_parallel(split)
    ab.to_state_partition(count, Count, "counts", word_of, [])
    ab.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    return ab.build()


class Count:
    """How often a word was seen."""

    def __init__(self):
        self.total = numpy.zeros(1, dtype=numpy.int64)


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs.decode()


@wallaroo.computation_multi("split")
def split(text):
    return text.split(" ")


@wallaroo.partition
def word_of(word):
    return word


@wallaroo.state_computation("count")
def count(word, state):
    state.total += 1
    return f"{word} {state.total[0]} {os.getcwd()} {os.path.dirname(numpy.__file__)}", True


@wallaroo.encoder
def encode(line):
    return line + "\n"
