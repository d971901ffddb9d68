"""Decorated functions: calls, names, pickles. Spans of time."""

import pickle
from functools import partial
from typing import Any

import pytest

import wallaroo
from wallaroo import WallarooParameterError


@wallaroo.computation("reverse")
def reverse(data: str) -> str:
    """Turn a text round."""
    return data[::-1]


@wallaroo.state_computation_multi("pair")
def pair(data: Any, state: Any) -> Any:
    return [data, state], True


def test_without_arguments_the_object_and_with_arguments_the_result() -> None:
    assert reverse() is reverse
    assert reverse("abc") == "cba"
    assert reverse.compute("abc") == "cba"
    assert reverse.name() == "reverse"
    assert reverse.__doc__ == "Turn a text round."
    assert pair.compute_multi(1, 2) == ([1, 2], True)


def test_each_decorator_gives_its_class() -> None:
    kinds = {
        wallaroo.Computation: wallaroo.computation("c"),
        wallaroo.ComputationMulti: wallaroo.computation_multi("m"),
        wallaroo.Partition: wallaroo.partition,
        wallaroo.Encoder: wallaroo.encoder,
        wallaroo.Decoder: wallaroo.decoder(4, ">I"),
    }
    for cls, decorator in kinds.items():
        wrapped = decorator(lambda data: data)  # type: ignore[operator]
        assert type(wrapped) is cls
        assert isinstance(wrapped, wallaroo.BaseWrapped)
        assert wrapped(3) == 3
    assert type(wallaroo.state_computation("s")(lambda data, state: (data, True))) is wallaroo.StateComputation
    assert isinstance(pair, wallaroo.StateComputationMulti)


def test_objects_and_their_classes_pickle() -> None:
    @wallaroo.partition
    def nested(data: str) -> str:
        return data

    for value in (reverse, nested, type(reverse)):
        assert pickle.loads(pickle.dumps(value)) is value


def test_state_builder() -> None:
    assert wallaroo.StateBuilder(dict).build() == {}


def test_decoder_reads_exactly_its_header() -> None:
    decoder = wallaroo.decoder(header_length=2, length_fmt="<H")(lambda bs: bs)
    assert (decoder.header_length(), decoder.payload_length(b"\x05\x00")) == (2, 5)


def test_a_decorator_without_its_name() -> None:
    with pytest.raises(WallarooParameterError) as caught:

        @wallaroo.computation  # type: ignore[arg-type]
        def f(data: Any) -> Any:
            return data

    finding = caught.value.diagnostics[0]
    assert finding.message == "computation: parameter name is the function f; expected a str"
    assert finding.fix == 'write @wallaroo.computation("name")'
    assert finding.file.endswith("test_decorator.py")


def test_a_decoder_without_a_header() -> None:
    @wallaroo.decoder
    def text(value: bytes) -> str:
        return value.decode()

    @wallaroo.decoder(event_time=lambda value: int(value))
    def number(value: bytes) -> int:
        return int(value)

    assert (text.decode(b"abc"), text(b"abc"), text().event_time) == ("abc", "abc", None)
    assert number.event_time is not None
    assert (number.decode(b"7"), number.event_time(b"7")) == (7, 7)
    assert not hasattr(text, "header_length")


@pytest.mark.parametrize("length_fmt", [">H", ">f", ">II", "no"])
def test_a_format_that_is_no_length_of_the_header(length_fmt: str) -> None:
    for name, declare in (("decoder", wallaroo.decoder), ("Decoder", partial(wallaroo.Decoder, bytes.decode))):
        with pytest.raises(WallarooParameterError) as caught:
            declare(header_length=4, length_fmt=length_fmt)
        finding = caught.value.diagnostics[0]
        assert finding.message == (
            f"{name}: parameter length_fmt is {length_fmt!r}; "
            "expected a struct format that begins with an integer, of header_length = 4 bytes"
        )
        assert finding.file.endswith("test_decorator.py")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:7010", [("127.0.0.1", "7010")]),
        ("a:1,b:2", [("a", "1"), ("b", "2")]),
        ("orders@h:1", [("h", "1")]),
        ("[::1]:7010", [("::1", "7010")]),
    ],
)
def test_addresses(text: str, expected: list[tuple[str, str]]) -> None:
    for options in (["--in", text], ["-i", text], [f"--in={text}"]):
        assert wallaroo.tcp_parse_input_addrs(["wallaroo", *options, "--other", "x"]) == expected
    assert wallaroo.tcp_parse_output_addrs(["-o", text]) == expected


def test_addresses_that_are_missing_or_wrong() -> None:
    with pytest.raises(WallarooParameterError) as caught:
        wallaroo.tcp_parse_output_addrs(["wallaroo"])
    assert caught.value.diagnostics[0].message == "sink address None is not usable; --out is missing"
    with pytest.raises(WallarooParameterError) as caught:
        wallaroo.tcp_parse_input_addrs(["--in", "a:1,b,c"])
    assert [finding.message for finding in caught.value.diagnostics] == [
        "source address 'b' is not usable; it has no port",
        "source address 'c' is not usable; it has no port",
    ]


@wallaroo.key_extractor
def word_key(data: str) -> str:
    return data


@wallaroo.state_computation("total", state=list)
def total(data: str, state: list[str]) -> int:
    state.append(data)
    return len(state)


@wallaroo.state_computation_multi("totals", state=list)
def totals(data: str, state: list[str]) -> list[str]:
    state.append(data)
    return state


def test_decorators_of_wallaroo_0_6_run_and_pickle() -> None:
    assert (word_key("a"), word_key().extract_key("b"), total("a", []), totals("a", [])) == ("a", "b", 1, ["a"])
    assert (total.state_class, total.compute("a", ["b"]), totals.compute_multi("a", ["b"])) == (list, 2, ["b", "a"])
    for each in (word_key, total, totals):
        assert pickle.loads(pickle.dumps(each)) is each


@pytest.mark.parametrize("unit", ["nanoseconds", "microseconds", "milliseconds", "seconds", "minutes", "hours"])
@pytest.mark.parametrize("count", ["5", 0.5, None, True])
def test_a_span_is_a_number(unit: str, count: Any) -> None:
    with pytest.raises(WallarooParameterError) as caught:
        getattr(wallaroo, unit)(count)
    (finding,) = caught.value.diagnostics
    assert finding.code == "T207" and finding.message == f"{unit}: parameter count is {count!r}; expected an int"
    assert f"wallaroo.{unit}(5)" in finding.fix


def test_a_state_by_its_name_alone() -> None:
    @wallaroo.state_computation("count", state=list)
    def count(data: str, *, state: list[str]) -> str:
        return data

    assert count.finding is not None
    assert count.finding.message.endswith(
        "count takes 2 parameters, but state by name alone; expected 2, by their places"
    )
    assert count.finding.fix == "declare it as `def count(data, state)`"
