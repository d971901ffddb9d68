"""Output of a task some of whose sinks it writes itself."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from wallaroo_runtime.egress import Delivery, SinkConfig, StagedFile

if TYPE_CHECKING:
    from wallaroo_runtime.remote.place import Staging


class DirectStaging:
    """Stages what others deliver, and sends the rest to its receivers at once.

    Args:
        staging: Takes frames of all other ports.
        sinks: Those that the task writes itself, by port.
        attempt: Names the attempt.
        partition: Spark's partition.
    """

    def __init__(self, staging: "Staging", sinks: Mapping[int, SinkConfig], attempt: str, partition: int) -> None:
        self._staging, self._sinks, self._attempt, self._partition = staging, sinks, attempt, partition
        self._deliveries: dict[int, Delivery] = {}

    def write(self, port: int, frame: bytes) -> None:
        """Send one whole frame, or append it to the file of its port; a sink is connected to with its first frame.

        Raises:
            RunError: R687, the sink cannot be delivered to; else as the staging says.
        """
        if port not in self._sinks:
            self._staging.write(port, frame)
            return
        if port not in self._deliveries:
            self._deliveries[port] = Delivery(self._sinks[port], f"{self._attempt}-{port}", self._partition)
        self._deliveries[port].write(frame)

    def so_far(self) -> list[StagedFile]:
        """Return what was staged and sent until now."""
        return [*self._staging.so_far(), *(delivery.so_far() for delivery in self._deliveries.values())]

    def finish(self) -> list[StagedFile]:
        """Make the files safe, make sure that the receivers have everything, and return what to publish and to count.

        Raises:
            RunError: R687, a receiver has not; else as the staging says.
        """
        for delivery in self._deliveries.values():
            delivery.finish()
        self._staging.finish()
        for delivery in self._deliveries.values():
            delivery.settle()
        return self.so_far()

    def abort(self) -> None:
        """Close the connections and remove the files."""
        for delivery in self._deliveries.values():
            delivery.close()
        self._staging.abort()
