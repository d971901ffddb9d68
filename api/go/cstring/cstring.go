// Package cstring replaces the few names of import "C" that Wallaroo's tutorials use. `wallaroo build` replaces the
// import of "C" with this package, so that the program needs no C compiler.
package cstring

// Char stands for C.char. A *Char represents a text.
type Char struct{ text string }

// CString stands for C.CString.
func CString(text string) *Char { return &Char{text} }

// GoString stands for C.GoString.
func GoString(c *Char) string {
	if c == nil {
		return ""
	}
	return c.text
}
