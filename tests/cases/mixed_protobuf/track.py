"""Speeds and best laps, for programs in other languages: what track/track.go does in Go."""

from google.protobuf.struct_pb2 import Struct
from google.protobuf.wrappers_pb2 import StringValue

import wallaroo

LAP = "protobuf:google.protobuf.Struct"
LINE = "protobuf:google.protobuf.StringValue"
METRES = 400


def application_setup(args):
    return wallaroo.build_library(
        [
            wallaroo.offer(speed, input=LAP, output=LAP),
            wallaroo.offer(best, input=LAP, output=LINE),
        ]
    )


@wallaroo.computation("speed")
def speed(lap):
    if lap["milliseconds"] <= 0:
        raise ValueError("a lap takes time")
    judged = Struct()
    judged.CopyFrom(lap)
    judged["kmh"] = METRES * 3600 // lap["milliseconds"]
    return judged


class Best:
    def __init__(self):
        self.milliseconds = None


@wallaroo.state_computation("best", state=Best)
def best(lap, before):
    if before.milliseconds is None or lap["milliseconds"] < before.milliseconds:
        before.milliseconds = lap["milliseconds"]
    return StringValue(
        value=f"{lap['rider']} {lap['milliseconds']:.0f} ms, {lap['kmh']:.0f} km/h, best {before.milliseconds:.0f} ms"
    )
