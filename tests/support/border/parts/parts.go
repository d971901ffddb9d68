// Command parts has what ../parts.py has.
package main

import (
	"context"
	"math"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

type message struct {
	Key   string  `json:"key"`
	Place string  `json:"place"`
	Bad   string  `json:"bad"`
	Count int     `json:"count"`
	Value float64 `json:"value"`
}

func (m message) at(place string) message {
	if m.Place != place {
		return m
	}
	m.Value = math.NaN()
	switch m.Bad {
	case "inf":
		m.Value = math.Inf(1)
	case "-inf":
		m.Value = math.Inf(-1)
	}
	return m
}

type count struct{ Count int }

func setup([]string) *stream.Library {
	library := stream.NewLibrary()
	stream.OfferMap(library, "first", first, "json", "json")
	stream.OfferMap(library, "second", same, "json", "json")
	stream.OfferMapState(library, "count", counted, "json", "json")
	stream.OfferMap(library, "third", same, "json", "json")
	return library
}

func first(_ context.Context, m message) (message, error) { return m.at("first"), nil }

func same(_ context.Context, m message) (message, error) { return m, nil }

func counted(_ context.Context, m message, state *count) (message, error) {
	state.Count++
	m.Count = state.Count
	return m.at("count"), nil
}

func main() { worker.Main(setup) }
