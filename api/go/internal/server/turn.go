package server

import (
	"context"
	"sync"

	"wallarooapi/internal/flight"
)

// turn is a call's right to process messages. Several calls share the right, or one call has it alone.
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

// run processes messages when it is the call's turn. If the client has given up the stream, run processes nothing,
// because the record in the in-flight file is no longer read.
func (t turn) run(messages func() error) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if err := t.stream.Err(); err != nil {
		return errBroken{err}
	}
	return messages()
}

// pause is called within run. It waits for the client and lets other calls have their turn during this time.
func (t turn) pause(wait func() error) error {
	at := t.record.Rest()
	t.lock.Unlock()
	defer func() {
		t.lock.Lock()
		t.record.Resume(at)
	}()
	return wait()
}
