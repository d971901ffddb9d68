"""Windows as the arguments describe them, one pipeline for each; `tests/test_window_worker.py` runs their stages."""

import json
import struct

import wallaroo

ERRORS = {-1: "minus one", -2: "minus two"}


def application_setup(args):
    described = json.loads(args[args.index("--windows") + 1])
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    pipelines = []
    for number, window in enumerate(described):
        decoder = EventDecoder() if window.get("time") == "event" else Decoder()
        source = wallaroo.source(f"in{number}", wallaroo.TCPSourceConfig(in_host, str(int(in_port) + number), decoder))
        pipelines.append(source.key_by(key).to(builder(window).over(Values(f"values {number}"))))
    merged = pipelines[0]
    for pipeline in pipelines[1:]:
        merged = merged.merge(pipeline)
    return wallaroo.build_application("Windows", merged.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode)))


def builder(window):
    if window["kind"] == "count":
        return wallaroo.count_windows(window["count"])
    span, slide, delay = (wallaroo.milliseconds(window[name]) for name in ("range_ms", "slide_ms", "delay_ms"))
    policy = window["late"].replace("_", "-")
    return wallaroo.range_windows(span).with_slide(slide).with_delay(delay).with_late_data_policy(policy)


class Decoder:
    """Never asked: the test runs the stages behind the keys."""

    def header_length(self):
        return 4

    def payload_length(self, bs):
        return struct.unpack(">I", bs)[0]

    def decode(self, bs):
        return int(bs)


class EventDecoder(Decoder):
    def event_time(self, bs):
        return int(bs)


@wallaroo.key_extractor
def key(data):
    return str(data)


class Values(wallaroo.Aggregation):
    """The aggregation of the vectors: -1 fails in `update`, -2 in `output`."""

    def __init__(self, called):
        self.called = called

    def name(self):
        return self.called

    def initial_accumulator(self):
        return []

    def update(self, data, accumulator):
        accumulator.append(data)
        if data == -1:
            raise ValueError(ERRORS[data])

    def combine(self, accumulator1, accumulator2):
        return accumulator1 + accumulator2

    def output(self, key, accumulator):
        if -2 in accumulator:
            raise ValueError(ERRORS[-2])
        return " ".join((key, *map(str, accumulator)))


@wallaroo.encoder
def encode(text):
    return text
