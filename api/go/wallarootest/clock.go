package wallarootest

import (
	"time"

	"wallarooapi/internal/topology"
)

// Advance lets time pass: windows get the ticks that a gateway would send, at most 1000 of them, and one at the end. Each is a
// micro-batch.
func (a *App) Advance(d time.Duration) {
	a.t.Helper()
	a.goesOn("Advance")
	if d < 0 {
		a.t.Fatalf("wallarootest: time cannot go back; Advance got %v", d)
		return
	}
	interval := a.tickInterval()
	if interval == 0 {
		a.now = a.now.Add(d)
		return
	}
	interval = max(interval, d/mostTicks)
	end := a.now.Add(d)
	var ticks [][]byte
	for next := a.now.Truncate(interval).Add(interval); ; next = next.Add(interval) {
		if next.After(end) {
			next = end
		}
		tick, err := a.journal.Tick(next.UnixMilli())
		if err != nil {
			a.t.Fatalf("wallarootest: %v", err)
			return
		}
		ticks = append(ticks, tick)
		if !next.Before(end) {
			break
		}
	}
	a.now = end
	a.take(ticks...)
}

const (
	leastTick = 100 * time.Millisecond
	mostTick  = time.Second
	mostTicks = 1000 // of one call of Advance
)

// tickInterval returns how often a gateway reports the windows the time: twice in the shortest slide or flush; 0: there are none.
func (a *App) tickInterval() time.Duration {
	shortest := time.Duration(0)
	for step := range a.declared.Steps() {
		span := 0
		switch window := step.Window.(type) {
		case *topology.RangeWindow:
			span = window.SlideMs
		case *topology.CountWindow:
			span = window.FlushMs
		default:
			continue
		}
		if each := time.Duration(span) * time.Millisecond; shortest == 0 || each < shortest {
			shortest = each
		}
	}
	if shortest == 0 {
		return 0
	}
	return max(leastTick, min(mostTick, shortest/2))
}
