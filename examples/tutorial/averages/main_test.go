package main

import (
	"fmt"
	"testing"

	"wallarooapi/wallarootest"
)

// at returns a reading of the roof as it comes over TCP.
func at(second, degrees int) string {
	return fmt.Sprintf("%d roof %d", 1_700_000_000_000+1000*second, degrees)
}

func TestAWindowIsEmittedOnceTimeHasPassedItsEnd(t *testing.T) {
	app := wallarootest.New(t, setup(nil))
	app.Send("readings", at(0, 10), at(9, 20), at(19, 99))
	wallarootest.Equal(t, app.Lines("Averages"), []string{})
	app.Send("readings", at(20, 99))
	wallarootest.Equal(t, app.Lines("Averages"), []string{"roof 15.0"})
}

func TestALateReadingCountsWhereItBelongs(t *testing.T) {
	app := wallarootest.New(t, setup(nil))
	app.Send("readings", at(0, 10), at(19, 99), at(8, 30), at(20, 99))
	wallarootest.Equal(t, app.Lines("Averages"), []string{"roof 20.0"})
}
