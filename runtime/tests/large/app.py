"""A list per key that each message `KEY BYTES` makes longer by so many random bytes, after a look at those it has."""

import random
import zlib

import wallaroo


def application_setup(args):
    ab = wallaroo.ApplicationBuilder("Large")
    ab.new_pipeline("large", wallaroo.TCPSourceConfig("127.0.0.1", "0", decode))
    ab.to_state_partition(grow, list, "pile", key)
    ab.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "1", encode))
    return ab.build()


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    key, size = bs.decode().split()
    return key, int(size)


@wallaroo.partition
def key(data):
    return data[0]


@wallaroo.state_computation("grow")
def grow(data, parts):
    if any(zlib.crc32(part) != checksum for part, checksum in parts):
        msg = "a part is not what it was"
        raise ValueError(msg)
    part = random.Random(len(parts)).randbytes(data[1])
    parts.append((part, zlib.crc32(part)))
    return f"{data[0]} {sum(len(part) for part, _ in parts)}", True


@wallaroo.encoder
def encode(line):
    return line + "\n"
