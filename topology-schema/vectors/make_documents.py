"""The topology documents among the vectors: usable ones, and broken ones with the findings that a loader must report."""

import copy
from collections.abc import Callable
from typing import Any

ZERO_HASH = "sha256:" + "0" * 64
Document = dict[str, Any]


def worker(name: str = "main", **more: Any) -> Document:
    return {
        "name": name, "language": "python", "sdk_version": "0.1.0", "protocol_version": 1,
        "command": ["{python}", "-m", "wallaroo.worker", "app.py"], "directory": "/srv/app", "args": ["--in", "127.0.0.1:7010"],
        "call_deadline_ms": 60000, "interface_hash": ZERO_HASH, "code_hash": ZERO_HASH, "components": [],
    } | more  # fmt: skip


def source(path: str, name: str, port: int = 7010, framing: Document | None = None) -> Document:
    return {
        "path": path, "name": name, "kind": "tcp", "host": "127.0.0.1", "port": port, "framing": framing or {"kind": "u32be"},
        "max_message_bytes": 16777216, "codec": "native", "worker": "main",
    }  # fmt: skip


def step(path: str, name: str, kind: str, inputs: list[str], state: Document | None = None) -> Document:
    start = {"path": path, "name": name, "kind": kind, "inputs": inputs}
    return start | ({"state": state} if state else {}) | {"codec": "native", "worker": "main"}


def state(name: str, values: list[Any] | None = None, unknown: str = "create") -> Document:
    key = {"kind": "single"} if values is None else {"kind": "partition", "values": values, "unknown": unknown}
    return {"name": name, "codec": "native", "key": key}


def sink(path: str, name: str, inputs: list[str], port: int = 7002) -> Document:
    return {
        "path": path,
        "name": name,
        "kind": "tcp",
        "host": "127.0.0.1",
        "port": port,
        "inputs": inputs,
        "worker": "main",
    }


def pipeline(name: str, sources: list[Document], steps: list[Document], sinks: list[Document]) -> Document:
    return {"name": name, "sources": sources, "steps": steps, "sinks": sinks}


def application(name: str, *pipelines: Document, workers: list[Document] | None = None) -> Document:
    return {"topology_version": 1, "name": name, "workers": workers or [worker()], "pipelines": list(pipelines)}


def word_count(values: list[Any], unknown: str) -> Document:
    name = "Split and Count"
    components = [
        {"path": "0/sources/0", "symbol": "Decoder", "file": "app.py", "line": 70},
        {"path": "0/steps/0", "symbol": "Split", "file": "app.py", "line": 20},
        {"path": "0/steps/1", "symbol": "CountWord", "file": "app.py", "line": 30},
        {"path": "0/steps/1/partition", "symbol": "WordPartitionFunction", "file": "app.py", "line": 60},
        {"path": "0/steps/1/state", "symbol": "WordTotals", "file": "app.py", "line": 45},
        {"path": "0/sinks/0", "symbol": "Encoder", "file": "app.py", "line": 80},
    ]
    steps = [
        step("0/steps/0", "split into words", "computation_multi", ["0/sources/0"]),
        step("0/steps/1", "Count Word", "state_computation", ["0/steps/0"], state("word totals", values, unknown)),
    ]
    whole = pipeline(name, [source("0/sources/0", name)], steps, [sink("0/sinks/0", name, ["0/steps/1"])])
    return application("Word Count Application", whole, workers=[worker(components=components)])


def shared_state() -> Document:
    market = state("symbol-data", ["AAPL", "MSFT"], "dead_letter")
    orders = pipeline(
        "Orders", [source("0/sources/0", "Orders", 7010)],
        [step("0/steps/0", "Check Order", "state_computation", ["0/sources/0"], market)],
        [sink("0/sinks/0", "Orders", ["0/steps/0"])],
    )  # fmt: skip
    data = pipeline(
        "Market Data", [source("1/sources/0", "Market Data", 7011)],
        [step("1/steps/0", "Update Market Data", "state_computation", ["1/sources/0"], copy.deepcopy(market))], [],
    )  # fmt: skip
    return application("market-spread", orders, data)


