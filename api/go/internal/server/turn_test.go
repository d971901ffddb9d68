package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"wallarooapi/internal/flight"
)

func record(t *testing.T) *flight.File {
	t.Helper()
	r, err := flight.Open("")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wait waits until a channel is closed, and fails after a deadline.
func wait(t *testing.T, what string, closed chan struct{}) {
	t.Helper()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Fatalf("waited 10 s for %s", what)
	}
}

func TestCallsRunTogetherUnlessOneIsAlone(t *testing.T) {
	w := &Host{}
	inside, met, alone := make(chan struct{}), make(chan struct{}), make(chan struct{})
	leave, running := make(chan struct{}), 0
	go func() {
		_ = w.turn(t.Context(), record(t), false).run(func() error {
			close(inside)
			<-leave
			running--
			return nil
		})
	}()
	wait(t, "the first call", inside)
	running++
	_ = w.turn(t.Context(), record(t), false).run(func() error { close(met); return nil })
	wait(t, "a concurrent call", met)
	go func() {
		_ = w.turn(t.Context(), record(t), true).run(func() error {
			if running != 0 {
				t.Error("it is not alone")
			}
			close(alone)
			return nil
		})
	}()
	close(leave)
	wait(t, "the call alone", alone)
}

func TestACallThatWaitsForTheClientLetsOthersRun(t *testing.T) {
	w, r, alone := &Host{}, record(t), make(chan struct{})
	waiting := w.turn(t.Context(), r, false)
	err := waiting.run(func() error {
		r.Begin(0)
		r.At(4)
		return waiting.pause(func() error {
			if at := r.Rest(); at != 0 {
				t.Errorf("message %d is in flight", at)
			}
			go func() { _ = w.turn(t.Context(), record(t), true).run(func() error { close(alone); return nil }) }()
			wait(t, "the call alone", alone)
			return nil
		})
	})
	if at := r.Rest(); at != 5 || err != nil {
		t.Errorf("afterwards message %d is in flight: %v", at, err)
	}
}

func TestNoMessageOfAStreamThatWasGivenUpBegins(t *testing.T) {
	w, ran := &Host{}, false
	stream, giveUp := context.WithCancel(t.Context())
	giveUp()
	err := w.turn(stream, record(t), false).run(func() error {
		ran = true
		return nil
	})
	if broken := (errBroken{}); !errors.As(err, &broken) || ran {
		t.Errorf("%v, ran: %v; want that the client is gone", err, ran)
	}
}
