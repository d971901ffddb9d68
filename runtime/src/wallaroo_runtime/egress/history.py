"""What a sink may be sent once more: acknowledged bytes that its peer may never have read."""

from collections import deque
from pathlib import Path

from wallaroo_runtime.egress.feed import Feed
from wallaroo_runtime.storage.outbox.log import OutboxFile
from wallaroo_runtime.storage.outbox.position import Delivered, read_retained, write_retained


class History:
    """Keeps delivered files for as long as a part of them may be wanted again.

    Args:
        directory: The outbox.
        resend_bytes: How much a new connection repeats.
        position: How far the peer's TCP has acknowledged.

    Attributes:
        kept_from: Files in front of this position are gone.

    Raises:
        RunError: R620, the outbox is damaged.
    """

    def __init__(self, directory: Path, port: int, resend_bytes: int, position: Delivered) -> None:
        self._directory, self._port, self._resend_bytes = directory, port, resend_bytes
        self._files: deque[tuple[Delivered, OutboxFile]] = deque()
        self._marks: deque[Delivered] = deque()
        self.kept_from = (read_retained(directory, port) if resend_bytes else None) or position
        if self.kept_from != position:
            self._find_files(position)
        if resend_bytes:
            write_retained(directory, port, self.kept_from)
        else:
            write_retained(directory, port, None)

    def _find_files(self, position: Delivered) -> None:
        feed = Feed(self._directory, self._port, self.kept_from)
        while (piece := feed.next()) is not None and not piece.after.is_after(position):
            if piece.finished is not None:
                self._files.append((piece.after, piece.finished))
        feed.close()

    def finish(self, after: Delivered, file: OutboxFile) -> None:
        """Note that a file is delivered, and the position after it."""
        self._files.append((after, file))

    def forget(self, position: Delivered) -> None:
        """Remove the files that nobody will ask for; `position` is durable.

        Without bytes to repeat that is each delivered one.
        """
        gone: list[OutboxFile] = []
        while self._files and self._is_passed(self._files[0][0], position):
            self.kept_from, file = self._files.popleft()
            gone.append(file)
        if (self._forget_live(position) or gone) and self._resend_bytes:
            write_retained(self._directory, self._port, self.kept_from)
        for file in gone:
            (self._directory / file.name).unlink(missing_ok=True)

    def _forget_live(self, position: Delivered) -> bool:
        """Take note of a position in the live log; returns whether `kept_from` moved to one of before."""
        if not position.live:
            return False
        self._marks.append(position)
        before = self.kept_from
        while self._marks and self._is_passed(self._marks[0], position):
            mark = self._marks.popleft()
            self.kept_from = mark if mark.is_after(self.kept_from) else self.kept_from
        return self.kept_from != before

    def _is_passed(self, end: Delivered, position: Delivered) -> bool:
        """Return whether nobody at or after `position` asks for what ends at `end`."""
        return not end.is_after(position) and position.total_bytes - end.total_bytes >= self._resend_bytes

    def start(self, position: Delivered) -> Delivered:
        """Return where a new connection begins: at a message, `resend_bytes` before `position` or a little more."""
        target = position.total_bytes - self._resend_bytes
        if not self._resend_bytes:
            return position
        if target <= self.kept_from.total_bytes:
            return self.kept_from
        feed = Feed(self._directory, self._port, self.kept_from)
        try:
            while (piece := feed.next()) is not None:
                if piece.after.total_bytes > target:
                    return piece.position(target - piece.before.total_bytes)
        finally:
            feed.close()
        return position
