"""Reads states for commands and the monitor: names, pages and single keys, after the last committed micro-batch."""

import base64
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol

from wallaroo.diagnostic.diagnostic import Kind
from wallaroo.message.key import bucket_of
from wallaroo_runtime.durable.directory import Directory
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import Plan, Stage
from wallaroo_runtime.plan.plan import STATE_ENTRIES
from wallaroo_runtime.plan.stage_message import stage_message
from wallaroo_runtime.spark.state_store.choice import StateChoice, StateRow, row_bytes
from wallaroo_runtime.storage.state_log import entries_of, grouped
from wallaroo_runtime.topology.dead_letter_text import shown_key
from wallaroo_runtime.worker.idempotent_call import WorkerShower

SHOW_BYTES = 4 * 1024 * 1024  # limit for the bytes of states in one call of a worker
MOST_BYTES = 16 * 1024 * 1024  # bytes of a state; of a larger state only the size is shown
MOST_DIGITS = 20  # limit for the digits of a key that is a number
HEX = "0x"
ANSWER_S = 20.0  # time for the answer of a worker of an active run
KEY_BYTES = 8  # size of a key that is a number


class Logs(Protocol):
    """Reads states from the logs in Spark's state store."""

    def batch(self) -> int:
        """Return the last committed micro-batch; -1 if there is none."""

    def rows(self, stage: str, choice: StateChoice, batch: int, buckets: tuple[int, ...] = ()) -> Iterator[StateRow]:
        """Yield the chosen states of a stage, as of a micro-batch, from some buckets; empty `buckets` means all."""


@dataclass(frozen=True, slots=True)
class StateOf:
    """A state of the application, and where the plan keeps it.

    Attributes:
        name: Name of the state in the application; for a window, the name of its aggregation.
        stage: The stage that keeps the state.
        ports: Ports of the state's entries in the log.
    """

    name: str
    stage: Stage
    ports: frozenset[int]


