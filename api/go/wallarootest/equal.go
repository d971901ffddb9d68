package wallarootest

import (
	"fmt"
	"reflect"
	"strings"
)

// Equal makes the test fail if two values differ. The test continues. The failure shows both values. It shows lists
// with one item per line and a mark at the first difference.
func Equal[V any](t T, got, want V) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	first, second := reflect.ValueOf(got), reflect.ValueOf(want)
	if first.Kind() != reflect.Slice || first.Type().Elem().Kind() == reflect.Uint8 {
		t.Errorf("got %#v; want %#v", got, want)
		return
	}
	at := 0
	for at < min(first.Len(), second.Len()) && reflect.DeepEqual(first.Index(at).Interface(), second.Index(at).Interface()) {
		at++
	}
	t.Errorf("got %d items; want %d; item %d differs\ngot:\n%swant:\n%s", first.Len(), second.Len(), at, listed(first, at), listed(second, at))
}

// listed formats a list with one item per line, and marks the item at index marked.
func listed(list reflect.Value, marked int) string {
	var text strings.Builder
	for i := range list.Len() {
		mark := "   "
		if i == marked {
			mark = " > "
		}
		item := list.Index(i).Interface()
		if shown, isText := item.(string); isText {
			fmt.Fprintf(&text, "%s%q\n", mark, shown)
			continue
		}
		fmt.Fprintf(&text, "%s%+v\n", mark, item)
	}
	return text.String()
}
