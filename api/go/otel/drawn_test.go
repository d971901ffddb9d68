package otel

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"wallarooapi/internal/workermain"
)

// This file draws streams of both kinds, with calls in any order, and compares all their spans with a reference.
func TestDrawnStreams(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			before := runtime.NumGoroutine()
			t.Run("played", func(t *testing.T) { played(t, rand.New(rand.NewPCG(seed, 14))) })
			waitUntil(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
		})
	}
}

// played draws streams, plays them on a worker, and compares the received spans with the reference.
func played(t *testing.T, random *rand.Rand) {
	r, made := received(t)
	found := &seen{by: map[string]trace.SpanContext{}}
	app := program(found)
	hosted, err := workermain.Host(app, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	connection, err := grpc.NewClient(hosted.Endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	var all []*drawn
	var open [][]func()
	for number := range 1 + random.IntN(8) {
		all = append(all, draw(random, number))
		open = append(open, all[number].open(t, connection, app))
	}
	for len(open) > 0 {
		at := random.IntN(len(open))
		if len(open[at]) == 0 {
			open = append(open[:at], open[at+1:]...)
			continue
		}
		open[at][0]()
		open[at] = open[at][1:]
	}
	// A worker that ended at once would also end cancelled calls.
	waitUntil(t, "spans of streams that are not open", func() bool {
		made.Flush(t.Context())
		return len(r.by("Process"))+len(r.by("ProcessState")) == count(all, func(d *drawn) bool { return d.sampled() && d.ending != "left" })
	})
	hosted.End()
	// If a stream was cancelled, its call ends before the program's code in the call ends.
	waitUntil(t, "both spans of each message", func() bool {
		made.Flush(t.Context())
		return len(r.by("outer")) == len(r.by("inner"))
	})
	compare(t, r, found, all)
	if made.made != nil {
		_ = made.made.Shutdown(t.Context())
	}
}

func count(all []*drawn, matches func(*drawn) bool) (found int) {
	for _, d := range all {
		if matches(d) {
			found++
		}
	}
	return found
}

func compare(t *testing.T, r *receiver, found *seen, all []*drawn) {
	t.Helper()
	outer, inner, below := r.by("outer"), r.by("inner"), map[string]*otlp.Span{}
	for _, each := range inner {
		below[string(each.GetParentSpanId())] = each
	}
	if servers := len(r.by("Process")) + len(r.by("ProcessState")); servers != count(all, (*drawn).sampled) || len(inner) != len(outer) {
		t.Errorf("%d spans of calls, %d and %d of the program came", servers, len(outer), len(inner))
	}
	for _, d := range all {
		server := d.server(t, r)
		for _, text := range slices.Concat(d.calls...) {
			context := found.by[text]
			id := context.SpanID()
			own := outer[string(id[:])]
			switch {
			case d.header == "":
				if own != nil && len(own.GetParentSpanId()) > 0 {
					t.Errorf("%s has a parent without a trace: %v", text, own)
				}
			case context.TraceID() != d.trace || context.IsSampled() != d.sampled() || (own != nil) != d.sampled():
				t.Errorf("%s is in the trace %v, not in %s: %v", text, context, d.header, own)
			case server != nil && (!isWithin(own, server) || !isWithin(below[string(id[:])], own)):
				t.Errorf("%s: %v and %v do not nest in %v", text, below[string(id[:])], own, server)
			}
		}
	}
}

// server returns the span of a stream's call, or nil if there must be none.
func (d *drawn) server(t *testing.T, r *receiver) (found *otlp.Span) {
	t.Helper()
	for _, each := range r.by(d.method()) {
		if string(each.GetParentSpanId()) == string(d.parent[:]) && string(each.GetTraceId()) == string(d.trace[:]) {
			found = each
		}
	}
	if (found != nil) != d.sampled() {
		t.Fatalf("%+v has the span %v", d, found)
	}
	reason := map[string]string{"left": "the worker ends", "fail": "W410 worker \"main\": the protocol is broken"}[d.ending]
	isError := found.GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR
	if found != nil && (found.GetKind() != otlp.Span_SPAN_KIND_SERVER || isError != (reason != "") || !strings.HasPrefix(found.GetStatus().GetMessage(), reason)) {
		t.Errorf("%+v has the span %v", d, found)
	}
	return found
}

// clockSlack is how much the ends of two spans may differ from their order. Go reads the wall clock and the monotonic clock one
// after the other; a thread that pauses between them ends its span too early by this pause.
const clockSlack = uint64(10 * time.Second)

// isWithin reports whether a span is a child of another one and lies within it, within the accuracy of clocks.
func isWithin(child, parent *otlp.Span) bool {
	return string(child.GetParentSpanId()) == string(parent.GetSpanId()) && string(child.GetTraceId()) == string(parent.GetTraceId()) &&
		child.GetStartTimeUnixNano()+clockSlack >= parent.GetStartTimeUnixNano() &&
		child.GetEndTimeUnixNano() <= parent.GetEndTimeUnixNano()+clockSlack
}

// waitUntil waits for a condition, for 20 s at most.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited 20 s for %s", what)
		}
	}
}