class StateQuery:
    """Answers questions about the states of one application.

    Args:
        plan: Plan of the application, with the numbers of its checkpoint.
        shower: Returns the object that asks a worker, by the worker's name; None if states are shown as their bytes.
        checkpoint: Directory or URL of the checkpoint, for commands in messages.
    """

    def __init__(
        self, plan: Plan, logs: Logs, shower: Callable[[str], WorkerShower] | None, checkpoint: object = "CHECKPOINT"
    ) -> None:
        self._plan, self._logs, self._shower, self._place = plan, logs, shower, shlex.quote(str(checkpoint))
        self.states = states_of(plan)

    @property
    def names(self) -> list[str]:
        """The names of the states."""
        return sorted(self.states)

    def batch(self) -> int:
        """Return the last committed micro-batch; -1 if there is none."""
        return self._logs.batch()

    def listed(self, name: str = "") -> tuple[int, list[dict[str, Any]]]:
        """Return the last committed micro-batch, and for each state its name, stage, worker, number of keys, and bytes.

        Args:
            name: Name of one state; empty for all states.
        """
        batch, states = self._logs.batch(), []
        for state in [self._state(name)] if name else self.states.values():
            keys = size = 0
            for row in self._rows(state, StateChoice(state.ports, most_bytes=-1), batch):
                keys, size = keys + 1, size + row.size
            states.append(
                {
                    "state": state.name,
                    "stage": state.stage.id,
                    "worker": state.stage.worker,
                    "keys": keys,
                    "bytes": size,
                }
            )
        return batch, states

    def get(self, name: str, key: str) -> tuple[int, dict[str, Any]]:
        """Return the last committed micro-batch, and the state of a key after it.

        Args:
            key: The key as text, as `0x` and hexadecimal digits, or as a number, tried in this order.

        Raises:
            RunError: R720 if there is no such state, or the key has no state.
        """
        state, batch = self._state(name), self._logs.batch()
        wanted = keys_of(key)
        buckets = tuple(sorted({bucket_of(each, self._plan.bucket_count) for each in wanted}))
        choice = StateChoice(state.ports, keys=frozenset(wanted), most_bytes=MOST_BYTES)
        rows = {row.key: row for row in self._rows(state, choice, batch, buckets)}
        row = next((rows[each] for each in wanted if each in rows), None)
        if row is None:
            raise self._lacks(name, key, batch)
        return batch, next(self._shown(state, [row]))

    def page(
        self, name: str, *, prefix: str = "", after: str = "", limit: int | None = None
    ) -> tuple[int, Iterator[dict[str, Any]]]:
        """Return the last committed micro-batch and some states, sorted by key if `limit` is set, else by bucket.

        Args:
            prefix: Only keys with this prefix; see `get` for the forms of a key.
            after: Only keys after this key.
            limit: Limit for the number of states.

        Raises:
            RunError: R720 if there is no such state.
        """
        state, batch = self._state(name), self._logs.batch()
        return batch, self._shown(state, self._rows(state, _choice(state, prefix, after, limit), batch))

    def part(
        self, name: str, *, prefix: str = "", after: str = "", limit: int, page_bytes: int
    ) -> tuple[int, list[dict[str, Any]], str | None]:
        """Return the last committed micro-batch, some states, and `after` for the next call (None at the end).

        Args:
            name: Name of the state.
            prefix: As for `page`.
            after: As for `page`.
            limit: As for `page`.
            page_bytes: Limit for the bytes of states; a page has at least one state.

        Raises:
            RunError: R720 if there is no such state.
        """
        state, batch = self._state(name), self._logs.batch()
        choice = replace(_choice(state, prefix, after, limit + 1), page_bytes=page_bytes)
        rows, size, following = list[StateRow](), 0, None
        for row in self._rows(state, choice, batch):
            size += row_bytes(row)
            if len(rows) == limit or (rows and size > page_bytes):
                following = key_text(rows[-1].key)
                break
            rows.append(row)
        return batch, list(self._shown(state, rows)), following

    def _lacks(self, name: str, key: str, batch: int) -> RunError:
        state, command = self._state(name), f"wallaroo state dump {self._place} {shlex.quote(name)} --limit 20"
        place, known = f'state "{name}", as of micro-batch {batch},', f"what `{command}` shows"
        if batch < 0:
            place, known = f'state "{name}"', "none yet: nothing is committed"
        is_empty = next(self._rows(state, _choice(state, "", "", 1), batch), None) is None
        if is_empty and batch >= 0:
            known = "none: no key was used, or the states of all have ended"
        error = RunError.of("R720", place=place, what="key", name=key[:80], known=known)
        if not is_empty:
            return error
        fix = f"ask again after the {'next' if batch >= 0 else 'first'} commit"
        return RunError([replace(each, fix=fix) for each in error.diagnostics])

    def _state(self, name: str) -> StateOf:
        return state_named(self.states, name)

    def _rows(
        self, state: StateOf, choice: StateChoice, batch: int, buckets: tuple[int, ...] = ()
    ) -> Iterator[StateRow]:
        return self._logs.rows(state.stage.id, choice, batch, buckets) if batch >= 0 else iter(())

    def _shown(self, state: StateOf, rows: Iterable[StateRow]) -> Iterator[dict[str, Any]]:
        for part in grouped(rows, lambda row: row.size + len(row.key), SHOW_BYTES):
            yield from self._shown_part(state, part)

    def _shown_part(self, state: StateOf, rows: Sequence[StateRow]) -> Iterator[dict[str, Any]]:
        values = self._asked(state, [row for row in rows if row.size <= MOST_BYTES])
        for row in rows:
            shown: dict[str, Any] = {"state": state.name, "key": key_text(row.key), "bytes": row.size}
            if values is not None and (row.port, row.key) in values:
                yield {**shown, "value": values[row.port, row.key]}
            elif row.size > MOST_BYTES:
                yield shown
            else:
                yield {**shown, "encoding": row.encoding, "base64": base64.b64encode(row.value).decode()}

    def _asked(self, state: StateOf, rows: Sequence[StateRow]) -> Mapping[tuple[int, bytes], Any] | None:
        """Return readable forms of states from their worker; None if it is not asked, or cannot show them."""
        if self._shower is None or not rows:
            return None
        entries = entries_of({(row.port, row.key): (row.encoding, row.value) for row in rows})
        try:
            return self._shower(state.stage.worker).show(stage_message(state.stage), entries)
        except RunError as error:
            if error.kind is not Kind.LACKING:
                raise
            return None


