package server

import (
	"context"
	"sync"

	"wallarooapi/internal/flight"
)

// turn lets a call run user code, either together with other calls or alone. The runtime requests a call alone to find
// out which message ends or hangs the worker.
type turn struct {
	stream context.Context // of the call
	lock   sync.Locker
	record *flight.File
}

func (w *Host) turn(stream context.Context, record *flight.File, alone bool) turn {
	if alone {
		return turn{stream, &w.users, record}
	}
	return turn{stream, w.users.RLocker(), record}
}

// run waits for the turn of the call, and then calls the function messages, which runs user code. If the client has
// given up the stream, run only returns an error, because no client would read which message was in flight.
func (t turn) run(messages func() error) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if err := t.stream.Err(); err != nil {
		return errBroken{err}
	}
	return messages()
}

// pause gives up the turn while wait runs, e.g. while it sends outputs, so that other calls can have their turn. Call it
// only within the function that was passed to turn.run, which has the turn.
func (t turn) pause(wait func() error) error {
	at := t.record.Rest()
	t.lock.Unlock()
	defer func() {
		t.lock.Lock()
		t.record.Resume(at)
	}()
	return wait()
}
