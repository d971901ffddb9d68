"""The value of what is held of each share, computed by components of a program in Go: book/book.go."""

import wallaroo


def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    book = wallaroo.other_program("book", "book")
    pipeline = (
        wallaroo.source("Orders", wallaroo.TCPSourceConfig(in_host, in_port, decode))
        .to(book.computation("price", input="json", output="json"))
        .key_by(symbol)
        .to(book.state_computation("position", input="json", output="json"))
        .to(line)
        .to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    )
    return wallaroo.build_application("Positions", pipeline)


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    symbol, amount = bs.decode("utf-8").split(" ")
    return {"symbol": symbol, "amount": int(amount)}


@wallaroo.key_extractor
def symbol(priced):
    return priced["symbol"]


@wallaroo.computation("line")
def line(position):
    return "{symbol} {amount} {value}\n".format(**position)


@wallaroo.encoder
def encode(text):
    return text
