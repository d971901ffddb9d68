"""A count per key that every message can spoil: `KEY ACTION` where the action says how; README.md lists them."""

import os
import signal
import time

import wallaroo


def application_setup(args):
    ab = wallaroo.ApplicationBuilder("Poison")
    ab.new_pipeline("poison", wallaroo.TCPSourceConfig("127.0.0.1", "0", decode))
    ab.to_parallel(check)
    ab.to_state_partition(count, Count, "counts", key)
    ab.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "1", encode))
    return ab.build()


class Count:
    def __init__(self):
        self.value, self.poison = 0, ""

    def __getstate__(self):
        die(self.poison, "save")
        return self.__dict__

    def __setstate__(self, saved):
        self.__dict__.update(saved)
        die(self.poison, "load")


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs.decode()


def die(action, place):
    if action == place + "-exit":
        os._exit(3)
    if action == place + "-close":
        os.closerange(3, 1000)
    if action == place + "-kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == place + "-hang":
        while True:
            pass
    if action == place + "-wait":  # a hang, too, which leaves the processor to others
        time.sleep(3600)
    if action == place + "-slow":
        time.sleep(0.1)


@wallaroo.computation_multi("check")
def check(text):
    action = text.split()[1]
    if action == "raise":
        msg = "told to"
        raise ValueError(msg)
    if action == "wrong":
        return 5
    die(action, "first")
    return [text]


@wallaroo.partition
def key(text):
    return text.split()[0]


@wallaroo.state_computation("count")
def count(text, state):
    name, action = text.split()
    state.value += 1
    if action == "mutate":
        msg = "told to, after the state was changed"
        raise ValueError(msg)
    die(action, "state")
    if action.startswith(("save", "load")):
        state.poison = action
    return f"{name} {state.value}", True


@wallaroo.encoder
def encode(line):
    return line + "\n"
