package wallarootest

import (
	"encoding/binary"
	"reflect"
	"slices"

	"wallarooapi/internal/topology"
	"wallarooapi/internal/window"
	"wallarooapi/stream"
)

// State returns the persisted state of a key. state is the name of the state, which in a *stream.Application is the
// name of the step. S is the type of the state; if the state is a pointer, S may also be the type without the pointer.
// The test fails if the key has no state. It also fails for a window step, because the state of a window is not a value
// of the program.
func State[S any, K stream.Key](a *App, state string, key K) (value S) {
	a.t.Helper()
	a.flush()
	if !a.hasState(state) {
		return value
	}
	wanted := bytesOf(key)
	found, err := a.engine.State(state, wanted)
	if err != nil {
		a.t.Fatalf("wallarootest: state %q: %v", state, err)
		return value
	}
	switch s := found.(type) {
	case nil:
		a.t.Fatalf("wallarootest: state %q has no key %s; it has %q", state, topology.ShowKey(wanted), a.Keys(state))
	case *window.KeyState:
		a.t.Fatalf("wallarootest: state %q is that of a window; look at what the window gives", state)
	case S:
		return s
	case *S:
		return *s
	default:
		a.t.Fatalf("wallarootest: state %q is a %T; expected %T", state, found, value)
	}
	return value
}

// Keys returns, in order, the keys that have a persisted state or an open window. state is the name of the state, as
// for State.
func (a *App) Keys(state string) []string {
	a.t.Helper()
	a.flush()
	if !a.hasState(state) {
		return nil
	}
	keys, err := a.engine.Keys(state)
	if err != nil {
		a.t.Fatalf("wallarootest: state %q: %v", state, err)
	}
	slices.Sort(keys)
	return keys
}

// hasState reports whether the application has a state with this name. If not, the test fails.
func (a *App) hasState(state string) bool {
	a.t.Helper()
	if a.engine.HasState(state) {
		return true
	}
	a.t.Fatalf("wallarootest: the application has no state %q; it has %q", state, a.engine.States())
	return false
}

// bytesOf returns a key in the form that messages carry. A number becomes 8 bytes, big-endian.
func bytesOf[K stream.Key](key K) []byte {
	value := reflect.ValueOf(key)
	switch value.Kind() {
	case reflect.String:
		return []byte(value.String())
	case reflect.Uint64:
		return binary.BigEndian.AppendUint64(nil, value.Uint())
	}
	return value.Bytes()
}
