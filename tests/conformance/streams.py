"""The application `Streams`: windows as the arguments describe them, a branch, keys of messages, generators.

README.md of this folder says what each step does.
"""

import json
import struct

from timed import timed, untimed

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
    for pipeline in [*pipelines[1:], *texts(in_host, int(in_port) + len(described))]:
        merged = merged.merge(pipeline)
    return wallaroo.build_application("Streams", merged.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode)))


def texts(host, port):
    """Return the pipelines of texts: each goes two ways, to a state per key, and to a single state."""
    words = wallaroo.source("words", wallaroo.TCPSourceConfig(host, str(port), TextDecoder()))
    keyed = words.key_by(name)
    counting = wallaroo.source("counting", wallaroo.GenSourceConfig("counting", Counting()))
    stumbling = wallaroo.source("stumbling", wallaroo.GenSourceConfig("stumbling", Stumbling()))
    branches = [keyed.to(left), keyed.to(right), keyed.to(number), keyed.collect().to(total)]
    emitted = keyed.to(emit)
    outputs = [emitted.output("even"), emitted.output("odd")]
    times = [*(keyed.to(timed(number)) for number in range(3)), keyed.to(untimed)]
    return [*branches, emitted, *outputs, *times, counting.collect(), stumbling.collect()]


def builder(window):
    if window["kind"] == "count":
        return wallaroo.count_windows(window["count"])
    span, slide, delay = (wallaroo.milliseconds(window[name]) for name in ("range_ms", "slide_ms", "delay_ms"))
    policy = window["late"].replace("_", "-")
    return wallaroo.range_windows(span).with_slide(slide).with_delay(delay).with_late_data_policy(policy)


class Decoder:
    """Never asked: the windows' messages come in the codec int64."""

    def header_length(self):
        return 4

    def payload_length(self, bs):
        return struct.unpack(">I", bs)[0]

    def decode(self, bs):
        return int(bs)


class EventDecoder(Decoder):
    def event_time(self, bs):
        return int(bs)


class TextDecoder(Decoder):
    def decode(self, bs):
        return bs.decode()


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


@wallaroo.computation("left")
def left(data):
    return "<" + data


@wallaroo.computation("right")
def right(data):
    return data + ">"


@wallaroo.computation_multi("emit", outputs=("even", "odd"))
def emit(data):
    for item in data.split(","):
        to, _, text = item.partition(":")
        if to == "fail":
            msg = "emit was asked to raise"
            raise ValueError(msg)
        yield text if to == "main" else wallaroo.output(to, text)


@wallaroo.key_extractor
def name(data):
    if not data:
        msg = "no key in an empty text"
        raise ValueError(msg)
    return data.split(":")[0]


class Number:
    def __init__(self):
        self.number = 0


@wallaroo.state_computation("number", state=Number)
def number(data, state):
    state.number += 1
    return f"{data}={state.number}"


@number.visitor("show")
def show(metadata, key, state):
    return f"{key} {metadata.decode()} {state.number}"


@number.visitor("add")
def add(metadata, key, state):
    state.number += int(metadata)
    if state.number == 13:
        msg = "the visitor was asked to raise"
        raise ValueError(msg)


@number.visitor("forget")
def forget(metadata, key, state):
    return wallaroo.Deleted(key) if key == metadata.decode() else None


@wallaroo.state_computation("total", state=Number)
def total(data, state):
    state.number += 1
    return f"{data}={state.number}"


class Counting:
    """Gives 1 to 5."""

    def initial_value(self):
        return "1"

    def apply(self, previous):
        return str(int(previous) + 1) if previous != "5" else None


class Stumbling(Counting):
    """Gives 1 to 3, and raises."""

    def apply(self, previous):
        if previous == "3":
            msg = "the generator was asked to raise"
            raise ValueError(msg)
        return super().apply(previous)


@wallaroo.encoder
def encode(text):
    return text
