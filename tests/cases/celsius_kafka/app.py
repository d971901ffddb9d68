"""Turns degrees Celsius into degrees Fahrenheit, from one Kafka topic into another; numbers are text."""

import wallaroo


def application_setup(args):
    ab = wallaroo.ApplicationBuilder("Celsius to Fahrenheit with Kafka")
    ab.new_pipeline("Celsius Conversion", wallaroo.DefaultKafkaSourceCLIParser(decode))
    ab.to(multiply)
    ab.to(add)
    ab.to_sink(wallaroo.DefaultKafkaSinkCLIParser(encode))
    return ab.build()


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    try:
        return float(bs.decode("ascii"))
    except ValueError:
        print(f"not a number: {bs!r}")
        return 0.0


@wallaroo.computation(name="multiply by 1.8")
def multiply(data):
    return data * 1.8


@wallaroo.computation(name="add 32")
def add(data):
    return data + 32


@wallaroo.encoder
def encode(data):
    return (f"{data:.6f}", None, None)