def states_of_run(
    session: Any, files: Directory, name: str, plan: Plan, targets: Mapping[str, str], *, asks: bool
) -> StateQuery:
    """Return the object that answers questions about the states of a run.

    Args:
        session: Spark session that runs the query.
        files: The checkpoint directory of the application.
        name: Name of Spark's checkpoint in that directory.
        targets: gRPC target of each worker's first endpoint, by name of the worker.
        asks: Whether workers are on this machine, so that they can be asked; if not, states are shown as their bytes.
    """
    # Imported late: at this point the run has already imported most of what these modules import.
    from wallaroo_runtime.spark.state_store.reader import StateReader

    def shower(worker: str) -> WorkerShower:
        return WorkerShower(targets[worker], worker, ANSWER_S)

    logs = StateReader(session, files, plan, name)
    return StateQuery(plan, logs, cache(shower) if asks else None, files)


def state_named(states: Mapping[str, StateOf], name: str) -> StateOf:
    """Return the state with a name.

    Raises:
        RunError: R720 if there is no such state.
    """
    if name not in states:
        known = ", ".join(f'"{each}"' for each in sorted(states)) or "none"
        raise RunError.of("R720", place="the application", what="state", name=f'"{name[:80]}"', known=known)
    return states[name]


def states_of(plan: Plan) -> dict[str, StateOf]:
    """Return the states of a plan by their names."""
    states: dict[str, StateOf] = {}
    for stage in plan.stages:
        ports: dict[str, set[int]] = {}
        for node in stage.nodes:
            if node.kind in STATE_ENTRIES:
                ports.setdefault(node.state, set()).add(node.state_port)
        states |= {name: StateOf(name, stage, frozenset(numbers)) for name, numbers in sorted(ports.items())}
    return states


def _choice(state: StateOf, prefix: str, after: str, limit: int | None) -> StateChoice:
    after_key = keys_of(after)[-1 if after.startswith(HEX) else 0] if after else None
    begins = tuple(each for each in keys_of(prefix)[: 2 if prefix.startswith(HEX) else 1] if each or not prefix)
    return StateChoice(state.ports, prefixes=begins, after=after_key, limit=limit, most_bytes=MOST_BYTES)


def key_text(key: bytes) -> str:
    r"""Return a key as text, or as `0x` and hexadecimal digits, in the form that `after` of `page` takes.

    Example:
        >>> key_text(b"AAPL"), key_text(b"\xff"), key_text(b"0xff")
        ('AAPL', '0xff', '0x30786666')
    """
    return f"{HEX}{key.hex()}" if key.startswith(HEX.encode()) else shown_key(key)


def keys_of(text: str) -> list[bytes]:
    r"""Return the possible keys for a text: its bytes, the bytes of its hexadecimal digits, and those of its number.

    Example:
        >>> keys_of("7"), keys_of("0xff"), keys_of("AAPL")
        ([b'7', b'\x00\x00\x00\x00\x00\x00\x00\x07'], [b'0xff', b'\xff'], [b'AAPL'])
    """
    keys = [text.encode("utf-8", "surrogateescape")]
    if text.startswith(HEX):
        try:
            keys.append(bytes.fromhex(text.removeprefix(HEX)))
        except ValueError:
            return keys
    elif text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS and int(text) < 1 << (8 * KEY_BYTES):
        keys.append(int(text).to_bytes(KEY_BYTES, "big"))
    return keys
