package wallarootest

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"wallarooapi/internal/calendar"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/topology"
)

// timeLayouts are the accepted forms of a time as text. A time without a zone is in UTC.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", time.DateTime, time.DateOnly}

// timeMs returns the time of a message: the value of the time column in its payload, or the test's time if the source
// has no such column. The test fails if the source computes the time by other SQL than a column's name, because only
// Spark can evaluate it.
func (w *writer) timeMs(payload []byte) int64 {
	var row map[string]any
	edge, ok := w.source.Edge.(*topology.Spark)
	if ok && edge.Value == "*" && edge.Timestamp != "" {
		decoder := json.NewDecoder(bytes.NewReader(payload))
		decoder.UseNumber()
		_ = decoder.Decode(&row) // the program's decoder reports invalid JSON
	}
	for name, value := range row {
		if strings.EqualFold(name, strings.Trim(edge.Timestamp, "`")) {
			switch value := value.(type) {
			case nil:
				return calendar.FirstMs - 1 // invalid, as null in a row of Spark; windows and timers report it
			case string:
				for _, layout := range timeLayouts {
					if at, err := time.Parse(layout, value); err == nil {
						return at.UnixMilli()
					}
				}
			case json.Number:
				if ms, err := value.Int64(); err == nil {
					return ms
				}
			}
			w.app.t.Fatalf("wallarootest: source %q: column %s is %v; expected a TIMESTAMP, a DATE or an integer of milliseconds",
				w.source.Name, name, diagnostic.Shown(value))
		}
	}
	isSQL := func(r rune) bool { return r != '_' && r != '`' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	if row != nil && strings.ContainsFunc(edge.Timestamp, isSQL) {
		w.app.t.Fatalf("wallarootest: source %q: the time of a row is the SQL %q, which only Spark evaluates; send a stream.Record with a time",
			w.source.Name, edge.Timestamp)
	}
	return w.app.now.UnixMilli()
}
