"""Adds up votes for letters, as programs of Wallaroo 0.6 did: messages get a key, the state is found by it."""

import struct

import wallaroo


def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]

    votes = wallaroo.source("Votes", wallaroo.TCPSourceConfig(in_host, in_port, decode_votes))
    totals = votes.key_by(letter_of).to(add_votes)
    return wallaroo.build_application(
        "Alphabet Partitioned", totals.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode_total))
    )


class TotalVotes:
    """The votes of one letter."""

    votes = 0


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_votes(bs):
    letter, votes = struct.unpack(">sI", bs)
    return letter.decode("ascii"), votes


@wallaroo.key_extractor
def letter_of(data):
    return data[0]


@wallaroo.state_computation("add votes", state=TotalVotes)
def add_votes(data, state):
    letter, votes = data
    state.votes += votes
    return letter, state.votes


@wallaroo.encoder
def encode_total(data):
    letter, total = data
    return struct.pack(">IsQ", 9, letter.encode("ascii"), total)
