"""The behaviours that Wallaroo's own unit tests showed for its decorators (tags 0.5.4 and 0.6.1), one test for each.

Two things of Wallaroo are left out, because no program can depend on them here:

- Wallaroo made a class for each decorated function and put it into the module `wallaroo` under a generated name
  (`Computation__f`, in 0.6.1 `Computation_1__f`), so that pickle found it. Here a pickle holds the module
  and the name of the function.
- Wallaroo turned integer keys into a character (`chr`), because its keys were texts. Keys may be integers here.
"""

import pickle
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import wallaroo


@wallaroo.computation(name="Double")
def double(data: Any) -> Any:
    """Give the message twice."""
    return data * 2


@wallaroo.computation("Positional")
def positional(data: Any) -> Any:
    return data


@wallaroo.computation_multi(name="Letters")
def letters(data: str) -> list[str]:
    return list(data)


class Tally:
    """A state."""

    def __init__(self) -> None:
        self.votes = 0

    def add(self, votes: int) -> None:
        """Change the state in place."""
        self.votes += votes


@wallaroo.state_computation(name="Tally up")
def tally_up(data: int, state: Tally) -> Any:
    state.add(data)
    return state.votes, True


@wallaroo.state_computation(name="Tally with class", state=Tally)
def tally_with_class(data: int, state: Tally) -> Any:
    state.add(data)
    return state.votes


@wallaroo.state_computation_multi(name="Tally and tell")
def tally_and_tell(data: int, state: Tally) -> Any:
    state.add(data)
    return [data, state.votes], True


@wallaroo.partition
def first_letter(data: str) -> str:
    return data[0]


@wallaroo.key_extractor
def last_letter(data: str) -> str:
    return data[-1]


@wallaroo.decoder(header_length=2, length_fmt=">H")
def text(bs: bytes) -> str:
    return bs.decode()


@wallaroo.encoder
def line(data: Any) -> str:
    return f"{data}\n"


STEPS = (double, positional, letters, tally_up, tally_with_class, tally_and_tell)
DECORATED = (*STEPS, first_letter, last_letter, text, line)


def again(value: Any) -> Any:
    """Return what comes back from a pickle."""
    return pickle.loads(pickle.dumps(value))


def test_computation() -> None:
    assert (double.name(), positional.name()) == ("Double", "Positional")
    assert (double.compute("ab"), positional.compute("ab")) == ("abab", "ab")
    assert isinstance(double, wallaroo.Computation)
    assert not isinstance(double, wallaroo.StateComputation)


def test_computation_from_a_pickle() -> None:
    assert (again(double).name(), again(double).compute("ab")) == ("Double", "abab")
    assert (again(positional).name(), again(positional).compute("ab")) == ("Positional", "ab")
    assert isinstance(again(double), type(double))


def test_computation_multi() -> None:
    assert (letters.name(), letters.compute_multi("ab")) == ("Letters", ["a", "b"])
    assert isinstance(letters, wallaroo.ComputationMulti)
    assert not isinstance(letters, wallaroo.Computation)


def test_computation_multi_from_a_pickle() -> None:
    assert (again(letters).name(), again(letters).compute_multi("ab")) == ("Letters", ["a", "b"])


def test_state_computation() -> None:
    assert (tally_up.name(), tally_up.compute(3, Tally())) == ("Tally up", (3, True))
    assert (tally_with_class.name(), tally_with_class.compute(3, Tally())) == ("Tally with class", 3)
    assert isinstance(tally_up, wallaroo.StateComputation)


def test_state_computation_from_a_pickle() -> None:
    assert (again(tally_up).name(), again(tally_up).compute(3, Tally())) == ("Tally up", (3, True))
    assert again(tally_with_class).compute(3, Tally()) == 3


def test_state_computation_multi() -> None:
    assert (tally_and_tell.name(), tally_and_tell.compute_multi(3, Tally())) == ("Tally and tell", ([3, 3], True))
    assert isinstance(tally_and_tell, wallaroo.StateComputationMulti)


def test_state_computation_multi_from_a_pickle() -> None:
    assert again(tally_and_tell).name() == "Tally and tell"
    assert again(tally_and_tell).compute_multi(3, Tally()) == ([3, 3], True)


def test_state_is_changed_in_place_and_each_one_is_new() -> None:
    state = wallaroo.StateBuilder(Tally).build()
    state.add(2)
    assert (state.votes, wallaroo.StateBuilder(Tally).build().votes) == (2, 0)


def test_state_from_a_pickle_is_another_object() -> None:
    state = again(Tally)()
    state.add(2)
    other = again(state)
    other.add(5)
    assert (state.votes, other.votes) == (2, 7)


def test_partition_and_key_extractor() -> None:
    assert (first_letter.partition("abc"), last_letter.extract_key("abc")) == ("a", "c")
    assert isinstance(first_letter, wallaroo.Partition)
    assert isinstance(last_letter, wallaroo.KeyExtractor)


def test_partition_and_key_extractor_from_a_pickle() -> None:
    assert (again(first_letter).partition("abc"), again(last_letter).extract_key("abc")) == ("a", "c")


def test_decoder() -> None:
    assert (text.header_length(), text.payload_length(struct.pack(">H", 10)), text.decode(b"hello")) == (2, 10, "hello")
    assert isinstance(text, wallaroo.Decoder)


def test_decoder_from_a_pickle() -> None:
    decoder = again(text)
    assert (decoder.header_length(), decoder.payload_length(b"\x00\x0a"), decoder.decode(b"a")) == (2, 10, "a")


def test_encoder() -> None:
    assert line.encode("hello") == "hello\n"
    assert isinstance(line, wallaroo.Encoder)


def test_encoder_from_a_pickle() -> None:
    assert again(line).encode("hello") == "hello\n"


@pytest.mark.parametrize("decorated", DECORATED, ids=lambda decorated: decorated.__name__)
def test_decorated_functions_keep_what_they_were(decorated: Any) -> None:
    function = decorated.function
    assert decorated.__wrapped__ is function
    assert (decorated.__name__, decorated.__doc__, decorated.__module__) == (
        function.__name__,
        function.__doc__,
        __name__,
    )
    assert decorated() is decorated
    assert globals()[decorated.__name__] is decorated


def test_plain_calls_run_the_function() -> None:
    assert (double("ab"), letters("ab"), tally_up(3, Tally())) == ("abab", ["a", "b"], (3, True))
    assert (first_letter("ab"), text(b"ab"), line(1)) == ("a", "ab", "1\n")


@pytest.mark.slow
def test_pickles_cross_processes() -> None:
    code = (
        "import pickle, sys; made = pickle.loads(sys.stdin.buffer.read()); "
        "print([f.name() for f in made[:6]], made[0].compute('ab'), made[8].decode(b'x'), made[9].encode(1), end='')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(DECORATED), capture_output=True, check=True, timeout=300,
        env={"PYTHONPATH": str(Path(__file__).parent)},
    )  # fmt: skip
    names = ["Double", "Positional", "Letters", "Tally up", "Tally with class", "Tally and tell"]
    assert done.stdout.decode() == f"{names} abab x 1\n"
