"""A program that sends on the lines that it gets, for tests of what surrounds programs."""

_TEXT = """
import wallaroo

def application_setup(args):
    return wallaroo.build_application(
        "NAME", wallaroo.source("lines", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 9, encode)))

@wallaroo.line_decoder
def decode(data):
    return data

@wallaroo.line_encoder
def encode(data):
    return data
"""


def line_program(name: str) -> str:
    """Return the program's text; `name`: of its application."""
    return _TEXT.replace("NAME", name)
