"""Objects whose own code fails where the SDK asks them: each makes one dead letter, and the call goes on."""

import dataclasses
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

import wallaroo
from wallaroo import testing
from wallaroo.diagnostic.diagnostic import shown


def fail(*_: object) -> NoReturn:
    msg = "no answer"
    raise RuntimeError(msg)


def leave(*_: object) -> NoReturn:
    sys.exit(3)


WAYS = {"fail": fail, "leave": leave}
METHODS = (
    "__repr__",
    "__bool__",
    "__hash__",
    "__eq__",
    "__len__",
    "__iter__",
    "__reduce_ex__",
    "__getstate__",
    "__str__",
)


def unusual(ways: dict[str, str]) -> Any:
    """Return an object whose methods end in these ways."""
    return type("Unusual", (), {method: WAYS[way] for method, way in ways.items()})()


@dataclasses.dataclass(frozen=True)
class Unset:
    """A key without its field."""

    name: str = dataclasses.field(init=False)


HUGE = 10**5000  # an int that Python refuses to show
LITERALS = {"huge": HUGE, "unset": Unset(), "list": [HUGE], "dict": {"a": HUGE}}
# How an object is made, since tools of the test show what is drawn.
recipes = some.one_of(
    some.dictionaries(some.sampled_from(METHODS), some.sampled_from(list(WAYS))), some.sampled_from(list(LITERALS))
)


class Log:
    """The state of a key."""

    def __init__(self) -> None:
        self.seen = 0


class Returned:
    """What the function of the program returns for the message `x`."""

    value: Any = None


def application(place: str) -> Any:
    """Return the setup of an application that returns the object at a place."""

    def at(name: str, other: Any) -> Callable[..., Any]:
        return lambda data, *_: Returned.value if name == place and data == "x" else other(data)

    def counted(data: Any, log: Log) -> Any:
        log.seen += 1
        persist = Returned.value if (place, data) == ("persist", "x") else True
        given = at("state", lambda data: data)(data), persist
        return Returned.value if (place, data) == ("pair", "x") else given

    def setup(args: list[str]) -> Any:
        builder = wallaroo.ApplicationBuilder("unusual")
        builder.new_pipeline("in", wallaroo.TCPSourceConfig("127.0.0.1", 7010, wallaroo.Decoder(bytes.decode, 4, ">I")))
        builder.to(wallaroo.Computation(at("message", lambda data: data), "one"))
        builder.to(wallaroo.ComputationMulti(at("list", lambda data: [data]), "many"))
        builder.to_state_partition(
            wallaroo.StateComputation(counted, "count"), Log, "log", wallaroo.Partition(at("key", str))
        )
        encoder = wallaroo.Encoder(at("bytes", lambda data: data if isinstance(data, str) else "other"))
        return builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encoder)).build()

    return setup


@pytest.mark.parametrize("place", ["message", "list", "key", "pair", "persist", "state", "bytes"])
def test_a_call_goes_on_after_an_unusual_object(place: str) -> None:
    @settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(recipe=recipes)
    def holds(recipe: Any) -> None:
        Returned.value = LITERALS[recipe] if isinstance(recipe, str) else unusual(recipe)
        with testing.run(application(place)) as app:
            app.send([b"a", b"x", b"b"])
            assert {b"a", b"b"} <= set(app.output())
            assert len(app.output()) + len(app.dead_letters) == 3
            assert {letter.code for letter in app.dead_letters} <= {"C501", "C503", "C504"}

    holds()


def test_the_letter_says_what_was_returned_and_expected() -> None:
    ways = {"key": "a key: str, bytes, a number,", "list": "a list or None", "persist": "(message or None, persist)"}
    for place, expected in ways.items():
        Returned.value = unusual({"__repr__": "fail", "__bool__": "fail"})
        with testing.run(application(place)) as app:
            app.send([b"x"])
            (letter,) = app.dead_letters
        assert letter.code == "C503"
        assert expected in letter.error


def test_a_value_that_cannot_be_shown() -> None:
    assert shown(HUGE) == "<int whose repr fails: ValueError>"
    assert shown(unusual({"__repr__": "fail"})) == "<Unusual whose repr fails: RuntimeError>"
