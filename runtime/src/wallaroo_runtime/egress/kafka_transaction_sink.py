"""Delivery to a topic of Kafka in transactions: readers of committed records see each record exactly once.

A transaction has records of the outbox, and the position after these records as the offset of a consumer group. Kafka
commits both or neither. So a new egress asks Kafka for the position and continues there, however the last egress ended.
"""

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.durable.file import sync_directory
from wallaroo_runtime.egress.feed import Feed, Piece
from wallaroo_runtime.egress.kafka_session import ProducerSession
from wallaroo_runtime.egress.kafka_sink import TRANSACTION_BYTES, TRANSACTION_RECORDS, KafkaSink
from wallaroo_runtime.egress.kafka_transaction import TransactionalSession
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.outbox.position import SinkPosition

# A broker spends 5 to 9 ms of CPU time on a transaction, and 1 us on a record. From 5,000 records/s on, the period
# grows with the rate, so that transactions have many records. A transaction takes about as long as the shortest period.
SHORTEST_S, LONGEST_S, GROWTH_S = 0.02, 0.2, 4e-6


class TransactionalSink(KafkaSink):
    """Delivers the output of one sink from the outbox to a topic, exactly once.

    Parameters and attributes are those of `Sink`; `position` is the position that Kafka has committed.
    """

    _start_brokers = (
        "the brokers; if they run, look whether transaction.state.log.replication.factor is at most their number"
    )

    def __init__(self, config: pb.Sink, directory: Path, say: Callable[[Diagnostic], None]) -> None:
        super().__init__(config, directory, say)
        self._open = directory / f"open-{config.port}"
        self._is_doubtful = False  # whether Kafka may have committed records after `position`

    @staticmethod
    def _period_s(pieces: list[Piece], since_s: float) -> float:
        count, size = sum(len(piece.lengths) for piece in pieces), sum(len(piece.data) for piece in pieces)
        if count >= TRANSACTION_RECORDS or size >= TRANSACTION_BYTES:
            return SHORTEST_S  # more records wait already
        # At most twice the time before: what has waited during a pause comes at once, and looks like a high rate.
        return min(LONGEST_S, max(SHORTEST_S, min(2 * since_s, GROWTH_S * count / since_s)))

    def _rest(self) -> None:
        super()._rest()
        self._open.unlink(missing_ok=True)

    def _begin(self) -> None:
        if not self.position.sender:
            self._open.unlink(missing_ok=True)  # an earlier name, from before a run without transactions
        self._is_doubtful = self._open.exists()
        self._name_output(f"wallaroo-{self._target.application}-{self.config.name}-{secrets.token_hex(8)}")

    def _session(self) -> ProducerSession:
        session = TransactionalSession(self._client, self._target, self.config.name, self.position.sender)
        session.prepare, session.written = self._prepare, self._begin_commit
        return session

    def _begin_commit(self) -> None:
        if self.latencies is not None:
            self.latencies.write(self.config.port)

    def _agree(self, session: ProducerSession) -> None:
        """Continue at the position that Kafka has committed.

        Kafka gets a position before the first record is written. If Kafka has no position later, it has forgotten it.

        Raises:
            RunError: R731 if Kafka has forgotten the position, or the position does not fit the outbox.
        """
        position = session.position
        if position is None:
            if self._is_doubtful:
                reason = "Kafka has forgotten it, and may have records after the outbox's position"
                more = f"; if you delete {self._open}, the sink continues at the outbox's position"
                raise self._contradicted(reason, more)
            session.write((), self.position)
            return
        if position.messages < self.position.messages:
            reason = f"Kafka has {position.messages} messages; {self.position.messages} were delivered"
            raise self._contradicted(reason)
        if position.messages > self.position.messages:
            self._take(self._pieces_until(position), position)
        self._is_doubtful = False

    def _write(self, session: ProducerSession, pieces: list[Piece], end: SinkPosition) -> SinkPosition:
        after = super()._write(session, pieces, end)
        self._is_doubtful = False
        return after

    def _contradicted(self, reason: str, more: str = "") -> RunError:
        return RunError.of("R731", sink=self.config.name, group=self.position.sender, reason=reason, more=more)

    def _pieces_until(self, end: SinkPosition) -> list[Piece]:
        """Return the pieces (frames) of the outbox that Kafka has committed, but that are not recorded as delivered.

        Args:
            end: The position that Kafka has committed.
        """
        feed = Feed(self._directory, self.config.port, self.position)
        pieces: list[Piece] = []
        try:
            while (piece := feed.next()) is not None and piece.after.messages <= end.messages:
                pieces.append(replace(piece, data=b"", frame=None))
                if piece.lengths and _is_same(piece.after, end):
                    return pieces
        finally:
            feed.close()
        reason = f"Kafka has {end.messages} messages, which the outbox has not, or not in this way"
        brokers, group = self._target.brokers[0], self.position.sender
        delete = f"`kafka-consumer-groups.sh --bootstrap-server {brokers} --delete --group {group}`"
        copy = "; if this is a copy of a checkpoint, run the original instead, and nothing is lost or repeated"
        backup = f"; if the original is lost and this is an older backup, {delete} lets it send its output again"
        raise self._contradicted(reason, copy + backup)

    def _prepare(self, end: SinkPosition) -> None:
        """Before a commit, note durably that Kafka may have records after the recorded position."""
        self._is_doubtful = True
        if not self._open.exists():
            self._open.touch(mode=0o600)
            sync_directory(self._directory)
        if self.live is not None and end.live_needed > self.live.safe:
            self.live.sync()  # otherwise a loss of power could remove output that Kafka has


def _is_same(position: SinkPosition, end: SinkPosition) -> bool:
    """Return whether the same messages of the sink precede both positions. Output of other sinks may differ."""
    counts = (position.messages, position.total_bytes, position.live_messages)
    return counts == (end.messages, end.total_bytes, end.live_messages)
