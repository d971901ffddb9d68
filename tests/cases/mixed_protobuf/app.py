"""Lap times, judged by components of a program in Go: track/track.go."""

from google.protobuf.struct_pb2 import Struct
from google.protobuf.wrappers_pb2 import StringValue  # noqa: F401  (the message that "best" gives)

import wallaroo

LAP = "protobuf:google.protobuf.Struct"
LINE = "protobuf:google.protobuf.StringValue"


def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    track = wallaroo.other_program("track", "track")
    pipeline = (
        wallaroo.source("Laps", wallaroo.TCPSourceConfig(in_host, in_port, decode))
        .to(track.computation("speed", input=LAP, output=LAP))
        .key_by(rider)
        .to(track.state_computation("best", input=LAP, output=LINE))
        .to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    )
    return wallaroo.build_application("Laps", pipeline)


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    rider, milliseconds = bs.decode("utf-8").split(" ")
    lap = Struct()
    lap.update({"rider": rider, "milliseconds": int(milliseconds)})
    return lap


@wallaroo.key_extractor
def rider(lap):
    return lap["rider"]


@wallaroo.encoder
def encode(line):
    return line.value + "\n"
