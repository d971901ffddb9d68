// Package cstring has the few names of import "C" that the programs in Wallaroo's tutorials use. `wallaroo build`
// replaces the import of "C" with this package, so that these programs need no C compiler.
package cstring

// Char replaces C.char. A *Char represents a text.
type Char struct{ text string }

// CString replaces C.CString. It returns a text as a *Char.
func CString(text string) *Char { return &Char{text} }

// GoString replaces C.GoString. It returns the text that a *Char represents, or "" for nil.
func GoString(c *Char) string {
	if c == nil {
		return ""
	}
	return c.text
}
