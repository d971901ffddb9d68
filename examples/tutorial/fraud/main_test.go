package main

import (
	"testing"

	"wallarooapi/wallarootest"
)

const ledger, refusals = "127.0.0.1:7002", "127.0.0.1:7003"

func TestPayments(t *testing.T) {
	for _, test := range []struct {
		name            string
		sent            []any
		booked, refused []string
	}{
		{"far above the average", []any{"ada 10", "ada 20", "ada 30", "ada 101", "ada 100"},
			[]string{"ada 10", "ada 30", "ada 60", "ada 160"}, []string{"ada refused 101"}},
		{"a new card has no average", []any{"ada 1", "ada 1", "ada 1", "bob 1000"},
			[]string{"ada 1", "ada 2", "ada 3", "bob 1000"}, []string{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			app := wallarootest.New(t, setup(nil))
			app.Send("payments", test.sent...)
			wallarootest.Equal(t, app.Lines(ledger), test.booked)
			wallarootest.Equal(t, app.Lines(refusals), test.refused)
		})
	}
}

func TestAnUnreadablePaymentIsADeadLetter(t *testing.T) {
	app := wallarootest.New(t, setup(nil))
	app.Send("payments", "ada ten", "ada 10")
	letters := app.DeadLetters()
	if len(letters) != 1 || letters[0].Code != "C505" {
		t.Fatal(letters)
	}
	wallarootest.Equal(t, app.Lines(ledger), []string{"ada 10"})
}
