"""The work of `make bench-peers` on Quix Streams: exactly once, state in RocksDB with changelog topics."""

import os

from quixstreams import Application

WORK = os.environ["WORK"]
TEXT = {"key_deserializer": "str", "value_deserializer": "str"}


def following(state):
    """Return the next count of the key."""
    count = state.get("count", 0) + 1
    state.set("count", count)
    return count


def count_word(word, state):
    return f"{word} => {following(state)}"


def count_message(message, state):
    key, _, payload = message.partition(" ")
    return f"{key} => {following(state)} {payload}"


def convert(reading):
    return {
        "id": reading["id"],
        "user": reading["user"].upper(),
        "celsius": (reading["fahrenheit"] - 320) * 50 // 9,
        "place": reading["place"],
    }


application = Application(
    broker_address=os.environ["BROKER"],
    consumer_group=os.environ["RUN"],
    auto_offset_reset="earliest",
    state_dir=os.environ["STATE"],
    processing_guarantee="exactly-once",
    commit_interval=int(os.environ["COMMIT_MS"]) / 1000,
    consumer_extra_config={"session.timeout.ms": 10_000},
    loglevel="WARNING",
)
form = "json" if WORK == "json" else "str"
records = application.dataframe(application.topic(os.environ["INPUT"], key_deserializer="str", value_deserializer=form))
output = application.topic(os.environ["OUTPUT"], key_serializer="str", value_serializer=form)
if WORK == "words":
    words = records.apply(str.split, expand=True)
    keyed = words.group_by(lambda word: word, name="word", **TEXT, key_serializer="str", value_serializer="str")
    keyed.apply(count_word, stateful=True).to_topic(output)
elif WORK == "keyed":
    records.apply(count_message, stateful=True).to_topic(output)
else:
    records.apply(convert).to_topic(output, key=lambda converted: converted["user"].lower())
application.run()
