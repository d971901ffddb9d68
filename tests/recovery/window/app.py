"""Windows whose output tells which messages they hold, and in which order; `tests/recovery/README.md` says how."""

import struct

import wallaroo

PRIME, BASE = (1 << 61) - 1, 1_000_003


def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    kind = args[args.index("--windows") + 1]
    decoder = EventDecoder() if kind == "event" else Decoder()
    if kind == "count":
        windows = wallaroo.count_windows(7).over(Digest)
    else:
        windows = wallaroo.range_windows(wallaroo.seconds(9)).with_slide(wallaroo.seconds(3)).over(Digest)
    pipeline = (
        wallaroo.source("values", wallaroo.TCPSourceConfig(in_host, in_port, decoder))
        .key_by(key)
        .to(windows)
        .to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    )
    return wallaroo.build_application(f"Windows ({kind})", pipeline)


class Decoder:
    """Reads `TIME KEY VALUE`."""

    def header_length(self):
        return 4

    def payload_length(self, bs):
        return struct.unpack(">I", bs)[0]

    def decode(self, bs):
        _, name, value = bs.decode("ascii").split(" ")
        return name, int(value)


class EventDecoder(Decoder):
    def event_time(self, bs):
        return int(bs.split(b" ", 1)[0])


@wallaroo.key_extractor
def key(data):
    return data[0]


class Digest(wallaroo.Aggregation):
    """How many values, and a number that depends on all of them and on their order."""

    def initial_accumulator(self):
        return [0, 0]

    def update(self, data, accumulator):
        accumulator[0] += 1
        accumulator[1] = (accumulator[1] * BASE + data[1]) % PRIME

    def combine(self, accumulator1, accumulator2):
        shifted = accumulator1[1] * pow(BASE, accumulator2[0], PRIME)
        return [accumulator1[0] + accumulator2[0], (shifted + accumulator2[1]) % PRIME]

    def output(self, key, accumulator):
        return f"{key} {accumulator[0]} {accumulator[1]}"


@wallaroo.encoder
def encode(line):
    return line + "\n"