def branches() -> Document:
    return application(
        "Branches",
        pipeline(
            "b", [source("0/sources/0", "left", 7010), source("0/sources/1", "right", 0)],
            [
                step("0/steps/0", "clean", "computation", ["0/sources/0", "0/sources/1"]),
                step("0/steps/1", "all", "state_computation_multi", ["0/steps/0"], state("everything")),
                step("0/steps/2", "per key", "state_computation", ["0/steps/0", "0/steps/1"], state("keys", [])),
            ],
            [sink("0/sinks/0", "first", ["0/steps/1", "0/steps/2"]), sink("0/sinks/1", "raw", ["0/steps/0"], 7003)],
        ),
    )  # fmt: skip


def timed() -> Document:
    """Two steps with one state that ends, of which one has timers; a third one has timers by event time."""
    records = {"path": "0/sources/0", "name": "in", "kind": "connector", "host": "127.0.0.1", "port": 7010}
    records |= {
        "cookie": "c",
        "max_credits": 9,
        "refill_credits": 4,
        "max_message_bytes": 100,
        "codec": "native",
        "worker": "main",
    }
    shared = {"name": "carts", "ttl_ms": 60000, "codec": "native", "key": {"kind": "message"}}
    own = {"name": "seen", "codec": "native", "key": {"kind": "message"}}
    last = {"codec": "native", "worker": "main"}
    path = {"inputs": ["0/sources/0"]}
    steps = [
        {
            "path": "0/steps/0",
            "name": "add",
            "kind": "state_computation",
            **path,
            "state": shared,
            "timers": ["remind", "end"],
            "time": "ingest",
            **last,
        },
        {
            "path": "0/steps/1",
            "name": "look",
            "kind": "state_computation_multi",
            **path,
            "state": copy.deepcopy(shared),
            "time": "ingest",
            **last,
        },
        {
            "path": "0/steps/2",
            "name": "seen",
            "kind": "state_computation",
            **path,
            "state": own,
            "timers": ["end"],
            "time": "event",
            **last,
        },
    ]
    sinks = [sink("0/sinks/0", "out", ["0/steps/0", "0/steps/1", "0/steps/2"])]
    return application("Timed", pipeline("timed", [records], steps, sinks))  # fmt: skip


def plain(name: str = "Reverse Word", framing: Document | None = None, steps: int = 1) -> Document:
    made = [
        step(f"0/steps/{i}", f"step {i}", "computation", [f"0/steps/{i - 1}" if i else "0/sources/0"])
        for i in range(steps)
    ]
    last = made[-1]["path"] if made else "0/sources/0"
    return application(
        name,
        pipeline(
            "Reverse", [source("0/sources/0", "Reverse", framing=framing)], made, [sink("0/sinks/0", "Reverse", [last])]
        ),
    )


def policies() -> Document:
    document = plain("Policies", steps=2)
    whole = document["pipelines"][0]
    whole["sources"][0]["on_error"] = whole["sinks"][0]["on_error"] = "dead_letter"
    whole["steps"][1]["on_error"] = "fail"
    head = {name: document.pop(name) for name in ("topology_version", "name")}
    return head | {"on_error": "fail"} | document


def outputs() -> Document:
    """A state computation with two named outputs, of which one is read, and a window with one."""
    by_message = {"codec": "native", "key": {"kind": "message"}}
    count = {"kind": "count", "count": 3, "flush_ms": 1000}
    last = {"codec": "native", "worker": "main"}
    steps = [
        step("0/steps/0", "check", "computation", ["0/sources/0"]),
        step("0/steps/1", "alerts", "output", ["0/steps/0"]) | {"codec": "json"},
        step("0/steps/2", "Größe <&>", "output", ["0/steps/0"]),
        step("0/steps/3", "all", "collect", ["0/steps/1"]),
        {"path": "0/steps/4", "name": "three", "kind": "window", "inputs": ["0/steps/3"], "state": {"name": "three", **by_message}, "window": count} | last,
        step("0/steps/5", "alerts", "output", ["0/steps/4"]),
    ]  # fmt: skip
    sinks = [sink("0/sinks/0", "o", ["0/steps/0", "0/steps/4"]), sink("0/sinks/1", "o", ["0/steps/5"], 7003)]
    return application("Outputs", pipeline("o", [source("0/sources/0", "o")], steps, sinks))


