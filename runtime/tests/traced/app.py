"""Counts words with a program in Go; functions in both languages begin spans of their own."""

from opentelemetry import trace

import wallaroo

TRACER = trace.get_tracer("lines")


def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    words = wallaroo.other_program("words", "words")
    pipeline = (
        wallaroo.source("Lines", wallaroo.TCPSourceConfig(in_host, in_port, decode))
        .to(words.computation_multi("split", input="string", output="string"))
        .key_by(word)
        .to(words.state_computation("count", input="string", output="string"))
        .to(line)
        .to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    )
    return wallaroo.build_application("Traced words", pipeline)


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs.decode("utf-8")


@wallaroo.key_extractor
def word(text):
    return text


@wallaroo.computation("line")
def line(text):
    with TRACER.start_as_current_span("line"):
        return f"{text}\n"


@wallaroo.encoder
def encode(text):
    return text
