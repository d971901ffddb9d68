package wallarooapi

import "time"

// Timer is the argument that the function of a timer (see stream.OnTimer) gets in addition to the state of its key.
type Timer struct {
	Name    string    // name of the timer
	Key     []byte    // key to which the timer belongs; must not be changed
	At      time.Time // time to which the timer was set, in whole milliseconds
	deletes bool
}

// DeleteState requests that the state of the key and all timers of the key are deleted after the function has returned.
func (t *Timer) DeleteState() { t.deletes = true }

// DeletesState reports whether the function has called DeleteState.
func (t *Timer) DeletesState() bool { return t.deletes }
