"""A program between DataFrames, in both languages: the sum of each user's orders."""

from pathlib import Path

PYTHON = """
import wallaroo

class Sum:
    def __init__(self):
        self.total = 0

@wallaroo.key_extractor
def user(order):
    return order["user"]

@wallaroo.state_computation("sum", Sum)
def add(order, state):
    state.total += order["amount"]
    return {"user": order["user"], "total": state.total}

def application_setup(args):
    orders = wallaroo.source("orders", wallaroo.DataFrameSourceConfig({"user": str, "amount": int}))
    totals = orders.key_by(user).to(add).to_sink(wallaroo.DataFrameSinkConfig({"user": str, "total": int}))
    return wallaroo.build_application("totals", totals)
"""
GO = """
package main

import (
	"context"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

type Order struct {
	User   string `json:"user"`
	Amount int64  `json:"amount"`
}

type Total struct {
	User  string `json:"user"`
	Total int64  `json:"total"`
}

type Sum struct{ Total int64 }

func user(order Order) string { return order.User }

func add(_ context.Context, order Order, sum *Sum) (Total, error) {
	sum.Total += order.Amount
	return Total{order.User, sum.Total}, nil
}

func setup(args []string) *stream.Application {
	app := stream.New("totals")
	orders := stream.From(app, "orders", stream.DataFrameSource[Order]())
	stream.MapState(stream.KeyBy(orders, "user", user), "sum", add).To(stream.DataFrameSink[Total]())
	return app
}

func main() { worker.Main(setup) }
"""


def write_program(folder: Path, language: str, python: str = PYTHON, go: str = GO, name: str = "totals.py") -> Path:
    """Write the program, or another one, into a folder; return what `load` takes."""
    if language == "python":
        file = folder / name
        file.write_text(python, encoding="utf-8")
        return file
    program = folder / "go"
    program.mkdir()
    (program / "main.go").write_text(go, encoding="utf-8")
    return program
