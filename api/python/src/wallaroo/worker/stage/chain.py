"""Writes the loops of a stage: Python source that runs all steps of a message, without calls of the SDK in between.

A message passes depth first through the nodes that read it. Each node's code is nested in its producer's code. A node
with several producers, or one that is too deep for Python's limit of nested blocks, becomes a separate function. If
several nodes read a message, all but the last get a copy `c` of it, so that none sees what another one changes.

Names in the code end with the node's number: `f` is the user's function, `fail` handles its exception, `v` is its
result. If a stage needs them, `k` is the key of a message and `t` its time. After a key_by, `v` of the key_by is the
key. For dead letters `times_of` has the times that user code has read, by sequence. Each iteration stores the message's
ordinal plus 1 in `flight`, where the runtime finds it if user code ends the process.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from wallaroo.worker._proto import worker_pb2 as pb

MAX_LOOPS = 12
MAX_INDENT = 60

STATE_KINDS = (pb.NODE_KIND_STATE_COMPUTATION, pb.NODE_KIND_STATE_COMPUTATION_MULTI)
MULTI_KINDS = (pb.NODE_KIND_COMPUTATION_MULTI, pb.NODE_KIND_STATE_COMPUTATION_MULTI)


@dataclass(slots=True)
class Link:
    """The properties of a stage's node that `ChainWriter` needs: its kind, and the nodes that read its messages.

    Attributes:
        kind: Kind of the node.
        takes_key: For KEY and SEND: whether the key is the message's present key.
        has_times: For KEY and SEND: whether frames contain the messages' times.
        is_coded: For KEY: whether messages leave in a codec, also those of type str.
        is_always_persisted: For state kinds: whether the user's function returns only its output.
        is_record: For SINK: whether the encoder may also return a key and a partition.
        gives_time: For SOURCE: whether the user's `event_time` reads the message's time from the payload.
        readers: Numbers of the nodes that get all messages of this node.
        outputs: The OUTPUT nodes of a computation or window, by name.
    """

    kind: int
    takes_key: bool = False
    has_times: bool = False
    is_always_persisted: bool = False
    is_record: bool = False
    is_coded: bool = False
    gives_time: bool = False
    readers: list[int] = field(default_factory=list)
    input_count: int = 0
    outputs: dict[str, int] = field(default_factory=dict)


class ChainWriter:
    """Writes the Python source of a stage's loops, which call the user's functions for each message.

    Args:
        links: The stage's nodes in topological order.
        is_custom: Whether the user's function serializes every message at a key exit.

    Attributes:
        has_keys: Whether the loops have a column with the keys of messages.
        has_times: Whether the loops have a column with the times of messages.
    """

    def __init__(self, links: Sequence[Link], *, is_custom: bool) -> None:
        self._links, self._is_custom = links, is_custom
        self.has_keys = any(link.takes_key for link in links)
        self.has_times = any(link.has_times for link in links)
        self._lines: list[str] = []
        self._functions: list[int] = []

    def source(self) -> str:
        """Return the source of the loops: a function `run<number>` for each entry, and functions that these call."""
        for number, link in enumerate(self._links):
            if not link.input_count:
                self._entry(number, link)
        for number, link in enumerate(self._links):
            if link.outputs:
                self._outputs(number, link)
        for number in self._functions:
            self._put(0, f"def node{number}(m, seq{self._carried('k')}):")
            self._node(number, "m", 1, 0)
        return "\n".join(self._lines) + "\n"

    def _put(self, indent: int, line: str) -> None:
        self._lines.append(" " * indent + line)

    def _carried(self, key: str) -> str:
        """Return the arguments after `seq` in generated calls: key and time, if the stage needs them."""
        return (f", {key}" if self.has_keys else "") + (", t" if self.has_times else "")

    def _entry(self, number: int, link: Link) -> None:
        if link.kind == pb.NODE_KIND_WINDOW:
            self._put(0, f"def run{number}(given, seq, k):")
            self._put(1, f"made[{number}] += len(given)")
            self._put(1, f"for v{number}, t in given:")
            self._message(number, f"v{number}", 2, 1)
            return
        columns = (", keys" if self.has_keys else "") + (", times" if self.has_times else "")
        if link.kind not in STATE_KINDS:
            self._put(0, f"def run{number}(messages, sequences, ordinals, flight{columns}):")
            self._put(1, f"for flight[1], m, seq{self._carried('k')} in zip(ordinals, messages, sequences{columns}):")
            self._node(number, "m", 2, 1)
            return
        times, t = (", times", ", t") if self.has_times else ("", "")
        self._put(0, f"def run{number}(messages, indexes, sequences, states, dirty, ordinals, flight{columns}):")
        self._put(1, f"for flight[1], m, x, seq{t} in zip(ordinals, messages, indexes, sequences{times}):")
        if self.has_keys:
            self._put(2, "k = keys[x]")
        self._state(number, link)

    def _state(self, number: int, link: Link) -> None:
        result = f"v{number}" if link.is_always_persisted else "r"
        pair = (
            "if r.__class__ is not tuple or len(r) != 2:",
            " pair = paired(r)",
            " if pair is None:",
            f"  return m, x, seq, wrong{number}(r)",
            " r = pair",
            f"v{number}, persist = r",
            "if persist is True:",
            " dirty[x] = 1",
            "elif persist is not False and is_state(persist, states[x]):",
            " return m, x, seq, state_returned(persist)",
            "elif persist:",
            " dirty[x] = 1",
        )
        alone = (
            f"if v{number}.__class__ is tuple and len(v{number}) == 2 and v{number}[1].__class__ is states[x].__class__"
            f" and is_new_state(v{number}, states[x]):",
            f" return m, x, seq, state_returned(v{number}[1], 'next to its message')",
            "dirty[x] = 1",
        )
        self._put(2, "try:")
        for line in (f"{result} = f{number}(m, states[x])", *(alone if link.is_always_persisted else pair)):
            self._put(3, line)
        self._put(2, "except BaseException as error:")  # also of `if persist`, e.g. for an array
        self._put(3, "return m, x, seq, error")
        is_multi = link.kind in MULTI_KINDS
        if is_multi:
            self._put(2, f"if v{number}.__class__ is not list:")
            self._put(3, f"items = listed{number}(v{number})")
            self._put(3, "if items is None:")
            self._put(4, f"return m, x, seq, wrong{number}({result})")
            self._put(3, f"v{number} = items")
        self._put(2, _promised(f"v{number}", is_multi=is_multi))
        self._put(3, f"return m, x, seq, promised(v{number})")
        if is_multi:
            self._items(number, f"v{number}", 2, 1)
        else:
            self._result(number, 2, 1)

    def _readers(self, number: int, value: str, indent: int, loops: int, key: str = "k") -> None:
        readers = self._links[number].readers
        if not readers:
            self._put(indent, "pass")
        for reader in readers:
            link = self._links[reader]
            given, is_exit = value, link.kind == pb.NODE_KIND_SEND or (link.kind == pb.NODE_KIND_KEY and link.takes_key)
            if reader != readers[-1] and not is_exit:  # an exit serializes the message and runs no user code
                given = f"c{reader}"
                self._put(indent, f"{given} = {value} if {value}.__class__ is str else copied({value})")
            if link.input_count > 1 or indent > MAX_INDENT or loops > MAX_LOOPS:
                if reader not in self._functions:
                    self._functions.append(reader)
                self._put(indent, f"node{reader}({given}, seq{self._carried(key)})")
            else:
                self._node(reader, given, indent, loops, key)

    def _node(self, number: int, value: str, indent: int, loops: int, key: str = "k") -> None:
        link = self._links[number]
        if link.kind == pb.NODE_KIND_KEY and link.takes_key:
            self._key(number, value, indent, key)
            return
        if link.kind == pb.NODE_KIND_SEND:
            self._put(indent, f"send{number}({value}, seq{self._sent(link, key)})")
            return
        if link.kind == pb.NODE_KIND_COLLECT:
            self._readers(number, value, indent, loops, "b''")
            return
        self._put(indent, "try:")
        self._put(indent + 1, f"v{number} = f{number}({value})")
        if link.gives_time and self.has_times:
            self._put(indent + 1, f"if v{number} is not None and time{number} is not None:")
            self._put(indent + 2, f"times_of[seq] = t = time{number}({value})")
        self._put(indent, "except BaseException as error:")
        self._put(indent + 1, f"fail{number}({value}, seq, error)")
        self._put(indent, "else:")
        if link.kind == pb.NODE_KIND_KEY:
            self._key(number, value, indent + 1, f"v{number}")
        elif link.kind == pb.NODE_KIND_KEY_BY:
            self._key_by(number, value, indent + 1, loops)
        elif link.kind == pb.NODE_KIND_SINK:
            self._sink(number, value, indent + 1)
        elif link.kind in MULTI_KINDS:
            self._put(indent + 1, f"if v{number}.__class__ is not list:")
            self._put(indent + 2, f"v{number} = items{number}(v{number}, {value}, seq)")
            self._put(indent + 1, _promised(f"v{number}", is_multi=True))
            self._put(indent + 2, f"fail{number}({value}, seq, promised(v{number}))")
            self._put(indent + 2, f"v{number} = ()")
            self._items(number, f"v{number}", indent + 1, loops, key)
        else:
            self._result(number, indent + 1, loops, key, value)

    def _sent(self, link: Link, key: str) -> str:
        """Return the arguments after `seq` in the generated call of a SEND node: key and time, if it needs them."""
        return (f", key={key}" if link.takes_key else "") + (", time=t" if link.has_times else "")

    def _result(self, number: int, indent: int, loops: int, key: str = "k", checked: str = "") -> None:
        """Write code that passes a result on. If it is a promise (e.g. a coroutine), the message `checked` fails."""
        self._put(indent, f"if v{number} is None:")
        self._put(indent + 1, f"dropped[{number}] += 1")
        if checked:
            self._put(indent, "el" + _promised(f"v{number}"))
            self._put(indent + 1, f"fail{number}({checked}, seq, promised(v{number}))")
        self._put(indent, "else:")
        self._message(number, f"v{number}", indent + 1, loops, key)

    def _items(self, number: int, items: str, indent: int, loops: int, key: str = "k") -> None:
        self._put(indent, f"made[{number}] += len({items})")
        self._put(indent, f"for i{number} in {items}:")
        self._put(indent + 1, f"if i{number} is None:")
        self._put(indent + 2, f"dropped[{number}] += 1")
        self._put(indent + 1, "else:")
        self._message(number, f"i{number}", indent + 2, loops + 1, key)

    def _message(self, number: int, value: str, indent: int, loops: int, key: str = "k") -> None:
        """Write code that passes on a message of a computation or window: to its readers, or to a named output."""
        if self._links[number].outputs:
            self._put(indent, f"if {value}.__class__ is Output:")
            self._put(indent + 1, f"dropped[{number}] += 1")
            self._put(indent + 1, f"output{number}({value}, seq{self._carried(key)})")
            self._put(indent, "else:")
            indent += 1
        self._readers(number, value, indent, loops, key)

    def _outputs(self, number: int, link: Link) -> None:
        """Write the function that passes on messages for the named outputs of a node."""
        self._put(0, f"def output{number}(o, seq{self._carried('k')}):")
        self._put(1, "m = o.value")
        self._put(1, "if m is None:")
        self._put(2, "return")
        for at, (name, reader) in enumerate(link.outputs.items()):
            self._put(1, f"{'elif' if at else 'if'} o.name == {name!r}:")
            self._put(2, f"made[{reader}] += 1")
            self._readers(reader, "m", 2, 1)

    def _key_by(self, number: int, value: str, indent: int, loops: int) -> None:
        self._put(indent, f"if v{number}.__class__ is not str:")
        self._put(indent + 1, f"v{number} = keyed{number}(v{number}, {value}, seq)")
        self._put(indent, f"if v{number} is not None:")
        self._readers(number, value, indent + 1, loops, f"v{number}")

    def _key(self, number: int, value: str, indent: int, key: str) -> None:
        frozen = f"w{number}"
        has_times = self._links[number].has_times
        freezes_all = self._is_custom or self._links[number].is_coded
        for line in (
            "try:",
            f" slot = find{number}({key})",
            "except BaseException:",
            " slot = None",
            "if slot is None:",
            f" slot = slot{number}({key}, {value}, seq)",
            "if slot is not None:",
            f" {frozen} = {value}",
            *([] if freezes_all else [f" if {frozen}.__class__ is not str:"]),
            f"{' ' if freezes_all else '  '}{frozen} = freeze{number}({frozen}, seq)",
            f" if {frozen} is not None:",
            f"  add, point, mark, x_{', stamp' if has_times else ''} = slot",
            f"  add({frozen})",
            "  point(x_)",
            "  mark(seq)",
            *(["  stamp(t)"] if has_times else []),
        ):
            self._put(indent, line)

    def _sink(self, number: int, value: str, indent: int) -> None:
        if self._links[number].is_record:
            for line in (
                f"r = v{number}",
                "if r.__class__ is tuple and len(r) == 2 and r[0].__class__ is r[1].__class__ is bytes"
                f" and len(r[0]) + len(r[1]) <= short{number}:",
                f" put{number}(r[0])",
                f" key{number}(r[1])",
                f" mark{number}(seq)",
                f"elif r is None or not record{number}(r, {value}, seq):",
                f" dropped[{number}] += 1",
            ):
                self._put(indent, line)
            return
        for line in (
            f"if (v{number}.__class__ is str or v{number}.__class__ is bytes) and len(v{number}) <= short{number}:",
            f" put{number}(v{number})",
            f" mark{number}(seq)",
            f"elif v{number} is None:",
            f" dropped[{number}] += 1",
            "else:",
            f" v{number} = other{number}(v{number}, {value}, seq)",
            f" if v{number} is not None:",
            f"  put{number}(v{number})",
            f"  mark{number}(seq)",
        ):
            self._put(indent, line)


def _promised(value: str, *, is_multi: bool = False) -> str:
    """Return a line of code that checks whether a result, or an item of it, is a promise (e.g. a coroutine)."""
    if is_multi:
        return f"if not FIT.issuperset(map(type, {value})) and any(map(is_promise, {value})):"
    return f"if {value}.__class__ not in FIT and is_promise({value}):"
