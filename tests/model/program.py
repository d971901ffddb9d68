"""The Python program that declares whatever application its arguments describe; see `application.py`."""

import json

from google.protobuf.struct_pb2 import Struct  # noqa: F401 - the messages of a codec

import compute
import wallaroo
from compute import CODECS, item_of, to_form

STATES = ("total", "fan", "tally")
WINDOWS = ("count", "range")


def application_setup(args):
    described = json.loads(args[args.index("--described") + 1])
    if described["role"] == "library":
        return library(described)
    return (builder if described["api"] == "builder" else graph)(described)


def library(described):
    """Offer the steps that the other program has."""
    made = []
    for number, step in enumerate(described["steps"]):
        if step["remote"]:
            offered = stateless(step, number) if step["op"] not in STATES else stateful(step, number, keeps=False)
            made.append(wallaroo.offer(offered, input=CODECS[step["takes"]], output=CODECS[step["form"]]))
    return wallaroo.build_library(made)


def graph(described):
    """Declare the application with pipelines that branch and merge."""
    streams = []
    for number, source in enumerate(described["sources"]):
        streams.append(wallaroo.source(f"in{number}", tcp_source(source, number)))
    other = wallaroo.other_program("other", described["program"]) if described["other"] else None
    for number, step in enumerate(described["steps"]):
        streams.append(graph_step(merged([streams[at] for at in step["inputs"]]), step, number, other))
    (inputs,) = {tuple(sink["inputs"]) for sink in described["sinks"]}
    end = merged([streams[at] for at in inputs])
    end = end.to_sinks([tcp_sink(sink, number) for number, sink in enumerate(described["sinks"])])
    return wallaroo.build_application(described["name"], end)


def merged(streams):
    first, *others = streams
    for each in others:
        first = first.merge(each)
    return first


def graph_step(stream, step, number, other):
    op = step["op"]
    if step["remote"]:
        declare = {True: other.state_computation, False: other.computation}
        if op == "split" or op == "fan":
            declare = {True: other.state_computation_multi, False: other.computation_multi}
        component = declare[op in STATES](name_of(step, number), input=CODECS[step["takes"]], output=CODECS[step["form"]])
        return stream.to(component)
    if op == "key_by":
        return stream.key_by(key_extractor(step, number))
    if op == "collect":
        return stream.collect()
    if op == "count":
        return stream.to(wallaroo.count_windows(step["size"]).over(Window(step, number)))
    if op == "range":
        return stream.to(wallaroo.range_windows(wallaroo.milliseconds(step["ms"])).over(Window(step, number)))
    return stream.to(stateful(step, number, keeps=False) if op in STATES else stateless(step, number))


def builder(described):
    """Declare the application with pipelines that share states."""
    made = wallaroo.ApplicationBuilder(described["name"])
    sources = len(described["sources"])
    for number, source in enumerate(described["sources"]):
        made.new_pipeline(f"in{number}", tcp_source(source, number))
        end = number
        for at, step in enumerate(described["steps"]):
            if step["inputs"] != [end]:
                continue
            end = sources + at
            if step["op"] in STATES:
                made.to_state_partition(stateful(step, at, keeps=True), State, step["state"], partition)
            else:
                made.to(stateless(step, at))
        sinks = [tcp_sink(sink, at) for at, sink in enumerate(described["sinks"]) if sink["inputs"] == [end]]
        made.to_sinks(sinks) if sinks else made.done()
    return made.build()


def name_of(step, number):
    return f"{step['op']}{number}"


def tcp_source(source, number):
    @wallaroo.decoder(header_length=4, length_fmt=">I")
    def decode(payload):
        item = compute.decode(source, payload)
        return None if item is None else to_form(item, source["form"])

    return wallaroo.TCPSourceConfig("127.0.0.1", str(9000 + number), decode)


def tcp_sink(sink, number):
    @wallaroo.encoder
    def encode(message):
        return compute.line(sink, item_of(message))

    return wallaroo.TCPSinkConfig("127.0.0.1", str(10000 + number), encode)


def key_extractor(step, number):
    def key(message):
        item = item_of(message)
        compute.compute(step, item)
        return compute.key_of(item)

    key.__name__ = name_of(step, number)
    return wallaroo.key_extractor(key)


@wallaroo.partition
def partition(message):
    return compute.key_of(item_of(message))


def stateless(step, number):
    def run(message):
        item = item_of(message)
        return [to_form(each, step["form"]) for each in compute.compute(step, item)]

    if step["op"] == "split":
        return wallaroo.computation_multi(name_of(step, number))(run)
    return wallaroo.computation(name_of(step, number))(lambda message: next(iter(run(message)), None))


class State:
    """What a key has."""

    def __init__(self):
        self.fields = compute.new_state()


def stateful(step, number, *, keeps):
    def run(message, state):
        item = item_of(message)
        return [to_form(each, step["form"]) for each in compute.update(step, item, state.fields)]

    if step["op"] == "fan":
        multi = (lambda message, state: (run(message, state), True)) if keeps else run
        return wallaroo.state_computation_multi(name_of(step, number), *(() if keeps else (State,)))(multi)
    if keeps:
        return wallaroo.state_computation(name_of(step, number))(lambda message, state: (run(message, state)[0], True))
    return wallaroo.state_computation(name_of(step, number), State)(lambda message, state: run(message, state)[0])


class Window(wallaroo.Aggregation):
    """What windows do with items."""

    def __init__(self, step, number):
        self.step, self.called = step, name_of(step, number)

    def name(self):
        return self.called

    def initial_accumulator(self):
        return compute.new_window()

    def update(self, input, accumulator):
        compute.gather(self.step, item_of(input), accumulator)

    def combine(self, accumulator1, accumulator2):
        later = accumulator2 if accumulator2["count"] else accumulator1
        power = pow(7, accumulator2["count"], compute.MODULUS)
        total = (accumulator1["total"] * power + accumulator2["total"]) % compute.MODULUS
        count = accumulator1["count"] + accumulator2["count"]
        return {"id": later["id"], "key": later["key"], "total": total, "count": count}

    def output(self, key, accumulator):
        item = compute.result(accumulator)
        return None if item is None else to_form(item, self.step["form"])
