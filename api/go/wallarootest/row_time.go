package wallarootest

import (
	"encoding/json"
	"strings"
	"time"

	"wallarooapi/internal/calendar"
	"wallarooapi/internal/topology"
)

// timeMs returns the time of a payload: the time in the column that the source of Spark names, otherwise the test's time. If the
// source has SQL other than the name of a column, only Spark can evaluate it.
func (w *writer) timeMs(payload []byte) int64 {
	var row map[string]any
	edge, ok := w.source.Edge.(*topology.Spark)
	if ok && edge.Value == "*" {
		_ = json.Unmarshal(payload, &row) // the decoder reports what is wrong with it
	}
	for name, value := range row {
		if strings.EqualFold(name, strings.Trim(edge.Timestamp, "`")) {
			switch value := value.(type) {
			case nil:
				return calendar.FirstMs - 1 // not a valid time, as for null in Spark's rows: windows and timers report it
			case float64:
				return int64(value)
			case string:
				if at, err := time.Parse(time.RFC3339Nano, value); err == nil {
					return at.UnixMilli()
				}
			}
		}
	}
	return w.app.now.UnixMilli()
}
