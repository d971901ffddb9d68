package main

import (
	"testing"

	"wallarooapi/wallarootest"
)

func TestErrorsAreCountedByService(t *testing.T) {
	app := wallarootest.New(t, setup(nil))
	app.Send("logs", "web ERROR no disk", "web INFO fine", "web ERROR no disk")
	records := app.Records("Errors")
	if len(records) != 2 || string(records[1].Key) != "web" || string(records[1].Value) != "2" {
		t.Fatal(records)
	}
}
