"""Says whether a checkpoint has nothing left that only the program of its last run could deal with."""

from pathlib import Path

from wallaroo_runtime.deploy.service import stop_left_behind
from wallaroo_runtime.egress.log import LogReader
from wallaroo_runtime.ingest import JournalReader


def drain(checkpoint: Path, gone_sinks: set[int]) -> str:
    """Return what is left to do, in words; empty when all is done, and then gateway and egress have ended.

    Args:
        checkpoint: The checkpoint directory, locked by this process: no driver works on it.
        gone_sinks: Ports of the sinks whose output nobody will deliver any more.
    """
    left = _left(checkpoint, gone_sinks)
    if left:
        return left
    # A gateway that outlived its driver still takes messages in the old way; when it has ended, look again.
    stop_left_behind(checkpoint)
    return _left(checkpoint, gone_sinks)


def _left(checkpoint: Path, gone_sinks: set[int]) -> str:
    journal = checkpoint / "journal"
    if (journal / "head").exists():
        # Late: pyspark takes a second to import.
        from wallaroo_runtime.spark.query import committed_progress

        done, end = committed_progress(checkpoint / "spark"), JournalReader(journal).end()
        if done.messages_in < end.sequence:  # ticks behind the last message may go
            return f"{end.sequence - done.messages_in:,} messages in the journal are not processed"
    waiting = _undelivered(checkpoint / "outbox", gone_sinks)
    return f"{waiting:,} messages of its outbox are not delivered" if waiting else ""


def _undelivered(outbox: Path, ports: set[int]) -> int:
    """Return how many messages wait for these sinks; the egress removes a file when it is delivered."""
    files = (file for record in LogReader(outbox).records() for file in record.files if file.port in ports)
    return sum(file.messages for file in files if (outbox / file.name).exists())
