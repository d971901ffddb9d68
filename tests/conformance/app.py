"""The conformance application; README.md of this folder says what each step does."""

import os
import struct
import sys
import threading
import time

from google.protobuf import struct_pb2, wrappers_pb2  # noqa: F401  (the messages of codecs at a border)

import wallaroo

HERE = os.path.dirname(os.path.abspath(__file__))
SLEEP_S = 1.5
FLOOD = "flood\n" * (1 << 17)


def application_setup(args):
    if "--fail" in args:
        msg = "the setup was asked to fail"
        raise RuntimeError(msg)
    if "--windows" in args:
        sys.path.append(HERE)
        import streams

        return streams.application_setup(args)
    sources, sinks = wallaroo.tcp_parse_input_addrs(args), wallaroo.tcp_parse_output_addrs(args)
    ab = wallaroo.ApplicationBuilder("Conformance")
    ab.new_pipeline("Words", wallaroo.TCPSourceConfig(*sources[0], decode_u32))
    ab.to(act)
    ab.to_parallel(split)
    ab.to_state_partition(count, Count, "totals", word_key)
    ab.to_sink(wallaroo.TCPSinkConfig(*sinks[0], encode_word))
    ab.new_pipeline("Numbers", wallaroo.TCPSourceConfig(*sources[1], decode_u16))
    ab.to_state_partition(Spread(), CountBuilder(), "numbers", NumberKey(), [0, 1, 7, (1 << 64) - 1])
    ab.to(shout)
    ab.to_state_partition(tally, Count, "tallies", tally_key)
    ab.to_sink(wallaroo.TCPSinkConfig(*sinks[1], encode_text))
    ab.new_pipeline("Lines", wallaroo.TCPSourceConfig(*sources[2], LineDecoder()))
    ab.to_sink(wallaroo.TCPSinkConfig(*sinks[2], encode_text))
    return ab.build()


class Count:
    """A number, and what a message has told of the state: "unwritable", "unreadable", "deadly" or nothing."""

    def __init__(self):
        self.count = 0
        self.kept = ""
        self.spoilt = ""

    def __getstate__(self):
        if self.spoilt == "unwritable":
            msg = "the state was asked not to be written"
            raise ValueError(msg)
        if self.spoilt == "deadly":
            os._exit(3)
        return vars(self)

    def __setstate__(self, saved):
        if saved["spoilt"] == "unreadable":
            msg = "the state was asked not to be read"
            raise ValueError(msg)
        vars(self).update(saved)


class CountBuilder:
    def build(self):
        return Count()


class Opaque:
    def __init__(self):
        self.lock = threading.Lock()


def text_of(bs):
    text = bs.decode("utf-8")
    return None if text == "skip" else text


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_u32(bs):
    return text_of(bs)


@wallaroo.decoder(header_length=2, length_fmt=">H")
def decode_u16(bs):
    return text_of(bs)


class LineDecoder:
    def header_length(self):
        return 3

    def payload_length(self, bs):
        return struct.unpack(">I", b"\x00" + bs)[0]

    def decode(self, bs):
        return text_of(bs)


@wallaroo.computation("act")
def act(data):
    if data == "drop":
        return None
    if data == "raise":
        msg = "act was asked to raise"
        raise ValueError(msg)
    if data == "opaque":
        return Opaque()
    if data == "exit":
        os._exit(3)
    if data == "sleep":
        time.sleep(SLEEP_S)
    if data == "flood":
        sys.stdout.write(FLOOD)
        sys.stderr.write(FLOOD)
        sys.stdout.flush()
    return data


@wallaroo.computation_multi("split")
def split(data):
    if isinstance(data, Opaque):
        return [data]
    if data == "nothing":
        return None
    if data == "raise multi":
        msg = "split was asked to raise"
        raise ValueError(msg)
    if data == "wrong multi":
        return 7
    return [None if item == "none" else item for item in data.split(",")]


@wallaroo.partition
def word_key(data):
    if isinstance(data, Opaque):
        return "opaque"
    if not data:
        msg = "no key in an empty text"
        raise ValueError(msg)
    key = data.split(":")[0]
    return None if key == "wrong key" else key


@wallaroo.state_computation("count")
def count(data, state):
    key, op, rest = (*data.split(":", 2), "", "")[:3]
    op = op if ":" in data else "add"
    state.count += 1
    if op == "boom":
        msg = "count was asked to raise"
        raise ValueError(msg)
    if op == "wrong pair":
        return 7
    if op == "silent":
        return (None, True)
    if op == "keep":
        state.kept += rest
    if op in ("unwritable", "unreadable", "deadly"):
        state.spoilt = op
    if op == "spoil":
        state.spoilt = "unwritable"
    return (f"{op}:{key}={state.count};{len(data.encode())}", op not in ("forget", "spoil"))


@wallaroo.encoder
def encode_word(data):
    op = data.split(":")[0]
    if op == "unencodable":
        msg = "encode was asked to raise"
        raise ValueError(msg)
    if op == "wrong encoding":
        return 1.5
    if op == "unsent":
        return None
    return data.encode() if op == "bytes" else data


@wallaroo.encoder
def encode_text(data):
    return data


class NumberKey:
    def partition(self, data):
        return int(data.split(":")[0])


class Spread:
    def name(self):
        return "spread"

    def compute_multi(self, data, state):
        state.count += 1
        if data.endswith(":boom"):
            msg = "spread was asked to raise"
            raise ValueError(msg)
        if data.endswith(":nothing"):
            return (None, True)
        return ([f"{data}/{state.count}/1", None, f"{data}/{state.count}/2"], True)


@wallaroo.computation("shout")
def shout(data):
    return data.upper()


@wallaroo.partition
def tally_key(data):
    return data.split(":")[0].encode()


@wallaroo.state_computation("tally")
def tally(data, state):
    state.count += 1
    return (f"{state.count} {data}", True)
