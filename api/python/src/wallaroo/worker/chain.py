"""Writes the loop of a stage: Python source that runs all steps of a message without a call of ours in between.

A message goes depth first through the nodes that read it. Each node's code stands inside its producer's code; a
node with several producers, or one too deep for Python's limits on nested blocks, becomes a function of its own.
Names in the code end in the node's number: `f` the user's function, `fail` what takes its exception, `v` its result.
The loops' own iteration stores 1 + the message's ordinal where the runtime finds it should user code end the process.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from wallaroo.worker._proto import worker_pb2 as pb

MAX_LOOPS = 12
MAX_INDENT = 60

STATE_KINDS = (pb.STATE_COMPUTATION, pb.STATE_COMPUTATION_MULTI)
MULTI_KINDS = (pb.COMPUTATION_MULTI, pb.STATE_COMPUTATION_MULTI)


@dataclass(slots=True)
class Link:
    """A node of the loop: its kind and who reads it."""

    kind: int
    readers: list[int] = field(default_factory=list)
    input_count: int = 0


class ChainWriter:
    """Writes the source of a stage's loops.

    Args:
        links: The stage's nodes in topological order.
        is_custom: Whether every message at a key exit is serialized by the user's function.
    """

    def __init__(self, links: Sequence[Link], *, is_custom: bool) -> None:
        self._links, self._is_custom = links, is_custom
        self._lines: list[str] = []
        self._functions: list[int] = []

    def source(self) -> str:
        """Return the source: one function `run<number>` per entry, and the functions that they call."""
        for number, link in enumerate(self._links):
            if not link.input_count:
                self._entry(number, link)
        for number in self._functions:
            self._put(0, f"def node{number}(m, seq):")
            self._node(number, "m", 1, 0)
        return "\n".join(self._lines) + "\n"

    def _put(self, indent: int, line: str) -> None:
        self._lines.append(" " * indent + line)

    def _entry(self, number: int, link: Link) -> None:
        if link.kind == pb.WINDOW:
            self._put(0, f"def run{number}(given, seq, k):")
            self._put(1, f"made[{number}] += len(given)")
            self._put(1, f"for v{number}, t in given:")
            self._readers(number, f"v{number}", 2, 1)
            return
        if link.kind not in STATE_KINDS:
            self._put(0, f"def run{number}(messages, sequences, ordinals, flight):")
            self._put(1, "for flight[1], m, seq in zip(ordinals, messages, sequences):")
            self._node(number, "m", 2, 1)
            return
        self._put(0, f"def run{number}(messages, indexes, sequences, states, dirty, ordinals, flight):")
        self._put(1, "for flight[1], m, x, seq in zip(ordinals, messages, indexes, sequences):")
        for line in (
            "try:",
            f" r = f{number}(m, states[x])",
            "except BaseException as error:",
            " return m, x, seq, error",
            "if r.__class__ is not tuple or len(r) != 2:",
            " pair = paired(r)",
            " if pair is None:",
            f"  return m, x, seq, wrong{number}(r)",
            " r = pair",
            f"v{number}, persist = r",
            "if persist:",
            " dirty[x] = 1",
        ):
            self._put(2, line)
        if link.kind in MULTI_KINDS:
            self._put(2, f"if v{number}.__class__ is not list:")
            self._put(3, f"v{number} = listed{number}(v{number})")
            self._put(3, f"if v{number} is None:")
            self._put(4, f"return m, x, seq, wrong{number}(r)")
            self._items(number, f"v{number}", 2, 1)
        else:
            self._result(number, 2, 1)

    def _readers(self, number: int, value: str, indent: int, loops: int) -> None:
        readers = self._links[number].readers
        if not readers:
            self._put(indent, "pass")
        for reader in readers:
            if self._links[reader].input_count > 1 or indent > MAX_INDENT or loops > MAX_LOOPS:
                if reader not in self._functions:
                    self._functions.append(reader)
                self._put(indent, f"node{reader}({value}, seq)")
            else:
                self._node(reader, value, indent, loops)

    def _node(self, number: int, value: str, indent: int, loops: int) -> None:
        kind = self._links[number].kind
        self._put(indent, "try:")
        self._put(indent + 1, f"v{number} = f{number}({value})")
        self._put(indent, "except BaseException as error:")
        self._put(indent + 1, f"fail{number}({value}, seq, error)")
        self._put(indent, "else:")
        if kind == pb.KEY:
            self._key(number, value, indent + 1)
        elif kind == pb.SINK:
            self._sink(number, value, indent + 1)
        elif kind in MULTI_KINDS:
            self._put(indent + 1, f"if v{number}.__class__ is not list:")
            self._put(indent + 2, f"v{number} = items{number}(v{number}, {value}, seq)")
            self._items(number, f"v{number}", indent + 1, loops)
        else:
            self._result(number, indent + 1, loops)

    def _result(self, number: int, indent: int, loops: int) -> None:
        self._put(indent, f"if v{number} is None:")
        self._put(indent + 1, f"dropped[{number}] += 1")
        self._put(indent, "else:")
        self._readers(number, f"v{number}", indent + 1, loops)

    def _items(self, number: int, items: str, indent: int, loops: int) -> None:
        self._put(indent, f"made[{number}] += len({items})")
        self._put(indent, f"for i{number} in {items}:")
        self._put(indent + 1, f"if i{number} is None:")
        self._put(indent + 2, f"dropped[{number}] += 1")
        self._put(indent + 1, "else:")
        self._readers(number, f"i{number}", indent + 2, loops + 1)

    def _key(self, number: int, value: str, indent: int) -> None:
        frozen = f"w{number}"
        for line in (
            "try:",
            f" slot = find{number}(v{number})",
            "except Exception:",
            " slot = None",
            "if slot is None:",
            f" slot = slot{number}(v{number}, {value}, seq)",
            "if slot is not None:",
            f" {frozen} = {value}",
            *([] if self._is_custom else [f" if {frozen}.__class__ is not str:"]),
            f"{' ' if self._is_custom else '  '}{frozen} = freeze{number}({frozen}, seq)",
            f" if {frozen} is not None:",
            "  add, point, mark, x_ = slot",
            f"  add({frozen})",
            "  point(x_)",
            "  mark(seq)",
        ):
            self._put(indent, line)

    def _sink(self, number: int, value: str, indent: int) -> None:
        for line in (
            f"if v{number}.__class__ is str or v{number}.__class__ is bytes:",
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
