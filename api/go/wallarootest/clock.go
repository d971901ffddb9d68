package wallarootest

import (
	"math"
	"time"

	"wallarooapi/internal/topology"
)

// Advance moves the time of the application forward by d. If the application has windows, timers or a TTL, it gets
// ticks at the interval of a run: one at the old time, one at the new time, and at most 1000 between them. Advance
// repeats the last tick as long as timers fire. Each tick is a micro-batch.
func (a *App) Advance(d time.Duration) {
	a.t.Helper()
	a.goesOn("Advance")
	if d < 0 {
		a.t.Fatalf("wallarootest: time cannot go back; Advance got %v", d)
		return
	}
	end := a.now.Add(d)
	interval := a.tickInterval()
	if interval == 0 {
		a.now = end
		return
	}
	a.engine.Fired()
	a.tick(a.now)
	interval = max(interval, d/mostTicks)
	for next := a.now.Truncate(interval).Add(interval); next.Before(end); next = next.Add(interval) {
		a.tick(next)
	}
	a.now = end
	a.tick(end)
	a.flush()
	most := min(mostAgain, d/time.Millisecond+mostTicks)
	for again := time.Duration(0); a.engine.Fired(); again++ {
		if again == most {
			a.t.Fatalf("wallarootest: after Advance(%v), timers still fire after %d more ticks of this time: one sets itself to a "+
				"time that is over; let it set itself to a later time, or not in each run", d, most)
			return
		}
		a.tick(end)
		a.flush()
	}
}

// tick processes a micro-batch with a tick, so that the application learns the time.
func (a *App) tick(at time.Time) {
	a.t.Helper()
	tick, err := a.journal.Tick(at.UnixMilli())
	if err != nil {
		a.t.Fatalf("wallarootest: %v", err)
		return
	}
	a.take(tick)
}

const (
	leastTick = 100 * time.Millisecond
	mostTick  = time.Second
	mostTicks = 1000   // largest number of ticks in one call of Advance
	mostAgain = 10_000 // largest number of repetitions of the last tick

	timerSlide = 500 // accuracy of timers, in milliseconds
)

// tickInterval returns the time between two ticks of a run: half of the shortest slide, gap, flush or TTL, or of the
// accuracy of timers. The result is 0 if no step needs ticks.
func (a *App) tickInterval() time.Duration {
	shortest := math.MaxInt
	for step := range a.declared.Steps() {
		if step.State != nil && step.State.TTLMs > 0 {
			shortest = min(shortest, step.State.TTLMs)
		}
		if len(step.Timers) > 0 {
			shortest = min(shortest, timerSlide)
		}
		switch window := step.Window.(type) {
		case *topology.RangeWindow:
			shortest = min(shortest, window.SlideMs)
		case *topology.SessionWindow:
			shortest = min(shortest, window.GapMs)
		case *topology.CountWindow:
			shortest = min(shortest, window.FlushMs)
		}
	}
	if shortest == math.MaxInt {
		return 0
	}
	return max(leastTick, min(mostTick, time.Duration(min(shortest, 1<<20))*time.Millisecond/2))
}
