"""The application whose messages fail."""

APP = """
import wallaroo

def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    lines = wallaroo.source("Lines", wallaroo.TCPSourceConfig(in_host, in_port, decode))
    sink = wallaroo.TCPSinkConfig(out_host, out_port, encode)
    return wallaroo.build_application("Broken", lines.to(shout).to_sink(sink))

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs.decode("utf-8")

@wallaroo.computation(name="shout")
def shout(text):
    return text.missing()

@wallaroo.encoder
def encode(text):
    return text.encode()
"""
