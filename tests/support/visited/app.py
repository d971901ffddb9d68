"""Two levels of state whose keys are visited; `main.go` is the same program."""

from typing import Any

import wallaroo

VISITS = ("add", "show", "odd", "boom", "both")


def application_setup(args: list[str]) -> wallaroo.Application:
    """Declare it for addresses."""
    (source, *_), (sink, *_) = wallaroo.tcp_parse_input_addrs(args), wallaroo.tcp_parse_output_addrs(args)
    builder = wallaroo.ApplicationBuilder("visits")
    builder.new_pipeline("main", wallaroo.TCPSourceConfig(*source, decode))
    builder.to_state_partition(First(), Numbers, "first", key_of)
    builder.to_state_partition(Second(), Numbers, "second", key_of)
    builder.to_sink(wallaroo.TCPSinkConfig(*sink, encode))
    return builder.build()


class Numbers:
    """The state of a key: what it got."""

    def __init__(self) -> None:
        self.values: list[int] = []


class First:
    """Keeps numbers; passes on what a visit shows."""

    visits = VISITS

    def name(self) -> str:
        """Return the step's name."""
        return "first"

    def compute_multi(self, message: list[str], state: Numbers) -> Any:
        """Keep a number, or look at a state and leave a key without one as it is."""
        if message[1] == "peek":
            return [], False
        state.values.append(int(message[1]))
        return [f"{message[0]} got {message[1]}"], True

    def visit(self, name: str, metadata: bytes, key: str, state: Numbers) -> Any:
        """Show the state; change it, fail, or delete it."""
        shown = f"{key} {name} {state.values}"
        if name == "show":
            return [shown], False
        state.values.append(int(metadata))
        if name == "boom" and sum(state.values) % 3 == 0:
            raise ValueError(shown)
        if name == "odd" and len(state.values) % 2:
            return wallaroo.Deleted([shown, shown])
        return [shown], True


class Second:
    """Counts what comes from the first step, and is visited too."""

    visits = ("both",)

    def name(self) -> str:
        """Return the step's name."""
        return "second"

    def compute(self, text: str, state: Numbers) -> Any:
        """Count."""
        state.values.append(1)
        return f"{text} {len(state.values)}", True

    def visit(self, name: str, metadata: bytes, key: str, state: Numbers) -> Any:
        """Count the visit."""
        state.values.append(1)
        return f"{key} second {len(state.values)}", True


@wallaroo.partition
def key_of(message: Any) -> str:
    """Return the key: a letter."""
    return str(message[0])


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(data: bytes) -> list[str]:
    """Read a key and what it gets."""
    return data.decode().split("=")


@wallaroo.encoder
def encode(text: str) -> bytes:
    """Write a line."""
    return f"{text}\n".encode()
