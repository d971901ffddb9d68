"""What the components of a drawn application compute; the Go program has the same in `drawn/compute.go`.

A message is a triple of whole numbers, an `Item`, in any of four forms: text, a number, a structure, a message of
protobuf. The reference, the Python program and the Go program agree on these few functions, and on nothing else.
"""

from typing import Any, NamedTuple

from google.protobuf.struct_pb2 import Struct

MODULUS = 1_000_003
MARK = 256
PROBE = 1_000_000  # ids from here on never fail and always pass: what they meet is the final state
CODECS = {"text": "string", "number": "int64", "struct": "json", "proto": "protobuf:google.protobuf.Struct"}
Step = dict[str, Any]
Timer = tuple[str, int | None]  # name, and after how many milliseconds it is due; None: it is deleted


class Item(NamedTuple):
    """A message: which one it is, the key it asks for, and a value."""

    id: int
    key: int
    value: int


def to_form(item: Item, form: str) -> Any:
    """Return an item in a form."""
    if form == "text":
        return f"{item.id} {item.key} {item.value}"
    if form == "number":
        return item.id << 36 | item.key << 24 | item.value
    fields = item._asdict()
    if form == "struct":
        return fields
    made = Struct()
    made.update(fields)
    return made


def item_of(message: Any) -> Item:
    """Return the item that a message stands for, whatever its form."""
    if isinstance(message, str):
        number, key, value = message.split(" ")
        return Item(int(number), int(key), int(value))
    if isinstance(message, int):
        return Item(message >> 36, message >> 24 & 0xFFF, message & 0xFFFFFF)
    return Item(*(int(message[name]) for name in Item._fields))


def fails(part: Step, item: Item, moment: str) -> bool:
    """Say whether user code shall fail on an item, `before` or `after` it has changed a state."""
    fail = part.get("fail")
    if not fail or item.id >= PROBE or fail["when"] != moment:
        return False
    return (item.id + item.value) % fail["mod"] == fail["rest"]


def compute(step: Step, item: Item) -> list[Item]:
    """Run a step without state.

    Raises:
        ValueError: The step was drawn to fail on this item.
    """
    if fails(step, item, "before"):
        msg = "told to fail"
        raise ValueError(msg)
    op, number, key, value = step["op"], item.id, item.key, item.value
    if op == "add":
        return [Item(number, key, (value + step["by"]) % MODULUS)]
    if op == "split":
        return [Item(number, key, (value * step["n"] + i) % MODULUS) for i in range(step["n"])]
    if op == "filter":
        return [item] if number >= PROBE or value % step["mod"] != step["rest"] else []
    if op == "rekey":
        return [Item(number, (value + step["shift"]) % step["mod"], value)]
    if op == "mark":  # so that a line shows by which end it came
        return [Item(number, key + MARK * step["end"], value)]
    return [item]


def output_of(step: Step, item: Item) -> Step | None:
    """Return the named output to which a step gives an item; None: it goes the main way."""
    outputs = step.get("outputs", ())
    return next((each for each in outputs if item.value % each["mod"] == each["rest"]), None)


def update(step: Step, item: Item, state: dict[str, Any]) -> list[Item]:
    """Run a step with state, which it changes.

    Raises:
        ValueError: The step was drawn to fail on this item.
    """
    if fails(step, item, "before"):
        msg = "told to fail"
        raise ValueError(msg)
    is_probe = item.id >= PROBE
    if step["op"] == "tally" and is_probe:
        return [item._replace(value=state["total"])]
    state["count"] += 1
    state["total"] = (state["total"] + item.value) % MODULUS
    state["recent"] = [*state["recent"], item.value][-step.get("keep", 0) :] if step.get("keep") else []
    if fails(step, item, "after"):
        msg = "told to fail, later"
        raise ValueError(msg)
    if step["op"] == "tally":
        return [item]
    value = (state["total"] * 31 + state["count"] + sum(state["recent"])) % MODULUS
    return [item._replace(value=(value + i) % MODULUS) for i in range(step.get("n", 1))]


def new_state() -> dict[str, Any]:
    """Return the state of a new key."""
    return {"count": 0, "total": 0, "recent": []}


def new_track() -> dict[str, Any]:
    """Return the state of a new key of a step with times."""
    return {"id": 0, "key": 0, "count": 0, "total": 0}


def track(step: Step, item: Item, state: dict[str, Any]) -> tuple[list[Timer], Item]:
    """Run a step with times, which changes its state; returns what it does to timers, and gives.

    Raises:
        ValueError: The step was drawn to fail on this item.
    """
    if fails(step, item, "before"):
        msg = "told to fail"
        raise ValueError(msg)
    state["id"], state["key"] = item.id, item.key
    state["count"] += 1
    state["total"] = (state["total"] * 7 + item.value) % MODULUS
    if fails(step, item, "after"):
        msg = "told to fail, later"
        raise ValueError(msg)
    does = [(item.value + at) % 4 for at in range(len(step["timers"]))]
    timers = [
        (each["name"], each["ms"] if done > 1 else None)
        for each, done in zip(step["timers"], does, strict=True)
        if done
    ]
    return timers, item._replace(value=(state["total"] + state["count"]) % MODULUS)


def fire(step: Step, name: str, state: dict[str, Any]) -> tuple[list[Timer], Item | None, bool]:
    """Run a timer, which changes the state; returns what it does to timers, gives, and whether it deletes the state.

    Raises:
        ValueError: It fails.
    """
    state["total"] = total = (state["total"] * 5 + len(name)) % MODULUS
    if total % 7 == 0:
        msg = "told to fail at a timer"
        raise ValueError(msg)
    timers: list[Timer] = []
    if name == "again":
        timers += [(each["name"], each["ms"]) for at, each in enumerate(step["timers"]) if (total + at) % 2]
        timers += [(each["name"], None) for each in step["timers"] if total % 3 == 0 and each["name"] == "end"]
    item = Item(state["id"] % PROBE, state["key"], total) if total % 5 else None
    return timers, item, name == "end" and total % 3 == 0


def gather(step: Step, item: Item, accumulator: dict[str, Any]) -> None:
    """Take an item into a window."""
    if fails(step, item, "before"):
        msg = "told to fail"
        raise ValueError(msg)
    accumulator["id"], accumulator["key"] = item.id, item.key
    accumulator["total"] = (accumulator["total"] * 7 + item.value) % MODULUS
    accumulator["count"] += 1


def new_window() -> dict[str, Any]:
    """Return the accumulator of no messages."""
    return {"id": 0, "key": 0, "total": 0, "count": 0}


def result(accumulator: dict[str, Any]) -> Item | None:
    """Return what a window gives, None for an empty one; it is no probe, since other windows may end later."""
    if not accumulator["count"]:
        return None
    return Item(accumulator["id"] % PROBE, accumulator["key"], (accumulator["total"] + accumulator["count"]) % MODULUS)


def decode(source: Step, payload: bytes) -> Item | None:
    """Return what a payload says; None: nothing goes on.

    Raises:
        ValueError: It is no item.
    """
    text = payload.decode("utf-8")
    return None if text == "skip" else item_of(text)


def line(sink: Step, item: Item) -> str:
    """Return what a sink sends.

    Raises:
        ValueError: The sink was drawn to fail on this item.
    """
    if fails(sink, item, "before"):
        msg = "told to fail"
        raise ValueError(msg)
    return f"{item.id} {item.key} {item.value}\n"


def key_of(item: Item) -> str:
    """Return the key of an item as the application has it."""
    return f"k{item.key}"
