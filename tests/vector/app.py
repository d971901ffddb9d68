"""A source and a window for each window of the vectors; a message is `KEY TIME VALUE`, an output key and values."""

import json
import struct
from functools import reduce

import wallaroo


def application_setup(args):
    (host, port), (out_host, out_port) = (
        addresses[0] for addresses in (wallaroo.tcp_parse_input_addrs(args), wallaroo.tcp_parse_output_addrs(args))
    )
    pipelines = []
    for number, window in enumerate(json.loads(args[args.index("--windows") + 1])):
        decoder = EventDecoder() if window.get("time") == "event" else Decoder()
        config = wallaroo.TCPSourceConfig(host, str(int(port) + number), decoder)
        keyed = wallaroo.source(f"in{number}", config).key_by(key)
        pipelines.append(keyed.to(windows(window).over(Values(f"values {number}"))))
    merged = reduce(lambda first, second: first.merge(second), pipelines)
    return wallaroo.build_application("Vectors", merged.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode)))


def windows(window):
    if window["kind"] == "count":
        return wallaroo.count_windows(window["count"])
    sizes = {name: wallaroo.milliseconds(window[name]) for name in window if name.endswith("_ms")}
    if window["kind"] == "session":
        begun = wallaroo.session_windows(sizes["gap_ms"])
    else:
        begun = wallaroo.range_windows(sizes["range_ms"]).with_slide(sizes["slide_ms"])
    return begun.with_delay(sizes["delay_ms"]).with_late_data_policy(window["late"].replace("_", "-"))


class Decoder:
    def header_length(self):
        return 4

    def payload_length(self, bs):
        return struct.unpack(">I", bs)[0]

    def decode(self, bs):
        name, _, value = bs.decode().split(" ")
        return name, int(value)


class EventDecoder(Decoder):
    def event_time(self, bs):
        return int(bs.split(b" ")[1])


@wallaroo.key_extractor
def key(data):
    return data[0]


class Values(wallaroo.Aggregation):
    """The aggregation of the vectors: -1 fails in `update`, -2 in `output`."""

    def __init__(self, called):
        self.called = called

    def name(self):
        return self.called

    def initial_accumulator(self):
        return []

    def update(self, data, accumulator):
        accumulator.append(data[1])
        if data[1] == -1:
            msg = "minus one"
            raise ValueError(msg)

    def combine(self, accumulator1, accumulator2):
        return accumulator1 + accumulator2

    def output(self, key, accumulator):
        if -2 in accumulator:
            msg = "minus two"
            raise ValueError(msg)
        return " ".join((key, *map(str, accumulator)))


@wallaroo.encoder
def encode(text):
    return text
