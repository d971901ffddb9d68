"""Counts words and checks each word's sequence; `tests/recovery/README.md` says how."""

import wallaroo


def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    ab = wallaroo.ApplicationBuilder("Sequence")
    ab.new_pipeline("Sequence", wallaroo.TCPSourceConfig(in_host, in_port, decode))
    ab.to_parallel(split)
    ab.to_state_partition(count, Total, "totals", key)
    ab.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    return ab.build()


class Total:
    def __init__(self):
        self.count = 0


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs.decode("utf-8")


@wallaroo.computation_multi("split")
def split(data):
    return data.split(" ")


@wallaroo.partition
def key(data):
    return data.partition(":")[0]


@wallaroo.state_computation("count")
def count(data, state):
    state.count += 1
    word, _, number = data.partition(":")
    return f"{word} {state.count} {number}", True


@wallaroo.encoder
def encode(data):
    return data + "\n"
