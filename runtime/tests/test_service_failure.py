"""Errors of a service cross the network whole, or cut so that code and beginning are there."""

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.worker._proto import worker_pb2
from wallaroo_runtime.service.failure import MAX_BYTES, pack_failures, read_failures
from wallaroo_runtime.worker.endpoint import remote_error

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
LONG = st.builds(lambda text, count: text * count, TEXT, st.sampled_from([1, 1, 50, 1000]))
DIAGNOSTIC = st.builds(Diagnostic, st.just("R648"), LONG, LONG, TEXT, LONG, st.integers(0, 9999), LONG)


@given(st.lists(DIAGNOSTIC, min_size=1, max_size=5))
def test_what_fits_arrives_whole_and_the_rest_cut(found: list[Diagnostic]) -> None:
    data = pack_failures(found)
    arrived = read_failures(data)
    assert len(data) <= MAX_BYTES
    assert arrived
    for sent, seen in zip(found, arrived, strict=False):
        assert seen == sent or (seen.code == sent.code and sent.message.startswith(seen.message) and not seen.traceback)
    if len(json.dumps(list(map(asdict, found)), ensure_ascii=False).encode()) <= MAX_BYTES:
        assert arrived == found


def test_a_lone_surrogate_crosses_escaped() -> None:
    (seen,) = read_failures(pack_failures([Diagnostic("R648", "a \ud800", "b")]))
    assert seen.message == "a \\ud800"


@pytest.mark.parametrize("data", [b"\xff", b"[]", b"5", b"[5]", b'[{"code": 5}]', b'{"code": ""}'])
def test_other_bytes_are_no_findings(data: bytes) -> None:
    assert read_failures(data) == []


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (dict(code="C501", message="m"), "C501 m\n  fix: correct the user code; `wallaroo dead-letters` shows"),
        (dict(code="C501", message="m", fix="f", file="a.js", line=3), "C501 m\n  at a.js:3\n  fix: f"),
        (dict(code="C599", message="of a later release", fix="f"), "C599 of a later release\n  fix: f"),
        (dict(code="C599", message="m"), "C599 m\n  fix: look at the log of worker 'w'"),
        (dict(code="oops", message="m"), "W410 worker \"w\": the protocol is broken; unknown code 'oops': m"),
    ],
)
def test_a_workers_failure_keeps_its_own_remedy(failure: dict[str, object], text: str) -> None:
    assert str(remote_error("w", worker_pb2.Failure(**failure))).startswith(text)
