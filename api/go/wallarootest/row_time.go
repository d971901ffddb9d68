package wallarootest

import (
	"encoding/json"
	"strings"
	"time"

	"wallarooapi/internal/calendar"
	"wallarooapi/internal/topology"
)

// timeMs returns the time of a payload: that of the row's column which the source of Spark names, else the test's. Other SQL than the name
// of a column is known to Spark alone.
func (w *writer) timeMs(payload []byte) int64 {
	var row map[string]any
	edge, ok := w.source.Edge.(*topology.Spark)
	if ok && edge.Value == "*" {
		_ = json.Unmarshal(payload, &row) // the decoder finds what is wrong with it
	}
	for name, value := range row {
		if strings.EqualFold(name, strings.Trim(edge.Timestamp, "`")) {
			switch value := value.(type) {
			case nil:
				return calendar.FirstMs - 1 // as Spark's rows have it: windows and timers report it
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
