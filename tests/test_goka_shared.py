"""Tables and topics that Goka's own processors share with ours, in Go and in Python, on one broker at the same time.

A group counts, on Goka's own processor or on ours; three others join its table and look it up: one of Goka's own, and
ours in both languages. What they saw is compared with what was emitted.
"""

import os
import random
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.goka import GOKA_MODULE, Processor, build_ours, build_own
from support.kafka import Broker
from support.kafka_application import Make, application
from support.run import READY, TESTS, wait_until
from wallaroo import goka

pytestmark = [pytest.mark.kafka, pytest.mark.long]
__all__ = ["application"]  # the fixture
READER, LEDGER, IN_PYTHON = (TESTS / "support" / name for name in ("goka_reader", "goka_ledger", "goka_reader.py"))
KEYS = ["", "a", "b", "né", "user-1", "Alice"]
PARTITIONS, CLICKS, WAIT_S = 4, 200, 300.0
Build = Callable[[Path], Path]


def build_reader(folder: Path) -> Path:
    """Build the program of Goka's own that uses two options of ours; returns the binary."""
    source, binary = folder / "reader", folder / "reader-of-goka"
    source.mkdir()
    shutil.copyfile(READER / "main.go", source / "main.go")
    text = (GOKA_MODULE / "go.mod").read_text(encoding="utf-8")
    text = re.sub(r"(?m)^module .*$", "module wallaroo.local/reader", text)
    own = f"require wallarooapi/goka v0.0.0\nreplace wallarooapi/goka => {GOKA_MODULE}\n"
    text = text.replace("replace wallarooapi => ../", f"{own}replace wallarooapi => {GOKA_MODULE.parent}")
    (source / "go.mod").write_text(text, encoding="utf-8")
    shutil.copyfile(GOKA_MODULE / "go.sum", source / "go.sum")
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOWORK": "off"}
    subprocess.run(["go", "build", "-o", binary, "."], cwd=source, env=environment, check=True, timeout=600)
    return binary


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("readers")
    return {"goka": build_reader(folder), "go": build_ours(folder, LEDGER)}


@pytest.fixture
def ends() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize(("kind", "build"), [("goka", build_own), ("ours", build_ours)])
def test_a_table_is_read_by_all(
    kind: str,
    build: Build,
    readers: dict[str, Path],
    broker: Broker,
    application: Make,
    ends: ExitStack,
    tmp_path: Path,
) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    draw, name, counts = random.Random(seed), f"shared-{kind}", Counter[str]()
    for topic in (name, f"{name}-asks"):
        broker.create(topic, PARTITIONS)
    counting = Processor(build(tmp_path), tmp_path / "counting", broker, name, name)
    ends.callback(counting.end)
    counting.start()

    def click(count: int) -> None:
        with goka.Emitter([broker.address], name, goka.String()) as emitter:
            for key in draw.choices(KEYS, k=count):
                emitter.emit(key, "click")
                counts[key] += 1

    click(CLICKS)
    table = goka.group_table(counting.group)
    with goka.View([broker.address], table, goka.Int64()) as view:
        view.wait_running(WAIT_S)
        wait_until(lambda: dict(view.iterate()) == counts, counting.output, WAIT_S)
    running = {
        each: Processor(
            binary,
            tmp_path / f"reads-{each}",
            broker,
            f"{name}-asks",
            f"{name}-{each}",
            INPUTS=f"{name}-asks",
            TABLE=table,
        )
        for each, binary in readers.items()
    }
    for each in running.values():
        ends.callback(each.end)
        each.start()
    groups = {each: reader.group for each, reader in running.items()} | {"python": f"{name}-python"}
    in_python = application(IN_PYTHON, broker.address, groups["python"], f"{name}-asks", table)
    in_python.start()
    wait_until(lambda: READY in in_python.output(), in_python.output, WAIT_S)
    click(CLICKS)
    about = {key: draw.choice(KEYS) for key in KEYS}
    expected = {key: f"joined {counts[key]}, looked up {counts[other]}" for key, other in about.items()}
    views = {
        each: goka.View([broker.address], goka.group_table(group), goka.String()) for each, group in groups.items()
    }
    for each in views.values():
        ends.enter_context(each)
        each.wait_running(WAIT_S)

    def is_seen() -> bool:
        """Ask again: tables are followed, and what comes later is seen later."""
        with goka.Emitter([broker.address], f"{name}-asks", goka.String()) as emitter:
            for key, other in about.items():
                emitter.emit(key, f"about {other}")
        return all(dict(each.iterate()) == expected for each in views.values())

    def seen() -> str:
        return f"{ {each: dict(view.iterate()) for each, view in views.items()} } instead of {expected}"

    wait_until(is_seen, seen, WAIT_S, every=1.0)
