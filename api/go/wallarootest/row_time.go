package wallarootest

import (
	"encoding/json"
	"strings"
	"time"

	"wallarooapi/internal/calendar"
	"wallarooapi/internal/topology"
)

const wholeRow = "*" // in the place of the SQL of a message

// timeMs returns the time of a payload: that of the row's column which the source of Spark names, else the test's. Other SQL than the name
// of a column is known to Spark alone.
func (w *writer) timeMs(payload []byte) int64 {
	now := w.app.now.UnixMilli()
	edge, ok := w.source.Edge.(*topology.Spark)
	if !ok || edge.Value != wholeRow || edge.Timestamp == "" {
		return now
	}
	var row map[string]json.RawMessage
	if json.Unmarshal(payload, &row) != nil {
		return now // the decoder finds what is wrong with it
	}
	for name, value := range row {
		if !strings.EqualFold(name, strings.Trim(edge.Timestamp, "`")) {
			continue
		}
		var ms int64
		var at time.Time
		switch {
		case string(value) == "null":
			return calendar.FirstMs - 1 // as Spark's rows have it: windows and timers report it
		case json.Unmarshal(value, &ms) == nil:
			return ms
		case json.Unmarshal(value, &at) == nil:
			return at.UnixMilli()
		}
	}
	return now
}
