"""What declarations of each generation do to messages, from the wire to the sinks of one stage."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import wallaroo
from wallaroo import WallarooParameterError
from wallaroo.check.in_place import is_fixed
from wallaroo.component.application import Application
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.emit.topology import topology
from wallaroo.message.frame import read_frame
from wallaroo.message.key import key_bytes
from wallaroo.worker.stage.stage import Stage


@wallaroo.computation("odd lengths")
def odd(data: str) -> Any:
    return data if len(data) % 2 else None


@wallaroo.computation_multi("words")
def words(data: str) -> Any:
    return [word if word != "gap" else None for word in data.split()]


@wallaroo.computation("shout")
def shout(data: str) -> Any:
    return data.upper()


@wallaroo.state_computation("count")
def count(data: str, state: list[str]) -> Any:
    state.append(data)
    return f"{data}{len(state)}", True


@wallaroo.partition
def length(data: str) -> int:
    return len(data)


def tcp_source(kit: Any, port: int) -> wallaroo.TCPSourceConfig:
    return wallaroo.TCPSourceConfig("127.0.0.1", port, kit.decode)


def tcp_sink(kit: Any, port: int = 7002) -> wallaroo.TCPSinkConfig:
    return wallaroo.TCPSinkConfig("127.0.0.1", port, kit.encode)


def document(app: Application) -> Any:
    return topology(app, "/nowhere", "app.py", [])["pipelines"]


def outputs(kit: Any, app: Application, *payloads: bytes, source: str = "0/sources/0", port: int = 0) -> Any:
    """Run the stage that begins at a source."""
    given = Stage(app, kit.stage_of(app, source)).run(0, kit.wire(payloads, port=port))
    assert not kit.letters(given)
    return given


def sunk(kit: Any, app: Application, *payloads: bytes) -> list[bytes]:
    return [value for _, value in kit.sunk(outputs(kit, app, *payloads))]


def test_a_computation_drops_with_none(kit: Any) -> None:
    assert sunk(kit, kit.build(lambda line: line.to(odd)), b"a", b"bb", b"ccc") == [b"<a>", b"<ccc>"]


def test_a_decoder_drops_with_none(kit: Any) -> None:
    assert sunk(kit, kit.build(), b"a", b"drop", b"b") == [b"<a>", b"<b>"]


def test_none_among_several_results_is_dropped(kit: Any) -> None:
    assert sunk(kit, kit.build(lambda line: line.to(words)), b"a gap b", b"gap") == [b"<a>", b"<b>"]


def test_to_parallel_is_a_step_like_any_other(kit: Any) -> None:
    parallel, plain = kit.build(lambda line: line.to_parallel(shout)), kit.build(lambda line: line.to(shout))
    assert document(parallel) == document(plain)
    assert sunk(kit, parallel, b"a", b"b") == [b"<A>", b"<B>"]


def test_a_pipeline_that_is_done_gives_nothing(kit: Any) -> None:
    builder = wallaroo.ApplicationBuilder("test").new_pipeline("quiet", tcp_source(kit, 7010)).to(shout).done()
    builder.new_pipeline("loud", tcp_source(kit, 7011)).to(shout).to_sink(tcp_sink(kit))
    app = builder.build()
    assert [len(line["sinks"]) for line in document(app)] == [0, 1]
    assert outputs(kit, app, b"a", b"b") == []


def test_several_pipelines_have_a_source_each(kit: Any) -> None:
    builder = wallaroo.ApplicationBuilder("test")
    for number, step in enumerate((shout, odd)):
        builder.new_pipeline(str(number), tcp_source(kit, 7010 + number)).to(step).to_sink(tcp_sink(kit, 7002 + number))
    app = builder.build()
    assert [source["port"] for line in document(app) for source in line["sources"]] == [7010, 7011]
    first, second = outputs(kit, app, b"bb"), outputs(kit, app, b"a", b"bb", source="1/sources/0", port=1)
    assert [value for _, value in kit.sunk(first)] == [b"<BB>"]
    assert [value for _, value in kit.sunk(second)] == [b"<a>"]


def test_every_sink_gets_every_message(kit: Any) -> None:
    sinks = [tcp_sink(kit, port) for port in (7002, 7003, 7004)]
    app = wallaroo.ApplicationBuilder("test").new_pipeline("line", tcp_source(kit, 7010)).to_sinks(sinks).build()
    given = {output.port: read_frame(output.frame).values() for output in outputs(kit, app, b"a", b"b")}
    assert given == {port: [b"<a>", b"<b>"] for port in (1, 2, 3)}


def test_a_beginning_that_pipelines_share_feeds_each_of_them(kit: Any) -> None:
    begin = wallaroo.source("line", tcp_source(kit, 7010)).to(words)
    branches = begin.to(shout).merge(begin.to(odd))
    app = wallaroo.build_application("test", branches.to_sink(tcp_sink(kit)))
    assert len(document(app)[0]["sources"]) == 1
    assert sorted(sunk(kit, app, b"a bb")) == [b"<A>", b"<BB>", b"<a>"]


def test_keys_are_numbers_of_64_bits(kit: Any) -> None:
    keys = [1, 2, 2**64 - 1]
    app = kit.build(lambda line: line.to_state_partition_u64(count, list, "seen", length, keys))
    assert document(app)[0]["steps"][0]["state"]["key"]["values"] == keys
    frames = [read_frame(output.frame) for output in outputs(kit, app, b"a", b"bb", b"c")]
    assert sorted(key for frame in frames for key in frame.keys) == [number.to_bytes(8, "big") for number in (1, 2)]


def test_nothing_follows_a_sink(kit: Any) -> None:
    ended = wallaroo.source("line", tcp_source(kit, 7010)).to_sink(tcp_sink(kit)).to(shout)
    with pytest.raises(WallarooParameterError, match="T212 to cannot follow to_sink; the pipeline has ended"):
        wallaroo.build_application("test", ended)


@given(number=some.integers(-(2**63), 2**63 - 1))
def test_an_integer_of_numpy_is_the_key_of_its_number_and_no_state(number: int) -> None:
    assert key_bytes(np.int64(number)) == key_bytes(number)
    assert key_bytes((np.int64(number),)) == key_bytes((number,))
    assert is_fixed(np.int64(number)) and is_fixed(np.float64(number))


@pytest.mark.parametrize("fmt", [">f", "4s", ">?xxx", "cccc", "xxxx"])
def test_a_format_without_a_length_is_refused(fmt: str) -> None:
    with pytest.raises(DiagnosticError, match="expected a struct format that begins with an integer"):
        wallaroo.decoder(4, fmt)


def test_a_class_in_place_of_its_object_is_told() -> None:
    class Upper:
        def __call__(self, text: str) -> str:
            return text.upper()

    with pytest.raises(DiagnosticError, match=r"pass an object of it: .*Upper\(\)"):
        wallaroo.build_application("a", wallaroo.source("s", None).to(wallaroo.computation("up")(Upper)))
