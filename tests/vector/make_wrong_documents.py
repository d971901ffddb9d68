"""Broken topology documents, with the findings that a loader must report."""

from collections.abc import Callable
from typing import Any

from vector.make_documents import VALID, Document, changed, drop, put, state

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
    "timer_of_two_steps": bad([("T205", f"{T1}/timers")], "timed", put(["end"], *STEP0, "timers"), put(["end"], *STEP1, "timers")),
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
    "gap_of_nothing": bad([("T102", "/pipelines/0/steps/4/window/gap_ms")], "every_kind", put(0, "pipelines", 0, "steps", 4, "window", "gap_ms")),
    "too_many_sessions": bad([("T271", "/pipelines/0/steps/4/window/gap_ms")], "every_kind", put(500000000, "pipelines", 0, "steps", 4, "window", "delay_ms"), put(5000, "pipelines", 0, "steps", 4, "window", "gap_ms")),
    "no_broker": bad([("T102", "/pipelines/0/sources/1/brokers")], "every_kind", put([], "pipelines", 0, "sources", 1, "brokers")),
    "option_no_number": bad([("T274", "/pipelines/0/sources/1/options/maxOffsetsPerTrigger")], "every_kind", put({"maxOffsetsPerTrigger": "-1"}, "pipelines", 0, "sources", 1, "options")),
    "option_of_the_runtime": bad([("T274", "/pipelines/0/sources/1/options/kafka.group.id")], "every_kind", put({"kafka.group.id": "mine"}, "pipelines", 0, "sources", 1, "options")),
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
