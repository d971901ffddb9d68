"""The usable topology documents among the vectors."""

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
        {"kind": "session", "gap_ms": 30000, "delay_ms": 5000, "late": "drop", "time": "ingest"},
    ]  # fmt: skip
    by_message = {"codec": "native", "key": {"kind": "message"}}
    last = {"codec": "native", "worker": "main"}
    steps = [
        {"path": "0/steps/0", "name": "key", "kind": "key_by", "inputs": [each["path"] for each in sources], "codec": "json", "worker": "keys", "component": "key", "on_error": "fail"},
        {"path": "0/steps/1", "name": "last", "kind": "window", "inputs": ["0/steps/0"], "state": {"name": "last", **by_message}, "window": windows[0]} | last,
        {"path": "0/steps/2", "name": "one", "kind": "collect", "inputs": ["0/sources/4", "0/steps/1"]} | last,
        {"path": "0/steps/3", "name": "three", "kind": "window", "inputs": ["0/steps/2"], "state": {"name": "three", **by_message}, "window": windows[1]} | last,
        {"path": "0/steps/4", "name": "visit", "kind": "window", "inputs": ["0/steps/3"], "state": {"name": "visit", **by_message}, "window": windows[2]} | last,
        {"path": "0/steps/5", "name": "sum", "kind": "state_computation_multi", "inputs": ["0/steps/4"], "state": {"name": "sum", **by_message}} | last,
    ]  # fmt: skip
    to = {"inputs": ["0/steps/5"], "worker": "main", "on_error": "fail"}
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