def every_kind() -> Document:
    """All kinds of sources, steps, windows and sinks, with all properties that each may have."""
    end = {"max_message_bytes": 1048576, "codec": "json", "worker": "main", "on_error": "dead_letter"}
    address, brokers = {"host": "127.0.0.1", "port": 0}, {"brokers": ["127.0.0.1:9092", "[::1]:9093"]}
    kinds: list[Document] = [
        {"kind": "tcp"} | address | {"framing": {"kind": "u64be"}},
        {"kind": "kafka", "topic": "orders.v1"} | brokers | {"start": "start", "partitions": [{"number": 0, "start": "7"}, {"number": 3}], "options": {"kafka.isolation.level": "read_committed"}},
        {"kind": "connector"} | address | {"cookie": "🍪", "max_credits": 1, "refill_credits": 1},
        {"kind": "spark", "format": "csv", "options": {"path": "/srv/in", "sep": ";"}, "schema": "id LONG, at TIMESTAMP, text STRING", "value": "text", "key": "id", "timestamp": "at"},
    ]  # fmt: skip
    names = ["tcp", "kafka", "connector", "spark"]
    sources = [
        {"path": f"0/sources/{n}", "name": name} | kind | end
        for n, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]
    generator = {"path": "0/sources/4", "name": "generator", "kind": "generator", "codec": "int64", "worker": "main"}
    windows: list[Document] = [
        {"kind": "range", "range_ms": 9000, "slide_ms": 3000, "delay_ms": 500, "late": "fire_per_message", "time": "event"},
        {"kind": "count", "count": 3, "flush_ms": 1000},
    ]  # fmt: skip
    by_message = {"codec": "native", "key": {"kind": "message"}}
    last = {"codec": "native", "worker": "main"}
    steps = [
        {"path": "0/steps/0", "name": "key", "kind": "key_by", "inputs": [each["path"] for each in sources], "codec": "json", "worker": "keys", "component": "key", "on_error": "fail"},
        {"path": "0/steps/1", "name": "last", "kind": "window", "inputs": ["0/steps/0"], "state": {"name": "last", **by_message}, "window": windows[0]} | last,
        {"path": "0/steps/2", "name": "one", "kind": "collect", "inputs": ["0/sources/4", "0/steps/1"]} | last,
        {"path": "0/steps/3", "name": "three", "kind": "window", "inputs": ["0/steps/2"], "state": {"name": "three", **by_message}, "window": windows[1]} | last,
        {"path": "0/steps/4", "name": "sum", "kind": "state_computation_multi", "inputs": ["0/steps/3"], "state": {"name": "sum", **by_message}} | last,
    ]  # fmt: skip
    to = {"inputs": ["0/steps/4"], "worker": "main", "on_error": "fail"}
    sinks = [
        {"path": "0/sinks/0", "name": "tcp", "kind": "tcp", "host": "::1", "port": 7002} | to,
        {"path": "0/sinks/1", "name": "connector", "kind": "connector", "host": "localhost", "port": 7100, "cookie": ""} | to,
        {"path": "0/sinks/2", "name": "kafka", "kind": "kafka", "topic": "sums"} | brokers | {"options": {"kafka.acks": "all"}} | to,
        {"path": "0/sinks/3", "name": "spark", "kind": "spark", "format": "parquet", "options": {"path": "/srv/out"}, "value": "sum"} | to,
    ]  # fmt: skip
    # The hash of {"components": [{"name": "key", "kind": "key_by", "input": "json", "output": "json"}]} in canonical form.
    library = "sha256:6fe5fe18d8dabca8deb85fd4a46f449290a10b1cea778ecfb4459a1bb3d979d5"
    workers = [worker(), worker("keys", language="go", command=["/srv/keys"], interface_hash=library)]
    return application("Every kind", pipeline("all", [*sources, generator], steps, sinks), workers=workers)


