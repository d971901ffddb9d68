"""State queries over drawn updates: pages, keys and names against a dictionary, with the workers of both languages."""

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from support.manifest import put_manifest
from support.memory_query import BATCH, MemoryLogs, query_of
from support.run import TESTS
from support.small_checkpoint import open_checkpoint, word_count
from wallaroo_runtime.cli.main import command_parser, main
from wallaroo_runtime.cli.state import print_states
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.memory.run import MemoryRun
from wallaroo_runtime.memory.start import start
from wallaroo_runtime.monitor.board import Board
from wallaroo_runtime.monitor.server import MonitorServer
from wallaroo_runtime.spark.state_store.choice import StateRow
from wallaroo_runtime.spark.state_store.state_query import StateQuery, key_text, keys_of

ARGS = ["--in", "127.0.0.1:7010,127.0.0.1:7011,127.0.0.1:7012", "--out", "127.0.0.1:7002,127.0.0.1:7003,127.0.0.1:7004"]
KEYS = st.text("ab€1 ", min_size=1, max_size=3).map(str.strip).filter(bool) | st.sampled_from(["0xff", "0x12ab", "0xz"])
TEXTS = st.lists(st.lists(KEYS, min_size=1, max_size=4).map(",".join), max_size=12)
VECTORS = TESTS.parent / "topology-schema" / "vectors" / "topologies" / "valid"


@pytest.fixture(scope="module", params=["python", pytest.param("go", marks=pytest.mark.slow)])
def app(request: pytest.FixtureRequest) -> str:
    if request.param == "python":
        return str(TESTS / "conformance" / "app.py")
    return str(request.getfixturevalue("go_conformance"))


@pytest.fixture(scope="module")
def run(app: str) -> Iterator[MemoryRun]:
    found = start(app, ARGS)
    yield found
    found.close()


def count_of(value: dict[str, Any]) -> int:
    """Return the count in a state of the conformance application, whatever its fields are called."""
    return next(number for name, number in value.items() if name.lower() in ("count", "n"))


def pages(query: StateQuery, name: str, limit: int, prefix: str) -> Iterator[dict[str, Any]]:
    """Yield all states of a name, page by page."""
    after = ""
    while True:
        _, found = query.page(name, prefix=prefix, after=after, limit=limit)
        rows = list(found)
        assert len(rows) <= limit
        yield from rows
        if len(rows) < limit:
            return
        after = rows[-1]["key"]


def parts(query: StateQuery, name: str, limit: int, prefix: str, page_bytes: int) -> Iterator[dict[str, Any]]:
    """Yield all states of a name, in pages of so many bytes."""
    after: str | None = ""
    while after is not None:
        _, rows, following = query.part(name, prefix=prefix, after=after, limit=limit, page_bytes=page_bytes)
        sizes = [row["bytes"] + len(row["key"].encode()) for row in rows]
        assert len(rows) <= limit and (len(rows) < 2 or sum(sizes) <= page_bytes * 4)  # 0x12 is longer than its key
        assert following is None or following == rows[-1]["key"]
        yield from rows
        after = following


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=TEXTS,
    limit=st.integers(1, 5),
    prefix=st.text("ab€", max_size=2) | st.sampled_from(["0x", "0x12"]),
    absent=KEYS,
    page_bytes=st.integers(0, 200),
)
@example(texts=["a,b,a"], limit=1, prefix="", absent="x", page_bytes=9)
@example(texts=["0xff,0x12ab,a"], limit=1, prefix="0x12", absent="x", page_bytes=90)
def test_states_are_what_a_dictionary_says(
    run: MemoryRun, totals: dict[str, int], texts: list[str], limit: int, prefix: str, absent: str, page_bytes: int
) -> None:
    run.send([text.encode() for text in texts], "Words")
    for key in (key for text in texts for key in text.split(",")):
        totals[key] = totals.get(key, 0) + 1
    query = query_of(run)
    batch, whole = query.page("totals")
    assert batch == BATCH
    rows = list(whole)
    named = {key: key_text(key.encode()) for key in totals}
    assert {row["key"]: count_of(row["value"]) for row in rows} == {named[key]: totals[key] for key in totals}
    wanted = sorted((key for key in totals if key.startswith(prefix)), key=str.encode)
    paged = list(pages(query, "totals", limit, prefix))
    assert [(row["key"], count_of(row["value"])) for row in paged] == [(named[key], totals[key]) for key in wanted]
    assert list(parts(query, "totals", limit, prefix, page_bytes)) == paged
    for key in totals:
        batch, row = query.get("totals", key)
        assert (batch, row["key"], count_of(row["value"])) == (BATCH, named[key], totals[key])
    if absent not in totals:
        with pytest.raises(RunError, match="R720"):
            query.get("totals", absent)
    _, listed = query.listed()
    by_name = {state["state"]: state for state in listed}
    assert sorted(by_name) == ["numbers", "tallies", "totals"]
    assert by_name["totals"]["keys"] == len(totals)
    assert by_name["totals"]["bytes"] == sum(row["bytes"] for row in rows)


