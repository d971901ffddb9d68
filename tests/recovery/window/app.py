"""Windows whose output states which messages they hold, and in which order; `tests/recovery/README.md` says how."""

import struct
from functools import reduce

import wallaroo

PRIME, BASE = (1 << 61) - 1, 1_000_003


def application_setup(args):
    sliding = wallaroo.range_windows(wallaroo.seconds(9)).with_slide(wallaroo.seconds(3))
    tumbling = wallaroo.range_windows(wallaroo.seconds(5)).with_delay(wallaroo.seconds(1))
    kinds = {
        "event": (EventDecoder(), sliding),
        "ingest": (Decoder(), sliding),
        "tumbling": (EventDecoder(), tumbling),
        "count": (Decoder(), wallaroo.count_windows(7)),
        "session": (EventDecoder(), wallaroo.session_windows(wallaroo.seconds(1)).with_delay(wallaroo.seconds(3))),
    }
    pipelines = [
        wallaroo.source(kind, wallaroo.TCPSourceConfig(host, port, decoder)).key_by(key).to(windows.over(Digest(kind)))
        for (kind, (decoder, windows)), (host, port) in zip(
            kinds.items(), wallaroo.tcp_parse_input_addrs(args), strict=True
        )
    ]
    host, port = wallaroo.tcp_parse_output_addrs(args)[0]
    merged = reduce(lambda first, second: first.merge(second), pipelines)
    return wallaroo.build_application("Windows", merged.to_sink(wallaroo.TCPSinkConfig(host, port, encode)))


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

    def __init__(self, kind):
        self.kind = kind

    def name(self):
        return f"digest {self.kind}"

    def initial_accumulator(self):
        return [0, 0]

    def update(self, data, accumulator):
        accumulator[0] += 1
        accumulator[1] = (accumulator[1] * BASE + data[1]) % PRIME

    def combine(self, accumulator1, accumulator2):
        shifted = accumulator1[1] * pow(BASE, accumulator2[0], PRIME)
        return [accumulator1[0] + accumulator2[0], (shifted + accumulator2[1]) % PRIME]

    def output(self, key, accumulator):
        return f"{self.kind} {key} {accumulator[0]} {accumulator[1]}"


@wallaroo.encoder
def encode(line):
    return line + "\n"
