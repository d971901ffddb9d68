"""What a checkpoint or a foreign topology may not hold: links, NUL, ports that are none."""

import copy
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wallaroo_runtime.checkpoint.directory import MANIFEST, find_directory
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.durable.file import refuse_links
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.override import parse_addresses

TOPOLOGIES = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"
DOCUMENTS = {path.stem: json.loads(path.read_bytes()) for path in sorted(TOPOLOGIES.glob("*.json"))}
PLACES = ["journal", "journal/head", "spark/state/0/0/1.delta", "outbox/log", "logs/gateway.log", "gateway.json"]


def codes(document: Any) -> set[str]:
    try:
        load_document(document)
    except RunError as error:
        return {finding.code for finding in error.diagnostics}
    return set()


@pytest.mark.parametrize("place", PLACES)
def test_links_in_a_checkpoint_are_not_followed(place: str, tmp_path: Path) -> None:
    checkpoint, elsewhere = tmp_path / "checkpoint", tmp_path / "elsewhere"
    link = checkpoint / place
    link.parent.mkdir(parents=True)
    (checkpoint / MANIFEST).write_text("{}")
    (checkpoint / "workers").mkdir()
    (checkpoint / "workers" / "of the user").symlink_to(tmp_path)
    reached = tmp_path / "reached"
    reached.symlink_to(checkpoint)
    assert find_directory(str(reached)) == reached
    link.symlink_to(elsewhere)
    said = f"R711 {link} is a symbolic link; a checkpoint's own files and directories must not be links"
    taken = HeldDirectory.take(checkpoint)
    for refused in (taken.check_links, lambda: find_directory(str(checkpoint)), lambda: refuse_links(checkpoint)):
        with pytest.raises(RunError) as caught:
            refused()
        if refused is taken.check_links:
            assert str(caught.value).splitlines()[0] == said
    taken.clear()
    taken.check_links()
    taken.release()
    assert not elsewhere.exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "dead-letters", "state", "gateway"])
def test_commands_refuse_links(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / MANIFEST).write_text("{}")
    (tmp_path / "journal").symlink_to("/tmp")
    topology = str(TOPOLOGIES / "word_count.json")
    arguments = {
        "run": ["run", topology, "--checkpoint", str(tmp_path)],
        "dead-letters": ["dead-letters", "ls", str(tmp_path)],
        "state": ["state", "rescale", str(tmp_path), "--partitions", "2"],
        "gateway": ["gateway", "--journal", str(tmp_path), "--listen", "127.0.0.1:0"],
    }
    assert main(arguments[command]) != 0
    assert f"R711 {tmp_path}/journal is a symbolic link" in capsys.readouterr().err


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["file", "link", "folder"])), max_size=8))
def test_a_link_is_found_wherever_it_is(entries: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        at, links = Path(folder), 0
        for name, kind in entries:
            path = at / name
            if path.exists() or path.is_symlink():
                continue
            if kind == "folder":
                path.mkdir()
                at = path
            elif kind == "link":
                path.symlink_to("/nowhere")
                links += 1
            else:
                path.touch()
        try:
            refuse_links(Path(folder))
            found = False
        except RunError:
            found = True
        assert found == (links > 0)


def texts(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Yield the texts of a document and their places."""
    if isinstance(value, str):
        yield at, value
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from texts(item, (*at, key))


def with_value(document: Any, at: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(document)
    place = changed
    for key in at[:-1]:
        place = place[key]
    place[at[-1]] = value
    return changed


@pytest.mark.parametrize("name", DOCUMENTS)
def test_nul_is_refused_where_the_system_would_end_a_text(name: str) -> None:
    document = DOCUMENTS[name]
    worker = {"command", "directory", "args", "brokers", "host"}
    for at, text in texts(document):
        if worker & set(at):
            assert codes(with_value(document, at, f"{text}\0x")), at


def ends(document: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the sources and sinks of a document and their places."""
    for number, pipeline in enumerate(document["pipelines"]):
        for kind in ("sources", "sinks"):
            yield from ((("pipelines", number, kind, at), end) for at, end in enumerate(pipeline[kind]))


PORTS = [
    (name, (*at, *where))
    for name, document in DOCUMENTS.items()
    for where in (("port",), ("brokers", 0))
    for at, end in ends(document)
    if where[0] in end
]


@settings(deadline=None)
@given(st.one_of(st.integers(0, 70_000), st.integers(0, 10**12)), st.sampled_from(PORTS))
def test_ports_above_65535_are_refused(port: int, where: tuple[str, tuple[Any, ...]]) -> None:
    name, place = where
    changed = with_value(DOCUMENTS[name], place, port if place[-1] == "port" else f"h:{port}")
    is_same_address = "T203"  # of two sources that now listen at one port
    first = 0 if place[-1] == "port" else 1  # a broker listens at a port, a source may choose any
    assert (not codes(changed) - {is_same_address}) == (first <= port <= 65535)


@given(st.integers(min_value=0, max_value=10**12))
def test_ports_above_65535_are_refused_on_the_command_line(port: int) -> None:
    try:
        (address,) = parse_addresses(f"127.0.0.1:{port}", "source")
        assert address.port == port <= 65535
    except RunError as error:
        assert (error.diagnostics[0].code, port > 65535) == ("T211", True)


def test_a_port_of_very_many_digits_is_no_port() -> None:
    with pytest.raises(RunError) as caught:
        parse_addresses("127.0.0.1:" + "9" * 5000, "source")
    assert caught.value.diagnostics[0].code == "T211"
