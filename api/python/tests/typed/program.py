"""What type checkers say of programs: each line with `# refused` has a fault, others have none; see test_typed.py."""

from datetime import datetime, timedelta, timezone
from typing import Any

import wallaroo
from wallaroo.testing import run


class Total:
    votes = 0


class Other:
    pass


class Sized:
    def __init__(self, size: int) -> None:
        self.size = size


# The forms of Wallaroo 0.6: decorated functions, state classes with the decorator.
@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs: bytes) -> str:
    return bs.decode()


@wallaroo.line_decoder
def decode_line(bs: bytes) -> str:
    return bs.decode()


def time_of(bs: bytes) -> int:
    return int(bs)


@wallaroo.line_decoder(event_time=time_of)
def decode_timed_line(bs: bytes) -> str:
    return bs.decode()


@wallaroo.decoder(header_length=4, length_fmt=">I", event_time=time_of)
def decode_timed(bs: bytes) -> str:
    return bs.decode()


@wallaroo.line_decoder(event_time=5)  # refused
def decode_no_time(bs: bytes) -> str:
    return bs.decode()


timed: str = decode_timed_line(b"5") + decode_timed(b"5")
untimed: int = decode_timed_line(b"5")  # refused


@wallaroo.encoder
def encode(data: object) -> bytes:
    return str(data).encode()


@wallaroo.line_encoder
def encode_line(data: object) -> str:
    return str(data)


@wallaroo.computation("reverse")
def reverse(data: str) -> str:
    return data[::-1]


@wallaroo.computation("with an option")
def optional(data: str, width: int = 80) -> str | None:
    return data[:width]


@wallaroo.computation("untyped", outputs=("alerts",))
def untyped(data):  # type: ignore[no-untyped-def]
    return data


@wallaroo.computation("two")
def two(data: str, other: str) -> str:
    return data + other


@wallaroo.computation_multi("split")
def split(data: str) -> list[str]:
    return data.split()


@wallaroo.computation_multi("one")
def one(data: str) -> int:
    return len(data)


@wallaroo.state_computation("add", state=Total)
def add(data: int, state: Total) -> int:
    state.votes += data
    return state.votes


@wallaroo.state_computation("wrong state", state=Other)
def wrong_state(data: int, state: Total) -> int:
    return state.votes


@wallaroo.state_computation("no constructor without arguments", state=Sized)
def sized(data: int, state: Sized) -> int:
    return state.size


@wallaroo.state_computation("built", state=wallaroo.StateBuilder(Total))
def built(data: int, state: Total) -> int:
    return state.votes


@wallaroo.state_computation_multi("count", state=dict)
def count(data: str, state: dict[str, int]) -> list[tuple[str, int]] | None:
    state[data] = state.get(data, 0) + 1
    return [(data, state[data])]


@count.visitor("report")
def report(metadata: bytes, key: str, state: dict[str, int]) -> int:
    return len(state)


@wallaroo.key_extractor
def letter(data: str) -> str:
    return data[0]


class Longest(wallaroo.Aggregation):
    def initial_accumulator(self) -> list[str]:
        return []

    def update(self, input: str, accumulator: list[str]) -> None:
        accumulator.append(input)

    def combine(self, accumulator1: list[str], accumulator2: list[str]) -> list[str]:
        return accumulator1 + accumulator2

    def output(self, key: str, accumulator: list[str]) -> str:
        return max(accumulator, key=len)


lines = wallaroo.source("lines", wallaroo.TCPSourceConfig("127.0.0.1", "7010", decode))
lines = wallaroo.source("lines", wallaroo.TCPSourceConfig("lines", "127.0.0.1", 7010, decode_line, True))
keyed = lines.to(reverse).to(reverse()).to(optional).to(untyped).to(split).key_by(letter)
keyed = keyed.to(add).to(count).to(count()).to(built, on_error="fail")
keyed = keyed.to(wallaroo.range_windows(wallaroo.seconds(9)).over(Longest)).to(
    wallaroo.count_windows(5).over(Longest())
)
other = wallaroo.other_program("scorer", "scorer.py")
keyed = keyed.to(other.computation("score")).to(other.state_computation("count"))
keyed.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "7002", encode_line))
wallaroo.offer(add)

