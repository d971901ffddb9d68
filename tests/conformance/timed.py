"""The steps `timed 0` to `timed 2` of the application `Streams`: timers, as the messages describe them."""

import json
from datetime import timedelta

import wallaroo

NAMES = "xyz\u00fc"


class Timed:
    """The values that came to a key, and what its timers do."""

    def __init__(self):
        self.values, self.steps = [], []


def perform(ops, timers):
    for op in ops:
        if "delete" in op:
            timers.delete(op["delete"])
        elif "after" in op:
            timers.set(op["set"], after=timedelta(milliseconds=op["after"]))
        else:
            timers.set(op["set"], at=op["at"])


def text_of(key, number, timer, now, state):
    return f"{key} {number} {timer} {now} {state.values}".replace(", ", ",")


def timed(number):
    """Return the step of a number."""

    @wallaroo.state_computation(f"timed {number}", state=Timed)
    def step(data, state, timers):
        key, _, text = data.partition(":")
        message = json.loads(text)
        state.values.append(message["value"])
        state.steps = message["steps"]
        perform(message["ops"], timers)
        if message["value"] == -1:
            msg = "minus one"
            raise ValueError(msg)
        return text_of(key, number, "", timers.now_ms, state)

    for name in NAMES:
        add_timer(step, number, name)

    @step.visitor("forget")
    def forget(metadata, key, state):
        return wallaroo.Deleted(key) if key == metadata.decode() else None

    return step


@wallaroo.state_computation("untimed", state=Timed)
def untimed(data, state):
    state.values.append(json.loads(data.partition(":")[2])["value"])


def add_timer(step, number, name):
    @step.timer(name)
    def run(key, state, time, timers):
        does = state.steps[number][name]
        perform(does.get("ops", ()), timers)
        if does.get("fails"):
            msg = "the timer was asked to raise"
            raise ValueError(msg)
        state.values += does.get("appends", ())
        result = text_of(key, number, name, time, state) if does.get("gives") else None
        return wallaroo.Deleted(result) if does.get("deletes") else result
