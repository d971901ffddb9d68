"""Compares ids of topics: a topic that was deleted and created again has the same name and another id."""

from wallaroo_runtime.errors import RunError

NO_ID = "A" * 22  # 16 zero bytes: the id at brokers before Kafka 2.8
# Remedies of R738.
RESET = "run with `--topic-reset start` to read the new topic from its start and keep the states, or with --fresh"
RESET_REALTIME = "run with `--topic-reset start` or `end` to read the new topic and keep the states, or with --fresh"
IS_RESET = "nothing: `--topic-reset start` reads the new topic from its start, once, and keeps the states"
REPEATED = (
    "run with --fresh: results of the last micro-batch were delivered, Spark did not commit it, and its records "
    "are gone with the deleted topic"
)
_URL_SAFE = str.maketrans("+/", "-_", "=")


def id_of(text: str) -> str:
    """Return an id in the form in which Kafka's tools print it; empty if the brokers have no ids.

    Example:
        >>> id_of("zD4+/w=="), id_of("AAAAAAAAAAAAAAAAAAAAAA")
        ('zD4-_w', '')
    """
    shown = text.translate(_URL_SAFE)
    return "" if shown == NO_ID else shown


def is_other(before: str, now: str) -> bool:
    """Return whether a topic has another id than the topic that was read before; False if an id is not known."""
    return bool(before and now) and before != now


def other_topic(source: str, topic: str, before: str, now: str, fix: str) -> RunError:
    """Return the error for a source whose topic was deleted and created again since it was read (R738)."""
    return RunError.of("R738", source=source, topic=topic, before=before, now=now, fix=fix)