@pytest.fixture(scope="module")
def totals(run: MemoryRun) -> dict[str, int]:
    """What the run has counted so far."""
    return {}


def test_a_key_is_read_from_its_bucket_alone(run: MemoryRun) -> None:
    run.send([b"one"], "Words")
    query = query_of(run)
    logs = query._logs
    assert isinstance(logs, MemoryLogs)
    query.get("totals", "one")
    (ids,) = logs.asked
    assert len(ids) == 1
    assert ids[0] in range(run.plan.bucket_count)


def test_a_number_is_a_key_too(run: MemoryRun) -> None:
    run.send([b"7"], "Numbers")
    query = query_of(run)
    for text in ("7", "0x0000000000000007"):
        _, row = query.get("numbers", text)
        assert row["key"] == "0x0000000000000007"
        assert count_of(row["value"]) >= 1


def test_without_a_worker_the_bytes_are_shown(run: MemoryRun) -> None:
    run.send([b"raw"], "Words")
    _, row = StateQuery(run.plan, MemoryLogs(run), None).get("totals", "raw")
    assert {"state", "key", "bytes", "encoding", "base64"} == set(row)
    assert row["bytes"] > 0


def test_an_unknown_state_is_named_with_the_known_ones(run: MemoryRun) -> None:
    with pytest.raises(RunError) as caught:
        query_of(run).page("total")
    assert str(caught.value).startswith(
        'R720 the application has no state "total"; it has "numbers", "tallies", "totals"'
    )
    with pytest.raises(RunError) as caught:
        query_of(run).get("totals", "never")
    assert str(caught.value).startswith('R720 state "totals", as of micro-batch 4, has no key never; ')


def test_before_the_first_micro_batch_there_is_nothing(run: MemoryRun) -> None:
    class Empty(MemoryLogs):
        def batch(self) -> int:
            return -1

    query = StateQuery(run.plan, Empty(run), None)
    assert query.listed("totals") == (-1, [{"state": "totals", "stage": "s1", "worker": "main", "keys": 0, "bytes": 0}])
    batch, rows = query.page("totals")
    assert (batch, list(rows)) == (-1, [])
    with pytest.raises(RunError) as caught:
        query.get("totals", "ann")
    lacks = 'R720 state "totals" has no key ann; it has none yet: nothing is committed'
    assert str(caught.value) == f"{lacks}\n  fix: ask again after the first commit"


def test_a_state_whose_keys_have_ended_has_no_list_of_keys(run: MemoryRun) -> None:
    class Ended(MemoryLogs):
        def rows(self, *_: object) -> Iterator[StateRow]:
            return iter(())

    with pytest.raises(RunError) as caught:
        StateQuery(run.plan, Ended(run), None).get("totals", "ann")
    lacks = "has no key ann; it has none: no key was used, or the states of all have ended"
    said = f'R720 state "totals", as of micro-batch 4, {lacks}\n  fix: ask again after the next commit'
    assert str(caught.value) == said


def test_windows_show_their_accumulators() -> None:
    program = TESTS / "cases" / "alerts_windowed" / "app.py"
    with closing(start(str(program), ["--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002"])) as run:
        run.send([b"1000 ann 5", b"1200 bob 7", b"1500 ann 6", b"4000 ann 8"])
        query = query_of(run)
        (name,) = query.states
        _, rows = query.page(name)
        assert {row["key"]: row["value"] for row in rows} == {"ann": [[11], [8]], "bob": [[7]]}


@pytest.mark.parametrize("text", ["0xzz", "0x1", "€", "", "18446744073709551616", "1" * 5000])
def test_a_text_that_is_nothing_else_is_a_key_as_it_is(text: str) -> None:
    assert keys_of(text) == [text.encode()]


