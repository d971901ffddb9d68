"""The work of `make bench-peers` on this project, in Python."""

import json
import os

import wallaroo

BROKERS = [tuple(os.environ["BROKER"].split(":"))]
IS_REALTIME = os.environ["MODE"] == "realtime"
IS_EXACT = os.environ["EXACTLY_ONCE"] == "1"


class Text:
    """The decoder of the topic."""

    def decode(self, value):
        return value.decode()


class Total:
    """The state of a key."""

    def __init__(self):
        self.count = 0


@wallaroo.computation_multi("split")
def split(line):
    return line.split()


@wallaroo.key_extractor
def by_word(word):
    return word


@wallaroo.state_computation("count words", Total)
def count_word(word, total):
    total.count += 1
    return word, f"{word} => {total.count}"


@wallaroo.state_computation("count messages", Total)
def count_message(message, total):
    key, _, payload = message.partition(" ")
    total.count += 1
    return key, f"{key} => {total.count} {payload}"


@wallaroo.computation("convert")
def convert(text):
    reading = json.loads(text)
    converted = {
        "id": reading["id"],
        "user": reading["user"].upper(),
        "celsius": (reading["fahrenheit"] - 320) * 50 // 9,
        "place": reading["place"],
    }
    return reading["user"], json.dumps(converted)


@wallaroo.encoder
def encode(result):
    key, value = result
    return value.encode(), key.encode()


def application_setup(args):
    """Read one topic, and write the other one."""
    options = {} if IS_REALTIME else {"maxOffsetsPerTrigger": os.environ["BATCH"]}
    topic = wallaroo.KafkaSourceConfig(os.environ["INPUT"], BROKERS, "Warn", Text, options=options)
    messages = wallaroo.source("in", topic)
    results = {
        "words": lambda: messages.to(split).key_by(by_word).to(count_word),
        "keyed": lambda: messages.to(count_message),
        "json": lambda: messages.to(convert),
    }[os.environ["WORK"]]()
    sink = wallaroo.KafkaSinkConfig(os.environ["OUTPUT"], BROKERS, "Warn", 5, 1_000_000, encode, exactly_once=IS_EXACT)
    return wallaroo.build_application(os.environ["RUN"], results.to_sink(sink))
