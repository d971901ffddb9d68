"""Whole tables in a worker process, for `ctx.lookup`."""

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence

from wallaroo.goka.codec import Bytes
from wallaroo.goka.view import View
from wallaroo.message import memory_topic

START_S = 600.0


class Lookups:
    """The lookup tables of a group in one worker process. They are read when the first message comes.

    Args:
        brokers: HOST:PORT of some brokers.
        tables: Names of the tables' topics.
        partitioner: Partitioner of the tables.
        options: Settings of Kafka's client.
    """

    def __init__(
        self, brokers: Sequence[str], tables: Iterable[str], partitioner: str, options: Mapping[str, str]
    ) -> None:
        self._brokers, self._tables = list(brokers), list(tables)
        self._partitioner, self._options = partitioner, dict(options)
        memory_topic.looked_up.update(self._tables)
        self._views: dict[str, View] = {}
        self._lock, self._is_running = threading.Lock(), False

    def get(self, table: str, key: str) -> bytes | None:
        """Return the value of a key in a table, or None if the table does not have the key.

        Raises:
            ViewError: The table cannot be read.
        """
        topics = memory_topic.current()
        if topics is not None:
            return topics.table(table).get(key.encode("utf-8", "surrogateescape"))
        self.start()
        data = self._views[table].get(key)
        return None if data is None else bytes(data)

    def start(self) -> None:
        """Read the tables to their ends, and then follow their updates. Later calls do nothing.

        Raises:
            ViewError: A table cannot be read.
        """
        if self._is_running or memory_topic.current() is not None:
            return
        with self._lock:
            if not self._is_running:
                # Only views need confluent_kafka; the declaration of a group and tests in memory work without it.
                self._views = {table: self._view(table) for table in self._tables}
                self._read(self._views.values())
                self._is_running = True

    @staticmethod
    def _read(views: Collection[View]) -> None:
        try:
            for view in views:
                view.start()
            for view in views:
                view.wait_running(START_S)
        except BaseException:
            for view in views:
                view.stop()
            raise

    def _view(self, table: str) -> View:
        return View(self._brokers, table, Bytes(), partitioner=self._partitioner, options=self._options)