@pytest.fixture
def ask(run: MemoryRun, tmp_path: Path) -> Iterator[Callable[[str], tuple[int, Any]]]:
    """Give what asks a monitor that shows the states of the run."""
    run.send([b"a,b,c/d"], "Words")
    put_manifest(tmp_path)
    server = MonitorServer(Board(run.topology, run.plan, tmp_path), "127.0.0.1:0")
    server.start()

    def ask(path: str) -> tuple[int, Any]:
        with closing(http.client.HTTPConnection(*server.server_address[:2], timeout=60)) as connection:
            connection.request("GET", f"/api/v1/state{path}", headers={"Authorization": f"Bearer {server.token}"})
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())

    status, found = ask("")
    assert (status, found["code"]) == (503, "R771"), "before the query runs"
    server.routes.states.states = query_of(run)
    yield ask
    server.stop()


def test_the_monitor_answers_with_pages_and_keys(run: MemoryRun, ask: Callable[[str], tuple[int, Any]]) -> None:
    status, found = ask("")
    assert (status, found) == (200, {"batch": BATCH, "states": ["numbers", "tallies", "totals"]})
    _, whole = query_of(run).page("totals", limit=1000)
    expected = list(whole)
    assert ask("/totals?limit=1000") == (
        200,
        {"state": "totals", "batch": BATCH, "keys": expected, "next": None},
    )
    seen, after = [], ""
    while True:
        status, found = ask(f"/totals?limit=2&after={quote(after)}")
        seen += found["keys"]
        if not (after := found["next"]):
            break
    assert seen == expected
    for row in expected:
        status, found = ask(f"/totals/{quote(row['key'], safe='/')}")
        assert (status, found) == (200, {**row, "batch": BATCH})
    status, found = ask("/totals?prefix=c%2F")
    assert [row["key"] for row in found["keys"]] == ["c/d"]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/total", 404, "R720"),
        ("/totals/never", 404, "R720"),
        ("/totals?limit=0", 400, "R766"),
        ("/totals?limit=x", 400, "R766"),
    ],
)
def test_the_monitor_refuses_what_there_is_not(
    ask: Callable[[str], tuple[int, Any]], path: str, status: int, code: str
) -> None:
    answered, found = ask(path)
    assert (answered, found["code"]) == (status, code)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--limit", "0"], "R608 argument --limit: '0' is not a number of 1 or more"),
        (["--after", "a"], "R608 --after is for pages, which have a limit"),
    ],
)
def test_pages_need_a_limit(options: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["state", "dump", ".", "totals", *options]) == 2
    assert capsys.readouterr().err.startswith(told)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    action=st.sampled_from(["ls", "get", "dump"]),
    name=st.sampled_from(sorted(word_count().states())).flatmap(lambda name: st.sampled_from([name + "s", name[1:]]))
    | st.text("ab€ 1", min_size=1),
    is_json=st.booleans(),
)
def test_a_state_that_is_not_there_is_reported_before_spark_starts(
    tmp_path: Path, action: str, name: str, is_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    open_checkpoint(tmp_path)
    arguments = ["state", action, str(tmp_path), name, *(["k"] if action == "get" else [])]
    assert main([*arguments, *(["--json"] if is_json else [])]) == 1
    out, err = capsys.readouterr()
    known = ", ".join(f'"{each}"' for each in sorted(word_count().states()))
    said = f'the application has no state "{name}"; it has {known}'
    assert out == ""
    if is_json:
        assert [(finding["code"], finding["message"]) for finding in json.loads(err)] == [("R720", said)]
    else:
        assert err.splitlines()[0] == f"R720 {said}"


@pytest.mark.parametrize("as_json", [False, True])
def test_the_answers_of_the_command(run: MemoryRun, capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    run.send([b"said"], "Words")
    query = query_of(run)
    for action in ("ls", "get", "dump"):
        words = {"ls": ["totals"], "get": ["totals", "said"], "dump": ["totals", "--prefix", "sai"]}[action]
        arguments = command_parser()[0].parse_args(["state", action, ".", *words, *(["--json"] if as_json else [])])
        print_states(query, arguments)
        printed = capsys.readouterr()
        if as_json:
            (row,) = map(json.loads, printed.out.splitlines())
            assert (row["state"], row["batch"], printed.err) == ("totals", BATCH, "")
            assert "time" in row
        else:
            assert printed.err == f"as of micro-batch {BATCH}\n"
            line = printed.out.splitlines()[-1]
            assert line.startswith({"ls": "totals ", "get": "{", "dump": "said\t{"}[action])
