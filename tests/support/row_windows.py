"""Any windows over rows of a DataFrame, in both languages: each has a sink of its own, and shows its values."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support import row_totals

SCHEMA = "key STRING, value BIGINT, at TIMESTAMP, n BIGINT"

PYTHON = """
import datetime
import json

import wallaroo

class Values(wallaroo.Aggregation):
    def initial_accumulator(self):
        return []

    def update(self, row, accumulator):
        accumulator += row["values"] if "values" in row else [row["value"]]

    def combine(self, left, right):
        return left + right

    def output(self, key, accumulator, bounds=None):
        return {"key": key, "begin": bounds.start_ms, "end": bounds.end_ms, "values": accumulator}

@wallaroo.key_extractor
def by_key(row):
    return row["key"]

@wallaroo.key_extractor
def one(row):
    return ""

def window_of(described):
    if described["kind"] == "count":
        return wallaroo.count_windows(described["count"]).over(Values)
    if described["kind"] == "session":
        window = wallaroo.session_windows(wallaroo.milliseconds(described["gap_ms"]))
    else:
        window = wallaroo.range_windows(wallaroo.milliseconds(described["range_ms"]))
        window = window.with_slide(wallaroo.milliseconds(described["slide_ms"]))
    window = window.with_delay(wallaroo.milliseconds(described["delay_ms"]))
    return window.with_late_data_policy(described["late"].replace("_", "-")).over(Values)

def application_setup(args):
    timestamp, windows = args[-2], json.loads(args[-1])
    row = {"key": str, "value": int, "at": datetime.datetime}
    rows = wallaroo.source("rows", wallaroo.DataFrameSourceConfig(row, timestamp=timestamp or None))
    sinks, found = [], {"key": str, "begin": int, "end": int, "values": list[int]}
    for number, chain in enumerate(windows):
        stream = rows
        for described in chain:
            stream = stream.key_by(one if described.get("rekeyed") else by_key).to(window_of(described))
        sinks.append(stream.to_sink(wallaroo.DataFrameSinkConfig(found, name=f"w{number}")))
    return wallaroo.build_application("Windows", *sinks)
"""
GO = """
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

type row struct {
	Key   string    `json:"key"`
	Value int64     `json:"value"`
	At    time.Time `json:"at"`
}

type found struct {
	Key    string  `json:"key"`
	Begin  int64   `json:"begin"`
	End    int64   `json:"end"`
	Values []int64 `json:"values"`
}

func over(name string, of stream.Stream[found], window map[string]any) stream.Stream[found] {
	number := func(name string) int64 { return int64(window[name].(float64)) }
	values := stream.Aggregation[found, []int64, found]{
		Name:    name,
		Initial: func() []int64 { return nil },
		Update:  func(row found, values []int64) []int64 { return append(values, row.Values...) },
		Combine: func(left, right []int64) []int64 { return append(append([]int64{}, left...), right...) },
		OutputTo: func(ctx context.Context, key string, values []int64) (found, error) {
			begin, end := stream.WindowBounds(ctx)
			return found{key, begin.UnixMilli(), end.UnixMilli(), values}, nil
		},
	}
	keyed := stream.KeyBy(of, "key of "+name, func(row found) string {
		if window["rekeyed"] == true {
			return ""
		}
		return row.Key
	})
	if window["kind"] == "count" {
		return stream.CountWindow(keyed, stream.Count{Size: int(number("count"))}, values)
	}
	ms := func(name string) time.Duration { return time.Duration(number(name)) * time.Millisecond }
	late := map[any]stream.Late{"drop": stream.Drop, "fire_per_message": stream.FirePerMessage,
		"place_in_oldest_window": stream.PlaceInOldestWindow}[window["late"]]
	if window["kind"] == "session" {
		return stream.SessionWindow(keyed, stream.Session{Gap: ms("gap_ms"), Delay: ms("delay_ms"), Late: late}, values)
	}
	span := stream.Range{Length: ms("range_ms"), Slide: ms("slide_ms"), Delay: ms("delay_ms"), Late: late}
	return stream.RangeWindow(keyed, span, values)
}

func setup(args []string) *stream.Application {
	app := stream.New("Windows")
	var windows [][]map[string]any
	if err := json.Unmarshal([]byte(args[len(args)-1]), &windows); err != nil {
		panic(err)
	}
	source := stream.DataFrameSource[row]()
	if timestamp := args[len(args)-2]; timestamp != "" {
		source = source.Timestamp(timestamp)
	}
	rows := stream.Map(stream.From(app, "rows", source), "found", func(_ context.Context, r row) (found, error) {
		return found{r.Key, 0, 0, []int64{r.Value}}, nil
	})
	for number, chain := range windows {
		of := rows
		for step, window := range chain {
			of = over(fmt.Sprintf("w%d step %d", number, step), of, window)
		}
		of.To(stream.DataFrameSink[found]().Named(fmt.Sprintf("w%d", number)))
	}
	return app
}

func main() { worker.Main(setup) }
"""


def write_program(folder: Path, language: str) -> Path:
    """Write the program into a folder; return what `load` takes."""
    return row_totals.write_program(folder, language, PYTHON, GO, "row_windows.py")


def arguments(chains: Sequence[Sequence[dict[str, Any]]], timestamp: str = "at") -> list[str]:
    """Return what the program is called with: windows one after the other, for each sink."""
    return [timestamp, json.dumps(chains)]
