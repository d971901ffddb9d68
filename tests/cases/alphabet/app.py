"""Adds up votes for letters."""

import string
import struct

import wallaroo


def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]

    ab = wallaroo.ApplicationBuilder("Alphabet")
    ab.new_pipeline("Alphabet", wallaroo.TCPSourceConfig(in_host, in_port, decode_votes))
    ab.to_state_partition(add_votes, TotalVotes, "running vote totals", letter_of, list(string.ascii_lowercase))
    ab.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode_total))
    return ab.build()


class TotalVotes:
    """The votes of one letter."""

    def __init__(self):
        self.votes = 0


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_votes(bs):
    letter, votes = struct.unpack(">sI", bs)
    return letter.decode("ascii"), votes


@wallaroo.state_computation("add votes")
def add_votes(data, state):
    letter, votes = data
    state.votes += votes
    return (letter, state.votes), True


@wallaroo.partition
def letter_of(data):
    return data[0]


@wallaroo.encoder
def encode_total(data):
    letter, total = data
    return struct.pack(">IsQ", 9, letter.encode("ascii"), total)