def records() -> Document:
    """Whole records of Kafka: a table, a stream and what both make, each with a way in which its topic is created."""
    brokers, options = {"brokers": ["127.0.0.1:9092"]}, {"kafka.partitioner": "fnv1a"}
    end = {"max_message_bytes": 1048576, "codec": "native", "worker": "main"}
    whole = {"content": "record"}
    compact = {"cleanup.policy": "compact"}
    sources = [
        {"path": "0/sources/0", "name": "users", "kind": "kafka", "topic": "users"} | brokers | {"start": "start", "options": {}} | whole | {"table": True, "create": {"partitions": 3, "replicas": 2, "options": compact}} | end,
        {"path": "0/sources/1", "name": "clicks", "kind": "kafka", "topic": "clicks"} | brokers | {"start": "end", "options": {}} | whole | end,
    ]  # fmt: skip
    by_message = {"name": "counts", "codec": "native", "key": {"kind": "message"}}
    steps = [
        {"path": "0/steps/0", "name": "count", "kind": "state_computation", "inputs": ["0/sources/0", "0/sources/1"], "state": by_message, "codec": "native", "worker": "main"},
        {"path": "0/steps/1", "name": "counts-table", "kind": "output", "inputs": ["0/steps/0"], "codec": "native", "worker": "main"},
    ]  # fmt: skip
    once = brokers | {"options": options, "exactly_once": True} | whole
    sinks = [
        {"path": "0/sinks/0", "name": "counted", "kind": "kafka", "topic": "counted"} | once | {"inputs": ["0/steps/0"], "worker": "main"},
        {"path": "0/sinks/1", "name": "counts", "kind": "kafka", "topic": "counts-table"} | once | {"create": {"like": "clicks", "options": compact}, "inputs": ["0/steps/1"], "worker": "main"},
    ]  # fmt: skip
    return application("Records", pipeline("records", sources, steps, sinks))


LETTERS = [chr(code) for code in range(ord("a"), ord("z") + 1)]
VALID: dict[str, Document] = {
    "word_count": word_count([*LETTERS, "!"], "dead_letter"),
    "word_count_open": word_count([], "create"),
    "reverse": plain(),
    "no_steps": plain(steps=0),
    "long_chain": plain(steps=5),
    "worker_framing": plain("Own framing", {"kind": "worker", "header_bytes": 5}),
    "newline_framing": plain("Lines", {"kind": "newline"}),
    "little_endian": plain("Little", {"kind": "u16le"}),
    "names": plain('Größe <&> " \\ \u2028 🤞🏽 ' + "n" * 100),
    "key_values": word_count(["AAPL", 7, 18446744073709551615, {"base64": "/w=="}, "", "Grüße", '"<&>'], "create"),
    "shared_state": shared_state(),
    "branches": branches(),
    "policies": policies(),
    "every_kind": every_kind(),
    "outputs": outputs(),
    "timed": timed(),
    "records": records(),
}


def changed(document: Document, *edits: Callable[[Document], Any]) -> Document:
    made = copy.deepcopy(document)
    for edit in edits:
        edit(made)
    return made


def put(value: Any, *path: str | int) -> Callable[[Document], None]:
    """Return an edit that sets the value at a path of keys and positions."""

    def edit(document: Document) -> None:
        at: Any = document
        for item in path[:-1]:
            at = at[item]
        at[path[-1]] = value

    return edit


def drop(*path: str | int) -> Callable[[Document], None]:
    """Return an edit that removes a property."""

    def edit(document: Document) -> None:
        at: Any = document
        for item in path[:-1]:
            at = at[item]
        del at[path[-1]]

    return edit


