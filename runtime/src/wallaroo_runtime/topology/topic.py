"""Declares how topics of Kafka are created, and checks how sources and sinks use topics."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.message.kafka_record import PREFIX
from wallaroo_runtime.topology.index import Index, Part, items_of
from wallaroo_runtime.topology.schema import shown_json

# Options with which Spark's source would read a table in parts, or one partition in several tasks.
NUMBERS = frozenset(("maxoffsetspertrigger", "minoffsetspertrigger", "minpartitions", "maxrecordsperpartition"))
LIMITS = NUMBERS | {"maxtriggerdelay"}
# Options that only the runtime sets: brokers, groups and transactions, offsets, callbacks. Spark ignores their case.
_CLIENT = r"bootstrap\.servers|logger|.*_cb|on_(commit|delivery)"
_OWNED = {
    "sources": rf"kafka\.({_CLIENT}|group\.id|enable\.(auto\.commit|partition\.eof)|auto\.offset\.reset"
    r"|(key|value)\.deserializer|interceptor\.classes)|(assign|subscribe|(starting|ending)(offsets|timestamp)).*"
    r"|includeheaders",
    "sinks": rf"kafka\.({_CLIENT}|transactional\.id|delivery\.report\.only\.error)",
}


@dataclass(frozen=True, slots=True)
class TopicCreation:
    """The settings with which Kafka creates a missing topic.

    Attributes:
        like: Name of a topic whose number of partitions is taken over; empty to use `partitions`.
        partitions: Number of partitions.
        replicas: Number of copies of each partition.
    """

    like: str = ""
    partitions: int = 0
    replicas: int = 1
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_compact(self) -> bool:
        """Whether the topic is compacted: it keeps the newest record of each key, as tables do."""
        return self.options.get("cleanup.policy") == "compact"


def check_topics(index: Index) -> Iterator[Diagnostic]:
    """Check options, that tables are read whole and as records, and that all parts create a topic the same way."""
    created: dict[tuple[Any, Any], Any] = {}
    for part in index.parts:
        if part.text("kind") != "kafka":
            continue
        yield from _options(index, part)
        if part.value.get("table") is True:
            yield from _table(index, part)
        create = part.value.get("create")
        if isinstance(create, dict):
            yield from _creation(index, part, create)
            key = part.text("topic"), str(part.value.get("brokers"))
            if created.setdefault(key, create) != create:
                reason = f'topic "{part.text("topic")}" is created in another way by another source or sink'
                yield _finding(index, part, "/create", reason, "let both say the same of how it is created")


def _options(index: Index, part: Part) -> Iterator[Diagnostic]:
    """Check names and numbers. Errors of Spark and Kafka would not name option and value, or there would be none."""
    for name, value in part.object("options").items():
        text, reason, fix = str(value), "", "leave it out"
        if re.fullmatch(_OWNED.get(part.kind, ""), name, re.IGNORECASE):
            reason = f"only the runtime sets option {name}"
        elif part.kind == "sinks" and not name.startswith(PREFIX):
            reason = f"its option {name} does not begin with {PREFIX}: Spark does not write this sink"
        elif name.lower() in NUMBERS and "${env:" not in text and not (text.isdecimal() and int(text) > 0):
            reason, fix = f"its option {name} is {shown_json(value)}", "give a number above 0, or leave it out"
        if reason:
            yield _finding(index, part, f"/options/{name}", reason, fix)


def _table(index: Index, part: Part) -> Iterator[Diagnostic]:
    if part.text("content") != "record":
        yield _finding(index, part, "/table", "a table has the content of values", 'add "content": "record"')
    starts = [("/start", part.value.get("start"))]
    for number, item in enumerate(items_of(part.value, "partitions")):
        if isinstance(item, dict) and "start" in item:
            starts.append((f"/partitions/{number}/start", item["start"]))
    for pointer, start in starts:
        if isinstance(start, str) and start != "start":
            reason = f"a table is read from its start, not from {shown_json(start)}"
            yield _finding(index, part, pointer, reason, 'write "start"')
    for name in part.object("options"):
        if name.lower() in LIMITS:
            reason = f"a table is read whole and in order; option {name} would divide it"
            yield _finding(index, part, f"/options/{name}", reason, "leave the option out")


def _creation(index: Index, part: Part, create: dict[str, Any]) -> Iterator[Diagnostic]:
    if ("like" in create) == ("partitions" in create):
        reason = '"create" has both "like" and "partitions"' if "like" in create else '"create" has no partitions'
        fix = 'write either "like", the name of a topic, or "partitions", a number'
        yield index.finding("T102", part, "/create", reason=reason, fix=fix)
    elif create.get("like") == part.text("topic"):
        yield _finding(index, part, "/create/like", "the topic would be created like itself", "name another topic")


def _finding(index: Index, part: Part, pointer: str, reason: str, fix: str) -> Diagnostic:
    return index.finding("T274", part, pointer, what=part.kind[:-1], name=part.text("name"), reason=reason, fix=fix)