lines.to(3)  # refused
lines.to("reverse")  # refused
lines.to(None)  # refused
lines.to(len)  # refused
lines.to(two)  # refused
lines.to(one)  # refused
lines.to(encode)  # refused
lines.to(letter)  # refused
lines.to(wrong_state)  # refused
lines.to(sized)  # refused
lines.to(wallaroo.count_windows(5))  # refused
lines.key_by(reverse)  # refused
lines.to_sink(encode)  # refused
wallaroo.source("lines", decode)  # refused
wallaroo.TCPSourceConfig("127.0.0.1", "7010", encode)  # refused
wallaroo.TCPSinkConfig("127.0.0.1", "7002", decode)  # refused

# A decorated function is called as the function is.
text: str = reverse("abc")
text = reverse(data="abc")
total: int = add(3, Total())
total = add(data=3, state=Total())
total = report(b"", "key", {})
pairs: list[tuple[str, int]] | None = count("a", {})
sent: bytes = encode(3)
name: str = reverse().name()
total = untyped("anything")
state: type[Total] = add.state_class
made: Total = wallaroo.StateBuilder(Total).build()
first: bytes | None = encode_line.encode("abc")

reverse(3)  # refused
reverse("abc", 3)  # refused
two("abc")  # refused
add(3)  # refused
add(3, Other())  # refused
number: int = reverse("abc")  # refused
report("", "key", {})  # refused
decode("abc")  # refused
encode_line.encode("abc").decode()  # refused


# The forms of Wallaroo 0.4 and 0.5: the pipeline names the state, the function returns output and persist.
@wallaroo.state_computation("vote")
def vote(data: str, state: Total) -> tuple[int, bool]:
    state.votes += 1
    return state.votes, True


@wallaroo.state_computation_multi("votes")
def votes(data: str, state: Total) -> tuple[list[int] | None, bool]:
    return None, False


@wallaroo.state_computation("untyped state")
def untyped_state(data, state):  # type: ignore[no-untyped-def]
    return data, True


@wallaroo.state_computation("no persist")
def no_persist(data: str, state: Total) -> int:
    return 1


@wallaroo.partition
def first_letter(data: str) -> str:
    return data[0]


ab = wallaroo.ApplicationBuilder("Votes")
ab.new_pipeline("Votes", wallaroo.TCPSourceConfig("127.0.0.1", "7010", decode))
ab.to(reverse).to_parallel(split).to_stateful(vote, Total, "all")
ab.to_state_partition(votes, Total, "votes", first_letter, ["a", "b"])
ab.to_state_partition(votes, Total, "votes", letter)
ab.to_state_partition(untyped_state, dict, "untyped", first_letter)
ab.to_state_partition(vote, wallaroo.StateBuilder(Total), "votes", first_letter)
ab.to_state_partition_u64(vote, state_builder=Total, state_name="votes", partition_function=first_letter)
ab.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "7002", encode)).build()
result: tuple[int, bool] = vote("a", Total())

ab.to(3)  # refused
ab.to(vote)  # refused
ab.to(add)  # refused
ab.to_parallel(len)  # refused
ab.to_stateful(reverse, Total, "all")  # refused
ab.to_stateful(vote, Other, "all")  # refused
ab.to_stateful(add, Total, "all")  # refused
ab.to_stateful(no_persist, Total, "all")  # refused
ab.to_stateful(vote, 3, "all")  # refused
ab.to_state_partition(vote, Total, "votes", len)  # refused
lines.to(vote)  # refused
lines.to(untyped_state)  # refused


