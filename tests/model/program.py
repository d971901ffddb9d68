"""The Python program that declares whatever application its arguments describe; see `application.py`."""

import json
from datetime import timedelta

import compute
from compute import CODECS, item_of, to_form
from google.protobuf.struct_pb2 import Struct  # noqa: F401 - the messages of a codec

import wallaroo

STATES = ("total", "fan", "tally")
WINDOWS = ("count", "range", "session", "timed")


def application_setup(args):
    described = json.loads(args[args.index("--described") + 1])
    if described["role"] == "library":
        return library(described)
    return (builder if described["api"] == "builder" else graph)(described)


def library(described):
    """Offer the steps that the other program has."""
    made = []
    for number, step in enumerate(described["steps"]):
        if step["remote"] and step["op"] != "output":
            outputs = {each["name"]: CODECS[each["form"]] for each in step.get("outputs", ())}
            offered = stateless(step, number) if step["op"] not in STATES else stateful(step, number, keeps=False)
            made.append(
                wallaroo.offer(offered, input=CODECS[step["takes"]], output=CODECS[step["form"]], outputs=outputs)
            )
    return wallaroo.build_library(made)


def graph(described):
    """Declare the application with pipelines that branch and merge."""
    streams = []
    for number, source in enumerate(described["sources"]):
        streams.append(wallaroo.source(f"in{number}", tcp_source(source, number)))
    other = wallaroo.other_program("other", described["program"]) if described["other"] else None
    for number, step in enumerate(described["steps"]):
        stream = merged([streams[at] for at in step["inputs"]])
        is_output = step["op"] == "output"
        streams.append(stream.output(step["name"]) if is_output else graph_step(stream, step, number, other))
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
        outputs = {each["name"]: CODECS[each["form"]] for each in step.get("outputs", ())}
        component = declare[op in STATES](
            name_of(step, number), input=CODECS[step["takes"]], output=CODECS[step["form"]], outputs=outputs
        )
        return stream.to(component)
    if op == "key_by":
        return stream.key_by(key_extractor(step, number))
    if op == "collect":
        return stream.collect()
    if op == "count":
        return stream.to(wallaroo.count_windows(step["size"]).over(Window(step, number)))
    if op == "timed":
        return stream.to(with_times(step, number))
    if op == "session":
        return stream.to(wallaroo.session_windows(wallaroo.milliseconds(step["ms"])).over(Window(step, number)))
    if op == "range":
        return stream.to(wallaroo.range_windows(wallaroo.milliseconds(step["ms"])).over(Window(step, number)))
    return stream.to(stateful(step, number, keeps=False) if op in STATES else stateless(step, number))


def builder(described):
    """Declare the application with pipelines that share states."""
    made = wallaroo.ApplicationBuilder(described["name"])
    for number, source in enumerate(described["sources"]):
        made.new_pipeline(f"in{number}", tcp_source(source, number))
        branch(made, described, number)
    return made.build()


def branch(made, described, end):
    """Declare the steps and sinks after a source or an output, then the branches that begin in them."""
    outputs = []
    for at, step in enumerate(described["steps"]):
        if step["inputs"] != [end]:
            continue
        if step["op"] == "output":
            outputs.append((at, step))
            continue
        end = len(described["sources"]) + at
        if step["op"] in STATES:
            made.to_state_partition(stateful(step, at, keeps=True), State, step["state"], partition)
        else:
            made.to(stateless(step, at))
    sinks = [tcp_sink(sink, at) for at, sink in enumerate(described["sinks"]) if sink["inputs"] == [end]]
    made.to_sinks(sinks) if sinks else made.done()
    for at, step in outputs:
        of = step["inputs"][0] - len(described["sources"])
        made.from_output(name_of(described["steps"][of], of), step["name"])
        branch(made, described, len(described["sources"]) + at)


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


def names(step):
    return [each["name"] for each in step.get("outputs", ())]


def given(step, item):
    """Return a message as it leaves a step."""
    output = compute.output_of(step, item)
    if output is None:
        return to_form(item, step["form"])
    return wallaroo.output(output["name"], to_form(item, output["form"]))


def each_given(step, item, run):
    """Yield what a step gives; one that fails has emitted to all of its outputs before."""
    try:
        made = run()
    except ValueError:
        for each in step.get("outputs", ()):
            yield wallaroo.output(each["name"], to_form(item, each["form"]))
        raise
    for each in made:
        yield given(step, each)


def stateless(step, number):
    def run(message):
        item = item_of(message)
        yield from each_given(step, item, lambda: compute.compute(step, item))

    if step["op"] == "split":
        return wallaroo.computation_multi(name_of(step, number), outputs=names(step))(run)
    one = wallaroo.computation(name_of(step, number), outputs=names(step))
    return one(lambda message: next(iter(list(run(message))), None))


class State:
    """What a key has."""

    def __init__(self):
        self.fields = compute.new_state()


def stateful(step, number, *, keeps):
    def run(message, state):
        item = item_of(message)
        yield from each_given(step, item, lambda: compute.update(step, item, state.fields))

    name, more = name_of(step, number), {"outputs": names(step)}
    if step["op"] == "fan":
        multi = (lambda message, state: (list(run(message, state)), True)) if keeps else run
        return wallaroo.state_computation_multi(name, *(() if keeps else (State,)), **more)(multi)
    if keeps:
        return wallaroo.state_computation(name, **more)(lambda message, state: (list(run(message, state))[0], True))
    return wallaroo.state_computation(name, State, **more)(lambda message, state: list(run(message, state))[0])


class Track:
    """What a key of a step with times has."""

    def __init__(self):
        self.fields = compute.new_track()


def with_times(step, number):
    ttl = timedelta(milliseconds=step["ttl"]) if step["ttl"] else None

    def compute_one(message, state, timers):
        done, item = compute.track(step, item_of(message), state.fields)
        change(timers, done)
        return given(step, item)

    declare = wallaroo.state_computation(name_of(step, number), Track, outputs=names(step), ttl=ttl)
    if not step["timers"]:
        return declare(lambda message, state: compute_one(message, state, None))
    run = declare(compute_one)
    for each in step["timers"]:
        add_timer(run, step, each["name"])
    return run


def add_timer(run, step, name):
    @run.timer(name)
    def due(key, state, time, timers):
        done, item, is_deleted = compute.fire(step, name, state.fields)
        change(timers, done)
        made = None if item is None else given(step, item)
        return wallaroo.Deleted(made) if is_deleted else made


def change(timers, done):
    for name, ms in done:
        if ms is None:
            timers.delete(name)
        else:
            timers.set(name, after=timedelta(milliseconds=ms))


class Window(wallaroo.Aggregation):
    """What windows do with items."""

    def __init__(self, step, number):
        self.step, self.called, self.outputs = step, name_of(step, number), names(step)

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
        return None if item is None else given(self.step, item)
