package wallarootest

import (
	"encoding/json"
	"strings"
	"time"

	"wallarooapi/internal/calendar"
	"wallarooapi/internal/topology"
)

// timeMs returns the time of a message: the value of the time column in its payload, or the test's time if the source
// has no such column. SQL other than the name of a column has no effect, because only Spark can evaluate it.
func (w *writer) timeMs(payload []byte) int64 {
	var row map[string]any
	edge, ok := w.source.Edge.(*topology.Spark)
	if ok && edge.Value == "*" && edge.Timestamp != "" {
		_ = json.Unmarshal(payload, &row) // the decoder reports invalid JSON
	}
	for name, value := range row {
		if strings.EqualFold(name, strings.Trim(edge.Timestamp, "`")) {
			switch value := value.(type) {
			case nil:
				return calendar.FirstMs - 1 // invalid, as null in a row of Spark; windows and timers report it
			case float64:
				return int64(value)
			case string:
				for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
					if at, err := time.Parse(layout, value); err == nil {
						return at.UnixMilli()
					}
				}
			}
		}
	}
	return w.app.now.UnixMilli()
}