SAME_INTERFACE: dict[str, Document] = {
    "word_count as it is": VALID["word_count"],
    "another address": changed(
        VALID["word_count"],
        put("::1", "pipelines", 0, "sources", 0, "host"),
        put(0, "pipelines", 0, "sinks", 0, "port"),
    ),
    "another worker": changed(
        VALID["word_count"], put([worker(language="go", command=["/srv/word_count"])], "workers")
    ),
    "another name": changed(VALID["word_count"], put("Word count", "name")),
    "another kind": changed(VALID["word_count"], put("computation", "pipelines", 0, "steps", 0, "kind")),
    "another policy": changed(VALID["policies"], put("dead_letter", "on_error")),
    "another limit": changed(VALID["word_count"], put(1, "pipelines", 0, "sources", 0, "max_message_bytes")),
}

P0, S0, T0, T1, K0 = (
    "/pipelines/0",
    "/pipelines/0/sources/0",
    "/pipelines/0/steps/0",
    "/pipelines/0/steps/1",
    "/pipelines/0/sinks/0",
)
STEP0, STEP1 = ("pipelines", 0, "steps", 0), ("pipelines", 0, "steps", 1)
SOURCE0, SINK0 = ("pipelines", 0, "sources", 0), ("pipelines", 0, "sinks", 0)


def bad(expect: list[tuple[str, str]], base: str, *edits: Callable[[Document], Any]) -> Document:
    findings = [{"code": code, "pointer": pointer} for code, pointer in expect]
    return {"expect": findings, "document": changed(VALID[base], *edits)}


def bad_text(text: str) -> Document:
    return {"expect": [{"code": "T101", "pointer": ""}], "text": text}


def second_class(document: Document) -> None:
    document["workers"][0]["components"] = [
        {"path": "0/steps/0/state", "symbol": "First"},
        {"path": "1/steps/0/state", "symbol": "Second"},
    ]


