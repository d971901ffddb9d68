package wallarootest

import (
	"cmp"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/memory"
	pb "wallarooapi/internal/workerpb"
)

const failPolicy = "fail"

// DeadLetter is a message on which a step, source or sink failed.
type DeadLetter struct {
	// Step is the name of the step, source or sink.
	Step string
	// Code is the code of the error, e.g. C501 if the step panicked or returned an error.
	Code string
	// Reason is the text of the error or panic.
	Reason string
	// Input is the message that the step got, as a text of at most 200 characters.
	Input string
	// Key is the message's key, if the step has state.
	Key string
	// Message is the number of the source message from which Input derives. All sent messages are numbered from 0.
	Message int
}

// letters holds the dead letters of a test and the error that has stopped its application, and whether the test has
// requested them.
type letters struct {
	all      []*pb.DeadLetter
	seen     int   // number of dead letters that the test has requested
	stopped  error // the error that stopped the application
	isLooked bool  // whether the test has requested the error, or has failed because of it
}

// DeadLetters returns the dead letters since the beginning of the test. A test with dead letters that does not call it
// fails.
func (a *App) DeadLetters() []DeadLetter {
	a.t.Helper()
	a.flush()
	shown := []DeadLetter{}
	for _, each := range a.letters.all {
		shown = append(shown, DeadLetter{
			Step: each.GetStep(), Code: each.GetCode(), Reason: each.GetError(), Input: each.GetPreview(), Key: string(each.GetKey()),
			Message: int(each.GetSequence()),
		})
	}
	a.letters.seen = len(shown)
	return shown
}

// Failure returns the error (R611) that stopped the application, or nil if the application runs. A failure of a source,
// step or sink with the policy "fail" (see OnError) stops the application. Nothing of that micro-batch is published. A
// test whose application stops must call Failure, and cannot send more messages.
func (a *App) Failure() error {
	a.t.Helper()
	a.flush()
	a.letters.isLooked = true
	return a.letters.stopped
}

// bury stores the dead letters of a micro-batch. If one of them stops the application, bury discards all of them and
// returns false.
func (a *App) bury(messages []memory.Message) bool {
	a.t.Helper()
	var found []*pb.DeadLetter
	var first *pb.DeadLetter
	for _, each := range messages {
		if each.Port != frame.DeadLetterPort {
			continue
		}
		letter := &pb.DeadLetter{}
		if err := proto.Unmarshal(each.Value, letter); err != nil {
			a.t.Fatalf("wallarootest: a dead letter: %v", err)
			return false
		}
		found = append(found, letter)
		if a.policyOf(letter.GetPath()) == failPolicy && (first == nil || letter.GetSequence() < first.GetSequence()) {
			first = letter
		}
	}
	if first == nil {
		a.letters.all = append(a.letters.all, found...)
		return true
	}
	a.pending = nil
	a.letters.stopped = diagnostic.Error{diagnostic.Of("R611", "reason", fmt.Sprintf("%s %s: %s", first.GetCode(), first.GetStep(), first.GetError()),
		"fix", "correct the user code, or give the step the policy dead_letter").With(first.GetTraceback())}
	return false
}

// policyOf returns the error policy of the source, step or sink with a path, or the application's policy if the part
// has none.
func (a *App) policyOf(path string) string {
	policy, parts := "", a.declared.Parts()
	if source := parts.Sources[path]; source != nil {
		policy = source.OnError
	} else if step := parts.Steps[path]; step != nil {
		policy = step.OnError
	} else if sink := parts.Sinks[path]; sink != nil {
		policy = sink.OnError
	}
	return cmp.Or(policy, a.declared.OnError)
}

// goesOn is called at the beginning of each method that needs a running application. It makes the test fail if the
// application has stopped.
func (a *App) goesOn(method string) {
	a.t.Helper()
	if a.letters.stopped != nil {
		a.letters.isLooked = true
		a.t.Fatalf("wallarootest: %s: the application has stopped\n%v", method, a.letters.stopped)
	}
}

// close makes the test fail if it has not requested its dead letters, or the error that stopped its application. If the
// test has failed already, close only logs them.
func (l *letters) close(t T) {
	t.Helper()
	report, unseen := t.Errorf, l.all[l.seen:]
	if t.Failed() {
		report, unseen = t.Logf, l.all
	}
	if l.stopped != nil && !l.isLooked {
		report("wallarootest: the application has stopped, and the test did not call Failure\n%v", l.stopped)
	}
	if len(unseen) > 0 {
		report("wallarootest: dead letters (a test that expects them calls DeadLetters):\n%s", described(unseen))
	}
}

// described returns dead letters as a text, with the lines of their tracebacks.
func described(all []*pb.DeadLetter) string {
	var text strings.Builder
	for _, each := range all {
		fmt.Fprintf(&text, "%s %s: %s; got %s\n", each.GetCode(), each.GetStep(), each.GetError(), each.GetPreview())
		for line := range strings.Lines(each.GetTraceback()) {
			text.WriteString("  | " + line)
		}
	}
	return strings.TrimSuffix(text.String(), "\n")
}
