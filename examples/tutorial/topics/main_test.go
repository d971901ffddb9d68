package main

import (
	"fmt"
	"testing"

	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

func read(customer, value string) stream.Record {
	return stream.Record{Key: []byte(customer), Value: []byte(value)}
}

func ordered(customer string, cents int) stream.Record {
	return read(customer, fmt.Sprintf(`{"customer": %q, "cents": %d}`, customer, cents))
}

func TestEachCustomerHasATotal(t *testing.T) {
	app := wallarootest.New(t, setup(nil))
	app.Send("orders", ordered("ann", 300), ordered("bob", 20), ordered("ann", 50), read("ann", "free"))
	totals := app.Records("Totals")
	if len(totals) != 3 || string(totals[2].Key) != "ann" || string(totals[2].Value) != "350" {
		t.Fatal(totals)
	}
	if letters := app.DeadLetters(); len(letters) != 1 || letters[0].Step != "orders" {
		t.Fatal(letters)
	}
}