INVALID: dict[str, Document] = {
    "not_json": bad_text('{"topology_version": 1,'),
    "empty_text": bad_text(""),
    "key_twice": bad_text('{"topology_version": 1, "topology_version": 1}'),
    "not_a_number": bad_text('{"topology_version": NaN}'),
    "not_an_object": {"expect": [{"code": "T102", "pointer": ""}], "document": []},
    "version_2": bad([("T103", "/topology_version")], "reverse", put(2, "topology_version")),
    "version_missing": bad([("T102", "")], "reverse", drop("topology_version")),
    "property_missing": bad([("T102", S0)], "reverse", drop(*SOURCE0, "framing")),
    "property_unknown": bad([("T102", f"{T0}/parallelism")], "reverse", put(4, *STEP0, "parallelism")),
    "property_null": bad([("T102", f"{K0}/host")], "reverse", put(None, *SINK0, "host")),
    "float_port": bad([("T102", f"{S0}/port")], "reverse", put(7010.5, *SOURCE0, "port")),
    "port_too_large": bad([("T102", f"{S0}/port")], "reverse", put(65536, *SOURCE0, "port")),
    "kind_unknown": bad([("T102", f"{T0}/kind")], "reverse", put("compute", *STEP0, "kind")),
    "policy_unknown": bad([("T102", "/on_error"), ("T102", f"{T0}/on_error")], "reverse", put("stop", "on_error"), put("skip", *STEP0, "on_error")),
    "framing_unknown": bad([("T102", f"{S0}/framing/kind")], "reverse", put({"kind": "u24be"}, *SOURCE0, "framing")),
    "framing_of_lines_with_length": bad([("T102", f"{S0}/framing/header_bytes")], "reverse", put({"kind": "newline", "header_bytes": 1}, *SOURCE0, "framing")),
    "framing_of_worker_without_length": bad([("T102", f"{S0}/framing")], "reverse", put({"kind": "worker"}, *SOURCE0, "framing")),
    "no_pipelines": bad([("T102", "/pipelines")], "reverse", put([], "pipelines")),
    "no_workers": bad([("T102", "/workers")], "reverse", put([], "workers")),
    "no_inputs": bad([("T102", f"{T0}/inputs")], "reverse", put([], *STEP0, "inputs")),
    "control_character_in_name": bad([("T102", "/name")], "reverse", put("a\nb", "name")),
    "name_too_long": bad([("T102", f"{P0}/name")], "reverse", put("n" * 201, "pipelines", 0, "name")),
    "hash_not_hex": bad([("T102", "/workers/0/interface_hash")], "reverse", put("sha256:xyz", "workers", 0, "interface_hash")),
    "state_missing": bad([("T102", T1)], "word_count", drop(*STEP1, "state")),
    "state_on_computation": bad([("T102", f"{T0}/state")], "reverse", put(state("s"), *STEP0, "state")),
    "key_negative": bad([("T102", f"{T1}/state/key/values/0")], "word_count_open", put([-1], *STEP1, "state", "key", "values")),
    "key_past_uint64": bad([("T102", f"{T1}/state/key/values/1")], "word_count_open", put(["a", 1 << 64], *STEP1, "state", "key", "values")),
    "duplicate_pipeline": bad([("T203", "/pipelines/1/name")], "shared_state", put("Orders", "pipelines", 1, "name")),
    "no_sink": bad([("T204", "/pipelines")], "reverse", put([], "pipelines", 0, "sinks")),
    "state_class_conflict": bad([("T205", "/pipelines/1/steps/0/state")], "shared_state", second_class),
    "duplicate_key": bad([("T203", f"{T1}/state/key/values/1")], "word_count_open", put(["a", {"base64": "YQ=="}], *STEP1, "state", "key", "values")),
    "duplicate_integer_key": bad([("T203", f"{T1}/state/key/values/1")], "word_count_open", put([7, {"base64": "AAAAAAAAAAc="}], *STEP1, "state", "key", "values")),
    "name_not_nfc": bad([("T210", "/name")], "reverse", put("Gru\u0308n", "name")),
    "host_with_space": bad([("T211", f"{S0}/host")], "reverse", put("local host", *SOURCE0, "host")),
    "unknown_input": bad([("T213", f"{T0}/inputs/0")], "reverse", put(["0/sources/7"], *STEP0, "inputs")),
    "unknown_sink_input": bad([("T213", f"{K0}/inputs/0")], "reverse", put(["0/steps/1"], *SINK0, "inputs")),
    "loop_of_one": bad([("T213", f"{T0}/inputs")], "reverse", put(["0/steps/0"], *STEP0, "inputs")),
    "ttl_on_a_computation": bad([("T102", f"{T0}/state"), ("T102", f"{T0}/state/ttl_ms")], "reverse", put(state("s") | {"ttl_ms": 5}, *STEP0, "state")),
    "ttl_of_a_window": bad([("T102", "/pipelines/0/steps/1/state/ttl_ms")], "every_kind", put(5, "pipelines", 0, "steps", 1, "state", "ttl_ms")),
    "ttl_of_nothing": bad([("T102", f"{T0}/state/ttl_ms"), ("T205", f"{T1}/state")], "timed", put(0, *STEP0, "state", "ttl_ms")),
    "ttl_conflict": bad([("T205", f"{T1}/state")], "timed", put(60001, *STEP1, "state", "ttl_ms")),
    "timer_twice": bad([("T102", f"{T0}/timers/1")], "timed", put(["end", "end"], *STEP0, "timers")),
    "timer_not_nfc": bad([("T210", f"{T0}/timers/0")], "timed", put(["a\u0301"], *STEP0, "timers")),
    "timers_on_a_computation": bad([("T102", f"{T0}/timers")], "reverse", put(["end"], *STEP0, "timers")),
    "time_missing": bad([("T102", T0)], "timed", drop(*STEP0, "time")),
    "time_of_a_step_without_times": bad([("T102", f"{T1}/time")], "word_count", put("ingest", *STEP1, "time")),
    "time_conflict": bad([("T102", f"{T1}/time")], "timed", put("event", *STEP1, "time")),
    "output_of_a_source": bad([("T213", "/pipelines/0/steps/1/inputs")], "outputs", put(["0/sources/0"], "pipelines", 0, "steps", 1, "inputs")),
    "output_of_two": bad([("T213", "/pipelines/0/steps/5/inputs")], "outputs", put(["0/steps/0", "0/steps/4"], "pipelines", 0, "steps", 5, "inputs")),
    "output_twice": bad([("T203", "/pipelines/0/steps/2/inputs")], "outputs", put("alerts", "pipelines", 0, "steps", 2, "name")),
    "loop_of_two": bad([("T213", f"{T0}/inputs")], "word_count", put(["0/steps/1"], *STEP0, "inputs")),
    "step_before_its_input": bad([("T102", f"{T0}/inputs/0")], "word_count", put(["0/steps/1"], *STEP0, "inputs"), put(["0/sources/0"], *STEP1, "inputs")),
    "wrong_path": bad([("T213", f"{T0}/path")], "long_chain", put("0/steps/9", *STEP0, "path")),
    "state_keys_conflict": bad([("T205", "/pipelines/1/steps/0/state/key")], "shared_state", put(["AAPL"], "pipelines", 1, "steps", 0, "state", "key", "values")),
    "same_address": bad([("T203", "/pipelines/1/sources/0/port")], "shared_state", put(7010, "pipelines", 1, "sources", 0, "port")),
    "cookie_missing": bad([("T102", "/pipelines/0/sinks/1")], "every_kind", drop("pipelines", 0, "sinks", 1, "cookie")),
    "more_refill_than_credits": bad([("T102", "/pipelines/0/sources/2/refill_credits")], "every_kind", put(2, "pipelines", 0, "sources", 2, "refill_credits")),
    "slide_past_range": bad([("T102", "/pipelines/0/steps/1/window/slide_ms")], "every_kind", put(9001, "pipelines", 0, "steps", 1, "window", "slide_ms")),
    "no_broker": bad([("T102", "/pipelines/0/sources/1/brokers")], "every_kind", put([], "pipelines", 0, "sources", 1, "brokers")),
    "option_no_number": bad([("T274", "/pipelines/0/sources/1/options/maxOffsetsPerTrigger")], "every_kind", put({"maxOffsetsPerTrigger": "-1"}, "pipelines", 0, "sources", 1, "options")),
    "table_of_values": bad([("T274", f"{S0}/table")], "records", drop(*SOURCE0, "content")),
    "table_from_its_end": bad([("T274", f"{S0}/start")], "records", put("end", *SOURCE0, "start")),
    "table_of_partitions_from_offsets": bad([("T274", f"{S0}/partitions/1/start")], "records", put([{"number": 0}, {"number": 1, "start": "7"}], *SOURCE0, "partitions")),
    "table_in_parts": bad([("T274", f"{S0}/options/maxoffsetspertrigger")], "records", put({"maxoffsetspertrigger": "5"}, *SOURCE0, "options")),
    "content_unknown": bad([("T102", "/pipelines/0/sources/1/content")], "records", put("key", "pipelines", 0, "sources", 1, "content")),
    "topic_like_itself": bad([("T274", "/pipelines/0/sinks/1/create/like")], "records", put("counts-table", "pipelines", 0, "sinks", 1, "create", "like")),
    "topic_without_partitions": bad([("T102", f"{S0}/create")], "records", drop(*SOURCE0, "create", "partitions")),
    "topic_in_two_ways": bad([("T274", f"{K0}/create")], "records", put("users", *SINK0, "topic"), put({"partitions": 4}, *SINK0, "create")),
    "unknown_worker": bad([("T213", f"{T0}/worker")], "reverse", put("mian", *STEP0, "worker")),
    "three_faults": bad(
        [("T102", f"{S0}/port"), ("T203", "/pipelines/1/name"), ("T213", "/pipelines/1/steps/0/inputs/0")], "shared_state",
        put(-1, *SOURCE0, "port"), put("Orders", "pipelines", 1, "name"), put(["1/sources/4"], "pipelines", 1, "steps", 0, "inputs"),
    ),
}  # fmt: skip