# The forms of Wallaroo 0.1 to 0.3: classes and objects, with types or without.
class Decode:
    def header_length(self):  # type: ignore[no-untyped-def]
        return 4

    def payload_length(self, bs):  # type: ignore[no-untyped-def]
        return int.from_bytes(bs, "big")

    def decode(self, bs):  # type: ignore[no-untyped-def]
        return bs.decode()


class Reverse:
    def name(self):  # type: ignore[no-untyped-def]
        return "reverse"

    def compute(self, data):  # type: ignore[no-untyped-def]
        return data[::-1]


class Split:
    def name(self) -> str:
        return "split"

    def compute_multi(self, data: str) -> list[str]:
        return data.split()


class Add:
    def name(self) -> str:
        return "add"

    def compute(self, data: int, state: Total) -> tuple[int, bool]:
        state.votes += data
        return state.votes, True


class AddToTotal(Add):
    state_class = Total


class Build:
    def build(self) -> Total:
        return Total()


class ByLetter:
    def partition(self, data: str) -> str:
        return data[0]


class KeyByLetter:
    def extract_key(self, data: str) -> str:
        return data[0]


class Encode:
    def encode(self, data: Any) -> bytes:
        return str(data).encode()


class Nameless:
    def compute(self, data: str) -> str:
        return data


ab.new_pipeline("Classes", wallaroo.TCPSourceConfig("127.0.0.1", "7010", Decode))
ab.to(Reverse).to(Reverse()).to_parallel(Split).to_stateful(Add(), Build(), "all")
ab.to_state_partition(Add, Total, "votes", ByLetter(), ["a"])
ab.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "7002", Encode()))
lines.to(Split()).to(Reverse).key_by(KeyByLetter()).to(AddToTotal())

ab.to(Nameless)  # refused
ab.to(Nameless())  # refused
ab.to(Add())  # refused
ab.to_stateful(Reverse(), Total, "all")  # refused
ab.to_state_partition(Add(), Total, "votes", KeyByLetter())  # refused
lines.to(Add())  # refused
lines.key_by(ByLetter())  # refused


# Time: states that end, timers.
@wallaroo.state_computation("session", state=Total, ttl=timedelta(hours=1))
def session(data: int, state: Total, timers: wallaroo.Timers) -> str | None:
    timers.set("close", after=timedelta(minutes=5))
    timers.set("close", at=datetime.now(timezone.utc))
    timers.set("close", at=5)
    timers.delete("close")
    timers.set("close", after=5)  # refused
    timers.set(5)  # refused
    return None


@session.timer("close")
def close(key: str, state: Total, time: int) -> wallaroo.Deleted:
    return wallaroo.Deleted(key)


@wallaroo.state_computation_multi("sessions", ttl=timedelta(hours=1))
def sessions(data: int, state: Total, timers: wallaroo.Timers) -> tuple[list[str], bool]:
    return [], True


class Session:
    ttl = timedelta(hours=1)
    timers = ("close",)

    def name(self) -> str:
        return "session"

    def compute(self, data: int, state: Total, timers: wallaroo.Timers) -> tuple[str, bool]:
        return "", True

    def timer(self, name: str, key: str, state: Total, time: int, timers: wallaroo.Timers) -> tuple[str, bool]:
        return name, True


lines.key_by(letter).to(session).to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "7002", encode))
ab.to_state_partition(sessions, Total, "sessions", first_letter)
ab.to_state_partition(Session(), Total, "sessions", first_letter)
wallaroo.state_computation("session", state=Total, ttl=5)  # refused
lines.to(Session())  # refused
ab.to_stateful(session, Total, "sessions")  # refused
ab.to_state_partition(sessions, Other, "sessions", first_letter)  # refused
session(5, Total())  # refused


# A test of the application.
with run(lambda args: ab.build()) as app:
    app.send(["abc"])
    outputs: list[bytes] = app.output()
