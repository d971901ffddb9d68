"""What docs/testing.md promises: its program and its tests are run as printed."""

import re
import subprocess
from pathlib import Path

import pytest

from wallaroo_runtime.program.init import init

PAGE = Path(__file__).resolve().parent.parent / "docs" / "testing.md"
# A program for Wallaroo: `wallaroo build` would make its type known, which moves to the state of its key.
CLASSIC = """package main

import (
	"encoding/binary"
	"testing"

	app "wallarooapi/application"
	"wallarooapi/wallarootest"
)

type Order struct{ Symbol string }

type Orders struct{ Count int }

type Part struct{}

func (Part) HeaderLength() uint64                { return 4 }
func (Part) PayloadLength(b []byte) uint64       { return uint64(binary.BigEndian.Uint32(b)) }
func (Part) Decode(b []byte) interface{}         { return &Order{string(b)} }
func (Part) Partition(data interface{}) []byte   { return []byte(data.(*Order).Symbol) }
func (Part) Build() interface{}                  { return &Orders{} }
func (Part) Name() string                        { return "count" }
func (Part) Encode(data interface{}) []byte      { return []byte(data.(*Order).Symbol) }

func (Part) Compute(data, state interface{}) (interface{}, bool) {
	state.(*Orders).Count++
	return data, true
}

func ApplicationSetup() string {
	made := app.MakeApplication("Orders")
	made.NewPipeline("Orders", app.MakeTCPSourceConfig("127.0.0.1", "7010", Part{})).
		ToStatePartition(Part{}, Part{}, "orders", Part{}).
		ToSink(app.MakeTCPSinkConfig("127.0.0.1", "7002", Part{}))
	return made.ToJson()
}

func TestOrders(t *testing.T) {
	app := wallarootest.NewJSON(t, ApplicationSetup())
	app.Send("Orders", "TSLA", "TSLA")
	wallarootest.Equal(t, app.Lines("Orders"), []string{"TSLA", "TSLA"})
	wallarootest.Equal(t, wallarootest.State[Orders](app, "orders", "TSLA"), Orders{2})
}
"""


@pytest.mark.slow
def test_the_page_s_tests_pass(tmp_path: Path) -> None:
    blocks = re.findall(r"```go\n// (\S+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert [name for name, _ in blocks] == ["main.go", "main_test.go"]
    for name, text in blocks:
        (tmp_path / name).write_text(text, encoding="utf-8")
    formatted = subprocess.run(["gofmt", "-l", "."], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert formatted.stdout == ""
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "main_test.go").write_text(CLASSIC, encoding="utf-8")
    init(tmp_path)
    done = subprocess.run(["go", "test", "-v", "./..."], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = set(re.findall(r"^--- PASS: (\w+)", done.stdout, re.MULTILINE))
    assert passed == {*re.findall(r"^func (Test\w+)", blocks[1][1], re.MULTILINE), "TestOrders"}
