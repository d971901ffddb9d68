package server

import (
	"sync"

	"wallarooapi/internal/flight"
)

// turn is a call's right to run messages: many calls have it together, or one alone.
type turn struct {
	lock   sync.Locker
	record *flight.Record
}

func (w *Worker) turn(record *flight.Record, alone bool) turn {
	if alone {
		return turn{&w.users, record}
	}
	return turn{w.users.RLocker(), record}
}

// run runs messages when it is the call's turn.
func (t turn) run(messages func() error) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	return messages()
}

// pause is called within run: it does what has to wait for the client, while others may have their turn.
func (t turn) pause(wait func() error) error {
	at := t.record.Rest()
	t.lock.Unlock()
	defer func() {
		t.lock.Lock()
		t.record.Resume(at)
	}()
	return wait()
}
