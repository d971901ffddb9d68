"""Go programs of Wallaroo's layout, as Wallaroo 0.4 and 0.5 had them: built and run unchanged."""

import random
import struct
from pathlib import Path

import pytest

from wallaroo.testing import run

HERE = Path(__file__).parent / "support" / "market_spread"
SYMBOLS = ("AAPL", "FB", "T", "IBM")
ADDRESSES = ["--in", "127.0.0.1:7010,127.0.0.1:7011", "--out", "127.0.0.1:7002"]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["v0_4", "v0_5"])
def test_market_spread_with_packages_of_its_own(version: str, tmp_path: Path) -> None:
    symbols = ",".join(SYMBOLS)
    if version == "v0_5":
        symbols = str(tmp_path / "symbols.txt")
        Path(symbols).write_text("\n".join(SYMBOLS))
    draw = random.Random(4)
    expected, kept = [], {}
    with run(str(HERE / version / "go" / "src" / "market_spread"), [*ADDRESSES, "--symbols", symbols]) as app:
        for number in range(200):
            symbol = draw.choice((*SYMBOLS, "NONE")).rjust(4)
            bid, offer = sorted(draw.choice((10.0, 10.01, 10.06, 11.0)) for _ in range(2))
            if draw.random() < 0.3:
                app.send([struct.pack(">4sdd", symbol.encode(), bid, offer)], "Market Data")
                kept[symbol] = (bid, offer)
                continue
            order = struct.pack(">I8s4sddQ", number, f"{number:8}".encode(), symbol.encode(), 1.5, bid, number)
            app.send([order], "Orders")
            was = kept.get(symbol)
            if (
                (symbol != "NONE" or version == "v0_5")
                and was
                and (was[1] - was[0] >= 0.05 or (was[1] - was[0]) * 2 / sum(was) >= 0.05)
            ):
                head = struct.pack(">I8s4sI", 56, f"{number:8}".encode(), symbol.encode(), number)
                expected.append(head + struct.pack(">ddddQ", 1.5, bid, *was, number))
    assert expected and sorted(each.value or b"" for each in app.records()) == sorted(expected)
    # In 0.4 the keys are those that are declared; a number is shown as one.
    unknown = {f"key {int.from_bytes(b'NONE', 'big')} is not" in letter.error for letter in app.dead_letters}
    assert ({letter.code for letter in app.dead_letters}, unknown) == (
        ({"C502"}, {True}) if version == "v0_4" else (set(), set())
    )
