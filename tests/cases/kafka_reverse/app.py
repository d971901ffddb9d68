"""Reverses the records of a Kafka topic."""

import wallaroo


def application_setup(args):
    ab = wallaroo.ApplicationBuilder("Reverse Word with Kafka")
    ab.new_pipeline("Reverse", wallaroo.CustomKafkaSourceCLIParser(args, decode))
    ab.to(reverse)
    ab.to_sink(wallaroo.CustomKafkaSinkCLIParser(args, encode))
    return ab.build()


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs.decode("utf-8")


@wallaroo.computation(name="reverse")
def reverse(data):
    return data[::-1]


@wallaroo.encoder
def encode(data):
    return (data, None, None)
