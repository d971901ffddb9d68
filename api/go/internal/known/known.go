// Package known maps the names of types to types, so that bytes written by one process of a program can be
// read by another, which may not have met the type yet.
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

// Register makes a type known; of a pointer, the type it points to.
func Register(t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	byName.Store(Name(t), t)
}

var registersMain atomic.Bool

// RegisterMain makes types of package main known when they are asked for: `wallaroo build` adds a file to a program that registers
// them, and a test of the program has no such file.
func RegisterMain() { registersMain.Store(true) }

// Has reports whether a type is known by its name.
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

// Lookup returns the type of a name.
func Lookup(name string) (reflect.Type, bool) {
	found, ok := byName.Load(name)
	if !ok {
		return nil, false
	}
	return found.(reflect.Type), true
}

// Name returns the name under which a type is known: stable between processes of one program.
func Name(t reflect.Type) string {
	if path := t.PkgPath(); path != "" && t.Name() != "" {
		return strings.Join([]string{path, t.Name()}, ".")
	}
	return t.String()
}
