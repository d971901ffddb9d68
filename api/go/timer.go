package wallarooapi

import "time"

// Timer is the argument of a timer's function besides the state.
type Timer struct {
	Name    string    // of the timer
	Key     []byte    // whose timer it is; it must not be changed
	At      time.Time // to which it was set, in whole milliseconds
	deletes bool
}

// DeleteState deletes the state of the key and all its timers, once the function has returned.
func (t *Timer) DeleteState() { t.deletes = true }

// DeletesState reports whether the function has called DeleteState.
func (t *Timer) DeletesState() bool { return t.deletes }
