package server

import (
	"context"
	"sync"

	"wallarooapi/internal/flight"
)

// turn gives a call the right to process messages: alone, or together with other calls.
type turn struct {
	stream context.Context // of the call
	lock   sync.Locker
	record *flight.Region
}

func (w *Host) turn(stream context.Context, record *flight.Region, alone bool) turn {
	if alone {
		return turn{stream, &w.users, record}
	}
	return turn{stream, w.users.RLocker(), record}
}

// run calls messages when it is the call's turn. If the client has given up the stream, run does nothing, because
// nobody would read the in-flight record.
func (t turn) run(messages func() error) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if err := t.stream.Err(); err != nil {
		return errBroken{err}
	}
	return messages()
}

// pause gives up the turn while wait runs, so that other calls may have it. Only the function
// passed to run may call pause.
func (t turn) pause(wait func() error) error {
	at := t.record.Rest()
	t.lock.Unlock()
	defer func() {
		t.lock.Lock()
		t.record.Resume(at)
	}()
	return wait()
}
