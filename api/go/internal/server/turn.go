package server

import (
	"context"
	"sync"

	"wallarooapi/internal/flight"
)

// turn is a call's right to run messages: many calls have it together, or one alone.
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

// run runs messages when it is the call's turn. Of a stream that the client has given up none begins: nobody looks at the
// record any longer.
func (t turn) run(messages func() error) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if err := t.stream.Err(); err != nil {
		return errBroken{err}
	}
	return messages()
}

// pause is called within run: it does the work that has to wait for the client, while others may have their turn.
func (t turn) pause(wait func() error) error {
	at := t.record.Rest()
	t.lock.Unlock()
	defer func() {
		t.lock.Lock()
		t.record.Resume(at)
	}()
	return wait()
}
