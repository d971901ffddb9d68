"""State steps with timers and a ttl over rows of a DataFrame, in both languages: each has a sink of its own.

After each one is a step that collects what it gives, and gives that as one row 50 ms after the last one of a key.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support import row_totals

SCHEMA = "key STRING, value BIGINT, ops STRING, at TIMESTAMP, n BIGINT"
CLOSE_MS = 50

PYTHON = """
import datetime
import json

import wallaroo

GIVEN = {"key": str, "timer": str, "now": int, "values": list[int]}

@wallaroo.key_extractor
def by_key(row):
    return row["key"]

def perform(ops, timers):
    for op in ops:
        if "delete" in op:
            timers.delete(op["delete"])
        elif "after" in op:
            timers.set(op["set"], after=datetime.timedelta(milliseconds=op["after"]))
        else:
            timers.set(op["set"], at=op["at"])

def timed(name, described):
    ttl = {"ttl": datetime.timedelta(milliseconds=described["ttl_ms"])} if described["ttl_ms"] else {}

    @wallaroo.state_computation(name, state=list, **ttl)
    def step(row, values, timers):
        perform(json.loads(row["ops"]), timers)
        if row["value"] == -1:
            raise ValueError("minus one")
        values.append(row["value"])
        return {"key": row["key"], "timer": "", "now": timers.now_ms, "values": values}

    def add(timer, does):
        @step.timer(timer)
        def fire(key, values, time, timers):
            values += does.get("appends", [])
            perform(does.get("ops", []), timers)
            if does.get("fails"):
                raise ValueError("it fails")
            given = {"key": key, "timer": timer, "now": time, "values": values} if does.get("gives") else None
            return wallaroo.Deleted(given) if does.get("deletes") else given

    for timer, does in described["timers"].items():
        add(timer, does)
    return step

def collecting(name):
    @wallaroo.state_computation(name, state=list)
    def step(found, values, timers):
        timers.set("close", after=datetime.timedelta(milliseconds=CLOSE_MS))
        values.append(found["now"])

    @step.timer("close")
    def close(key, values, time):
        return wallaroo.Deleted({"key": key, "timer": "close", "now": time, "values": values})

    return step

def application_setup(args):
    timestamp, described = args[-2], json.loads(args[-1])
    row = {"key": str, "value": int, "ops": str, "at": datetime.datetime}
    rows = wallaroo.source("rows", wallaroo.DataFrameSourceConfig(row, timestamp=timestamp or None))
    sinks = []
    for number, each in enumerate(described):
        given = rows.key_by(by_key).to(timed(f"timed {number}", each))
        sinks.append(given.to_sink(wallaroo.DataFrameSinkConfig(GIVEN, name=f"t{number}")))
        all_ = given.key_by(by_key).to(collecting(f"all {number}"))
        sinks.append(all_.to_sink(wallaroo.DataFrameSinkConfig(GIVEN, name=f"c{number}")))
    return wallaroo.build_application("Timers", *sinks)
""".replace("CLOSE_MS", str(CLOSE_MS))
GO = """
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

type row struct {
	Key   string    `json:"key"`
	Value int64     `json:"value"`
	Ops   string    `json:"ops"`
	At    time.Time `json:"at"`
}

type found struct {
	Key    string  `json:"key"`
	Timer  string  `json:"timer"`
	Now    int64   `json:"now"`
	Values []int64 `json:"values"`
}

type op struct {
	Set, Delete string
	After, At   *int64
}

type behaviour struct {
	Ops                   []op
	Appends               []int64
	Gives, Deletes, Fails bool
}

type step struct {
	TTLMs  int64 `json:"ttl_ms"`
	Timers map[string]behaviour
}

func perform(ctx context.Context, ops []op) {
	for _, each := range ops {
		switch {
		case each.Delete != "":
			stream.DeleteTimer(ctx, each.Delete)
		case each.After != nil:
			stream.SetTimerAfter(ctx, each.Set, time.Duration(*each.After)*time.Millisecond)
		default:
			stream.SetTimer(ctx, each.Set, time.UnixMilli(*each.At))
		}
	}
}

func timed(of stream.Stream[row], name string, described step) stream.Stream[found] {
	keyed := stream.KeyBy(of, "key of "+name, func(r row) string { return r.Key })
	compute := func(ctx context.Context, r row, values *[]int64) (found, error) {
		var ops []op
		if err := json.Unmarshal([]byte(r.Ops), &ops); err != nil {
			return found{}, err
		}
		perform(ctx, ops)
		if r.Value == -1 {
			return found{}, errors.New("minus one")
		}
		*values = append(*values, r.Value)
		return found{r.Key, "", stream.Now(ctx).UnixMilli(), *values}, nil
	}
	options := []stream.StateOption{}
	if described.TTLMs > 0 {
		options = append(options, stream.TTL(time.Duration(described.TTLMs)*time.Millisecond))
	}
	given := stream.MapState(keyed, name, compute, options...)
	for _, timer := range slices.Sorted(maps.Keys(described.Timers)) { // the application is the same in each process
		does := described.Timers[timer]
		stream.OnTimer(given, timer, func(ctx context.Context, at *stream.Timer, values *[]int64) (found, error) {
			*values = append(*values, does.Appends...)
			perform(ctx, does.Ops)
			if does.Fails {
				return found{}, errors.New("it fails")
			}
			if does.Deletes {
				at.DeleteState()
			}
			if !does.Gives {
				return found{}, stream.ErrSkip
			}
			return found{string(at.Key), at.Name, at.At.UnixMilli(), *values}, nil
		})
	}
	return given
}

func collecting(of stream.Stream[found], name string) stream.Stream[found] {
	keyed := stream.KeyBy(of, "key of "+name, func(f found) string { return f.Key })
	given := stream.MapState(keyed, name, func(ctx context.Context, f found, values *[]int64) (found, error) {
		stream.SetTimerAfter(ctx, "close", CLOSE_MS*time.Millisecond)
		*values = append(*values, f.Now)
		return found{}, stream.ErrSkip
	})
	return stream.OnTimer(given, "close", func(_ context.Context, at *stream.Timer, values *[]int64) (found, error) {
		at.DeleteState()
		return found{string(at.Key), "close", at.At.UnixMilli(), *values}, nil
	})
}

func setup(args []string) *stream.Application {
	app := stream.New("Timers")
	var described []step
	if err := json.Unmarshal([]byte(args[len(args)-1]), &described); err != nil {
		panic(err)
	}
	source := stream.DataFrameSource[row]()
	if timestamp := args[len(args)-2]; timestamp != "" {
		source = source.Timestamp(timestamp)
	}
	rows := stream.From(app, "rows", source)
	for number, each := range described {
		given := timed(rows, fmt.Sprintf("timed %d", number), each)
		given.To(stream.DataFrameSink[found]().Named(fmt.Sprintf("t%d", number)))
		all := collecting(given, fmt.Sprintf("all %d", number))
		all.To(stream.DataFrameSink[found]().Named(fmt.Sprintf("c%d", number)))
	}
	return app
}

func main() { worker.Main(setup) }
""".replace("CLOSE_MS", str(CLOSE_MS))


def write_program(folder: Path, language: str) -> Path:
    """Write the program into a folder; return what `load` takes."""
    return row_totals.write_program(folder, language, PYTHON, GO, "row_timers.py")


def arguments(steps: Sequence[dict[str, Any]], timestamp: str = "at") -> list[str]:
    """Return what the program is called with: of each step its ttl, and what its timers do."""
    return [timestamp, json.dumps(steps)]
