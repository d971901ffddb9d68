"""One line for each pair of connector programs: each message is returned with an exclamation mark."""

import argparse
import json

import wallaroo
from wallaroo import experimental


def application_setup(args):
    parser = argparse.ArgumentParser()
    parser.add_argument("--ports", help="JSON: name of a connector to its port")
    ports = json.loads(parser.parse_known_args(args)[0].ports)

    ab = wallaroo.ApplicationBuilder("Connector programs")
    for line in ("udp", "redis", "postgres", "rabbitmq", "kinesis", "s3", "kafka"):
        ab.source_connector(f"{line}_in", encode, decode, ports[f"{line}_in"])
        ab.sink_connector(f"{line}_out", encode, READ[line], ports[f"{line}_out"])
        ab.new_pipeline(line, f"{line}_in").to(exclaim)
        if line == "redis":
            ab.sink_connector("redis_hash", encode, decode_pair, ports["redis_hash"])
            ab.to_sinks(["redis_out", "redis_hash"])
        else:
            ab.to_sink(f"{line}_out")
    return ab.build()


@experimental.stream_message_encoder
def encode(data):
    return data


@experimental.stream_message_decoder
def decode(bs):
    return bs.decode()


@experimental.stream_message_decoder
def decode_pair(bs):
    """Give the first word as key, and the whole text."""
    text = bs.decode()
    return text.partition(" ")[0], text


@experimental.stream_message_decoder
def decode_row(bs):
    """Give name and number of a row, of JSON."""
    row = json.loads(bs.decode().removesuffix("!"))
    return row["name"], row["number"] + 1


READ = dict.fromkeys(("udp", "redis", "rabbitmq"), decode) | dict.fromkeys(("kinesis", "s3", "kafka"), decode_pair)
READ["postgres"] = decode_row


@wallaroo.computation("exclaim")
def exclaim(data):
    return f"{data}!"
