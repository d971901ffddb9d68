"""Turns degrees Celsius into degrees Fahrenheit; messages come and go through connectors."""

import argparse
import struct

import wallaroo
from wallaroo import experimental


def application_setup(args):
    parser = argparse.ArgumentParser()
    parser.add_argument("--feed-port", help="where the application listens for the connector; by default 7100")
    parser.add_argument("--take-port", help="where the connector for the output listens; by default 7200")
    ports = parser.parse_known_args(args)[0]

    ab = wallaroo.ApplicationBuilder("Celsius with Connectors")
    ab.source_connector("celsius", encode_celsius, decode_celsius, ports.feed_port)
    ab.sink_connector("fahrenheit", encode_fahrenheit, decode_fahrenheit, ports.take_port)
    ab.new_pipeline("Celsius with Connectors", "celsius")
    ab.to(convert)
    ab.to_sink("fahrenheit")
    return ab.build()


@experimental.stream_message_encoder
def encode_celsius(data):
    return data  # a float of four bytes already


@experimental.stream_message_decoder
def decode_celsius(bs):
    return struct.unpack(">f", bs)[0]


@wallaroo.computation("convert")
def convert(data):
    return data * 1.8 + 32


@experimental.stream_message_encoder
def encode_fahrenheit(data):
    return f"{data:.2f}"


@experimental.stream_message_decoder
def decode_fahrenheit(bs):
    return bs.decode("ascii")
