"""`--check-persist`: a development aid that names the step which changes state and does not persist it."""

from pathlib import Path

import pytest

from support.run import Receiver, Run, framed

pytestmark = [pytest.mark.jvm, pytest.mark.long]
APP = """
import wallaroo

def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    ab = wallaroo.ApplicationBuilder("Forgetful")
    ab.new_pipeline("Forgetful", wallaroo.TCPSourceConfig(in_host, in_port, decode))
    ab.to_state_partition(see, Seen, "seen", key)
    ab.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    return ab.build()

class Seen:
    def __init__(self):
        self.words = []

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs.decode("utf-8")

@wallaroo.partition
def key(data):
    return "one"

@wallaroo.state_computation("see")
def see(data, state):
    if data != "look":
        state.words.append(data)
    return " ".join(state.words), data not in ("look", "forget")

@wallaroo.encoder
def encode(data):
    return data + "\\n"
"""


def test_the_step_is_named_and_the_run_goes_on(tmp_path: Path) -> None:
    app = tmp_path / "forgetful.py"
    app.write_text(APP, encoding="utf-8")
    with Receiver() as receiver, Run(app, receiver, tmp_path / "c", "--check-persist") as run:
        run.ready().send(framed(word.encode() for word in ["a", "forget", "look", "b"]))
        assert receiver.wait_for_lines(3, run) == ["a", "a", "a b"]
        run.wait_for("dead_letters", 1)
        (letters,) = (tmp_path / "c" / "dead-letters").glob("*.frames")
        content = letters.read_bytes()
        assert b"C510" in content
        assert b"changed the state of key 'one' and returned persist False" in content
        assert run.stop() == 0, run.said()
