package main

import (
	"testing"

	"wallarooapi/wallarootest"
)

// Tests run in this process, without Spark: go test ./...
func TestWordsAreCounted(t *testing.T) {
	app := wallarootest.New(t, setup(nil))
	app.Send("lines", "My my") // only words of one key are in order
	wallarootest.Equal(t, app.Lines("127.0.0.1:7002"), []string{"my 1", "my 2"})
	wallarootest.Equal(t, wallarootest.State[total](app, "count", "my"), total{2})
}
