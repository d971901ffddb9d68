package server

import (
	"errors"
	"testing"
)

func TestAnEndFinishesWhatIsAtWorkAndRefusesTheRest(t *testing.T) {
	w, inside, leave, left := newWork(), make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		left <- w.do(func() error {
			close(inside)
			<-leave
			return nil
		})
	}()
	wait(t, "the call", inside)
	w.end()
	w.end()
	if err := w.do(func() error { t.Error("a call began"); return nil }); !errors.Is(err, errEnding) {
		t.Errorf("refused with %v", err)
	}
	select {
	case <-w.idle:
		t.Error("it does not wait for the call in flight")
	default:
	}
	close(leave)
	wait(t, "the end of the call", w.idle)
	if err := <-left; err != nil {
		t.Error(err)
	}
}

func TestAnEndWithoutACallAtWork(t *testing.T) {
	w := newWork()
	if err := w.do(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	w.end()
	wait(t, "the end", w.idle)
}
