"""`on_error`: its place in the document, and what is no policy."""

from typing import Any

import pytest

import wallaroo
from wallaroo import ApplicationBuilder, TCPSinkConfig, TCPSourceConfig, WallarooParameterError
from wallaroo.emit.topology import interface_hash, topology


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs: bytes) -> bytes:
    return bs


@wallaroo.encoder
def encode(data: Any) -> Any:
    return data


@wallaroo.computation("pass")
def same(data: Any) -> Any:
    return data


@wallaroo.state_computation("keep")
def keep(data: Any, state: Any) -> Any:
    return data, True


@wallaroo.partition
def key(data: Any) -> Any:
    return data


class State:
    pass


def document(policy: str | None) -> dict[str, Any]:
    builder = ApplicationBuilder("app", on_error=policy)
    builder.new_pipeline("one", TCPSourceConfig("127.0.0.1", "7010", decode, on_error=policy))
    builder.to(same, on_error=policy).to_parallel(same, on_error=policy)
    builder.to_stateful(keep, State, "single", on_error=policy)
    builder.to_state_partition(keep, State, "many", key, on_error=policy)
    builder.to_sink(TCPSinkConfig("127.0.0.1", "7002", encode, on_error=policy))
    return topology(builder.build(), "no_such", "app.py", [])


def parts(document: dict[str, Any]) -> list[dict[str, Any]]:
    pipeline = document["pipelines"][0]
    return [*pipeline["sources"], *pipeline["steps"], *pipeline["sinks"]]


@pytest.mark.parametrize("policy", ["dead_letter", "fail"])
def test_a_policy_stands_where_the_schema_puts_it(policy: str) -> None:
    made = document(policy)
    assert list(made) == ["topology_version", "name", "on_error", "workers", "pipelines"]
    assert made["on_error"] == policy
    assert len(parts(made)) == 6
    assert [list(part.items())[-1] for part in parts(made)] == [("on_error", policy)] * 6
    assert made["workers"][0]["interface_hash"] == interface_hash(made)


def test_a_program_that_says_nothing_has_the_document_of_before() -> None:
    made = document(None)
    assert list(made) == ["topology_version", "name", "workers", "pipelines"]
    assert not any("on_error" in part for part in parts(made))
    assert interface_hash(made) != interface_hash(document("dead_letter"))


def test_what_is_no_policy() -> None:
    with pytest.raises(WallarooParameterError) as caught:
        document("stop")
    rest = 'parameter on_error is \'stop\'; expected "dead_letter" or "fail"'
    methods = ["ApplicationBuilder", "TCPSinkConfig", "TCPSourceConfig", "to", "to_parallel", "to_stateful"]
    for method in [*methods, "to_state_partition"]:
        assert f"T207 {method}: {rest}" in str(caught.value)
