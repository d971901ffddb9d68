"""Delivery to a topic of Kafka without transactions: no record is lost, but a kill may repeat some records."""

import math
import os
import select
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.diagnostic.fault import reach
from wallaroo_runtime.egress.feed import Feed, Piece
from wallaroo_runtime.egress.kafka_session import KafkaRefusal, ProducerSession, Unavailable
from wallaroo_runtime.egress.position_recorder import RECORD_DURABLY_S
from wallaroo_runtime.egress.sink import IDLE_S, Sink
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.kafka.client import kafka_client
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.outbox.position import SinkPosition
from wallaroo_runtime.storage.outbox.refused_record import CORRECT, SET_ASIDE, refused_letter, set_aside
from wallaroo_runtime.storage.outbox.sink_record import RecordColumns, columns_of, whole_record

TRANSACTION_BYTES = 4 * 1024 * 1024
TRANSACTION_RECORDS = 100_000
REST_S = 10.0  # time without records after which none counts as on its way
RAISE_LIMIT = (
    "raise max.message.bytes of the topic, and kafka.max.request.size of the sink where it has one or its user may not "
    "see the topic's settings, and run again: output is kept and sent then"
)
FOLDER = "dead-letters"  # next to the outbox


class KafkaSink(Sink):
    """Delivers the output of one sink from the outbox to a topic, at least once.

    Parameters and attributes are those of `Sink`. Kafka has all records up to `position`.

    Raises:
        RunError: R698 if the outbox is damaged; R728 if the client is not installed.
    """

    _start_brokers = "the brokers"  # for the finding that no broker answers: the user should start this

    def __init__(self, config: pb.Sink, directory: Path, say: Callable[[Diagnostic], None]) -> None:
        super().__init__(config, directory, say)
        self._target = config.kafka
        self._client = kafka_client(f'sink "{config.name}"')
        self._told, self._durable_at, self._rests_at = "", 0.0, 0.0

    def _keep_connected(self) -> None:
        self._begin()
        super()._keep_connected()
        if not self._abandoned:
            self._rest()

    def _rest(self) -> None:
        """Record durably the position up to which Kafka has all output.

        Called when the sink ends, and when it has sent no record for some seconds.
        """
        self._record(durable=True)
        self._rests_at = math.inf

    def _begin(self) -> None:
        """Forget the name that the output had in the transactions of an earlier run with `exactly_once`.

        Otherwise a later run with `exactly_once` would continue at the old position of these transactions.
        """
        if self.position.sender:
            self.position = replace(self.position, sender="")
            self._record(durable=True)

    def _connect(self) -> ProducerSession:
        session = None
        try:
            session = self._session()
            self._agree(session)
        except BaseException as error:
            if session is not None:
                session.close()
            if isinstance(error, KafkaRefusal):
                raise self._refused(error) from error
            raise
        return session

    def _session(self) -> ProducerSession:
        return ProducerSession(self._client, self._target, self.config.name)

    @staticmethod
    def _period_s(pieces: list[Piece], since_s: float) -> float:
        """Return the least time, in seconds, between the beginnings of two writes; 0 without transactions.

        Args:
            pieces: The pieces of this write.
            since_s: Seconds from the beginning of the previous write to that of this one.
        """
        return 0.0

    def _agree(self, session: ProducerSession) -> None:
        """Agree with Kafka where delivery continues. Without transactions, that is the recorded position."""

    def _refused(self, error: KafkaRefusal) -> RunError:
        if error.is_fenced:
            return RunError.of("R732", sink=self.config.name, name=self.position.sender)
        topic = f"kafka {self._target.topic}"
        if not error.numbers:
            return RunError.of("R674", sink=self.config.name, place=topic, reason=error, fix=CORRECT)
        number = self.position.messages + min(error.numbers)
        reason = f"it never takes message {number} of this sink: {error}"
        fix = RAISE_LIMIT if error.is_too_large else SET_ASIDE
        return RunError.of("R674", sink=self.config.name, place=topic, reason=reason, fix=fix)

    def _tell_connected(self) -> None:
        """Set the state to connected. After an outage `_tell_taken` does that, when the broker takes records again."""
        if not self._told:
            super()._tell_connected()

    def _tell_taken(self) -> None:
        self._told = ""
        super()._tell_connected()

    def _tell_outage(self, error: OSError) -> None:
        self.state, reason = "unreachable", str(error)
        fix = error.fix if isinstance(error, Unavailable) else ""
        if reason and (fix or reason) != self._told:
            self._told = fix or reason
            self._note_outage(f"Kafka at {self._brokers}", reason, fix or self._start_brokers)

    @property
    def _brokers(self) -> str:
        return ",".join(self._target.brokers)

    def _is_lasting(self, before: SinkPosition) -> bool:
        return self.position != before

    def _use(self, session: ProducerSession) -> bool:  # type: ignore[override]
        """Deliver by a session. Return False if Kafka takes no more records, and True if all is delivered or abandoned.

        Raises:
            RunError: R674 if Kafka will never take a record; R732 if another egress uses the same name.
        """
        feed = Feed(self._directory, self.config.port, self.position)
        self._rests_at, begun, period_s = time.monotonic() + REST_S, -math.inf, 0.0
        try:
            while not self._abandoned:
                time.sleep(max(0.0, begun + period_s - time.monotonic()))
                pieces = feed.several(TRANSACTION_BYTES, TRANSACTION_RECORDS)
                if pieces:
                    before, begun = begun, time.monotonic()
                    period_s = self._period_s(pieces, begun - before)
                    self._commit(session, pieces)
                elif self._draining:
                    return True
                else:
                    self._tell_taken()
                    if select.select([self._wake], [], [], IDLE_S)[0]:
                        os.eventfd_read(self._wake)
                    session.look()
                    if time.monotonic() >= self._rests_at:
                        self._rest()
        except Unavailable as error:
            self._tell_outage(error)
        except KafkaRefusal as error:
            raise self._refused(error) from error
        finally:
            feed.close()
            session.close()
        return self._abandoned

    def _commit(self, session: ProducerSession, pieces: list[Piece]) -> None:
        end = replace(pieces[-1].after, refused=self.position.refused)
        if any(piece.lengths for piece in pieces):
            end = self._write(session, pieces, end)
            self._rests_at = time.monotonic() + REST_S
            self._tell_taken()
            reach("egress.kafka_committed")
        self._take(pieces, end, durable=self._is_due(pieces))

    def _write(self, session: ProducerSession, pieces: list[Piece], end: SinkPosition) -> SinkPosition:
        """Write the records of pieces (frames of messages) to the topic, and the position after them.

        With `--on-error dead_letter`, records that the topic never takes become dead letters.

        Returns:
            The position, which counts the refused records.

        Raises:
            Unavailable: Kafka takes no records now.
            KafkaRefusal: Kafka never takes some of the records.
        """
        refused: set[int] = set()
        while True:
            try:
                after = replace(end, refused=end.refused + len(refused))
                session.write(records_of(pieces, self._target.records), after, refused)
            except KafkaRefusal as error:
                new = {number: why for number, why in error.numbers.items() if number not in refused}
                if not self._target.sets_aside or not new:
                    raise
                self._set_aside(pieces, new)
                refused |= new.keys()
            else:
                return after

    def _set_aside(self, pieces: list[Piece], numbers: Mapping[int, str]) -> None:
        """Write dead letters for the records that Kafka refuses, before the position moves past these records."""
        sink, topic, before = self.config.name, self._target.topic, pieces[0].before.messages
        path, letters = self._target.sets_aside, {}
        records = chain.from_iterable(each.records() for each in records_of(pieces, self._target.records))
        for number, (record, sequence) in enumerate(zip(records, _sequences(pieces), strict=True)):
            if number in numbers:
                why = f"topic {topic} does not take it: {numbers[number]}"
                letters[before + number] = refused_letter(path, sink, sequence, record.key, record.value, why)
        self._say(set_aside(self._directory.parent / FOLDER, self.config.port, letters))

    def _is_due(self, pieces: list[Piece]) -> bool:
        """Return whether to record the position durably now: always after micro-batches, else once a second.

        If the record is late, files are removed later, and without transactions a loss of power may repeat records.
        """
        now = time.monotonic()
        is_due = now >= self._durable_at + RECORD_DURABLY_S or not all(
            piece.is_live or not piece.data for piece in pieces
        )
        if is_due:
            self._durable_at = now
        return is_due


def _sequences(pieces: list[Piece]) -> Iterator[int]:
    """Yield the sequence of each message of the pieces, in the order of `records_of`."""
    for piece in pieces:
        if piece.frame is not None:
            count = piece.frame.header.count
            yield from map(piece.frame.sequence_of, range(count - len(piece.lengths), count))


def records_of(pieces: list[Piece], are_whole: bool) -> Iterator[RecordColumns]:
    """Yield the records to write to the topic, as columns for each piece.

    Args:
        pieces: Pieces of the sink's output.
        are_whole: Whether the bytes of each message are a whole record, and not only its value.
    """
    for piece in pieces:
        if not piece.lengths:
            continue
        if piece.frame is None:
            message = "a piece has messages and no frame: they would count as delivered"
            raise ValueError(message)
        # Messages of this frame that were delivered earlier are at its beginning.
        if are_whole:
            yield RecordColumns.of(map(whole_record, piece.frame.values()[-len(piece.lengths) :]))
        else:
            yield columns_of(piece.frame).part(-len(piece.lengths))
