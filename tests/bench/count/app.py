"""Counts each key: the application of `make bench-keys`, in Python."""

import wallaroo


def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    ab = wallaroo.ApplicationBuilder("Count")
    ab.new_pipeline("Count", wallaroo.TCPSourceConfig(in_host, in_port, decode))
    ab.to_state_partition(count, Count, "counts", key)
    ab.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    return ab.build()


class Count:
    def __init__(self):
        self.value = 0


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs.decode("utf-8")


@wallaroo.partition
def key(data):
    return data


@wallaroo.state_computation("count")
def count(data, state):
    state.value += 1
    return f"{data} {state.value}", True


@wallaroo.encoder
def encode(data):
    return data + "\n"
