"""A word count that a test can stop in the middle of a call; README.md says how."""

import os
import random
import time

import wallaroo

FOLDER = []


def application_setup(args):
    FOLDER[:] = [args[args.index("--folder") + 1]]
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    ab = wallaroo.ApplicationBuilder("Recovery")
    ab.new_pipeline("Recovery", wallaroo.TCPSourceConfig(in_host, in_port, decode))
    ab.to_parallel(split)
    ab.to_state_partition(add, Sum, "sums", key)
    ab.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    return ab.build()


class Sum:
    def __init__(self):
        self.count = 0
        self.sum = 0


def meet(name):
    """Report to the test that this call is in flight, and wait for its word."""
    begun = os.path.join(FOLDER[0], name + ".begun")
    if not os.path.exists(begun):
        with open(begun + ".new", "w", encoding="ascii") as file:
            file.write(f"{os.getpid()} {os.getppid()}")
        os.rename(begun + ".new", begun)
    while not os.path.exists(os.path.join(FOLDER[0], name + ".go")):
        time.sleep(0.01)


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs.decode("utf-8")


@wallaroo.computation_multi("split")
def split(data):
    words = data.split(" ")
    for word in words:
        if word.startswith("stage-"):
            meet(word)
    return words


@wallaroo.partition
def key(data):
    return data


@wallaroo.state_computation("add")
def add(data, state):
    if data.startswith("hold-"):
        meet(data)
    with open(os.path.join(FOLDER[0], "runs"), "a", encoding="utf-8") as file:
        file.write(f"{data}\n")
    before = state.sum
    state.count += 1
    state.sum += random.randint(1, 1 << 40)
    return f"{data} {state.count} {before} {state.sum}", True


@wallaroo.encoder
def encode(data):
    return data + "\n"
