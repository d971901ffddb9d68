// Package known finds types of the program by their names. A worker needs this to read a value that another process of
// the program has written, and whose type it has not used itself yet.
package known

import (
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
)

var byName sync.Map // string → reflect.Type

func init() {
	for _, value := range []any{
		[]string(nil), [][]byte(nil), []int(nil), []int64(nil), []uint64(nil), []float64(nil), []any(nil),
		map[string]string(nil), map[string]int(nil), map[string]int64(nil), map[string]uint64(nil),
		map[string]float64(nil), map[string]any(nil),
	} {
		Register(reflect.TypeOf(value))
	}
}

// Register registers a type, so that Lookup finds it. For a pointer type it registers the target type.
func Register(t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	byName.Store(Name(t), t)
}

var registersMain atomic.Bool

// RegisterMain makes Has register types of package main. It is for tests, which lack the file with which
// `wallaroo build` registers the types of a program.
func RegisterMain() { registersMain.Store(true) }

// Has reports whether Lookup finds this very type by its name. Only then another process can read its values.
func Has(t reflect.Type) bool {
	if found, ok := Lookup(Name(t)); ok {
		return found == t
	}
	isOfMain := t.PkgPath() != "" && strings.HasPrefix(t.String(), "main.") && !strings.Contains(t.Name(), "[")
	if isOfMain && registersMain.Load() {
		Register(t)
		return true
	}
	return false
}

// Lookup returns the type that is registered under a name.
func Lookup(name string) (reflect.Type, bool) {
	found, ok := byName.Load(name)
	if !ok {
		return nil, false
	}
	return found.(reflect.Type), true
}

// Name returns the name of a type, which is the same in all processes of a program.
func Name(t reflect.Type) string {
	if path := t.PkgPath(); path != "" && t.Name() != "" {
		return strings.Join([]string{path, t.Name()}, ".")
	}
	return t.String()
}
