package goka

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lovoo/goka/tester"

	"wallarooapi/goka/codec"
)

func named(group Group, edges ...Edge) *GroupGraph {
	count := func(ctx Context, _ any) { ctx.SetValue(int64(1)) }
	return DefineGroup(group, append(edges, Input("in", new(codec.String), count), Persist(new(codec.Int64)))...)
}

func TestProcessorsThatCannotRunTogether(t *testing.T) {
	kafka, none := tester.New(t), func(Context, any) {}
	one := onTester(t, kafka, named("a", Visitor("v", none)))
	elsewhere := onTester(t, kafka, named("b"))
	elsewhere.brokers = []string{"k:9092"}
	tested, err := NewProcessor(nil, named("d"), WithTester(kafka))
	if err != nil {
		t.Fatal(err)
	}
	for want, all := range map[string][]*Processor{
		"no processors to run together": nil,
		"one of the processors to run together is nil: NewProcessor has failed for it":   {one, nil},
		"a and b do not run together: their brok":                                        {one, elsewhere},
		"d and a do not run together: d has Goka's tester, a has none; give all of them": {tested, one},
		"a and d do not run together: d has Goka's tester, a has none; give all":         {one, tested},
		"two processors of a do not run together":                                        {one, onTester(t, kafka, named("a"))},
		"both have a visitor v": {one, onTester(t, kafka, named("c", Visitor("v", none)))},
	} {
		if err := RunTogether(context.Background(), all...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v instead of %s", err, want)
		}
	}
}

// TestTheOrderOfBrokersDoesNotMatter checks that processors with the same brokers in another order have the same
// checkpoint, and run together.
func TestTheOrderOfBrokersDoesNotMatter(t *testing.T) {
	kafka := tester.New(t)
	one, other := onTester(t, kafka, named("a")), onTester(t, kafka, named("b"))
	one.brokers, other.brokers = []string{"k:1", "k:2"}, []string{"k:2", "k:1"}
	if err := checkTogether([]*Processor{one, other}); err != nil {
		t.Error(err)
	}
	if checkpointOf("a", one.brokers) != checkpointOf("a", other.brokers) {
		t.Error("another checkpoint")
	}
}

// TestProcessorsTogetherUnderTheTester runs two groups on Goka's own processors.
func TestProcessorsTogetherUnderTheTester(t *testing.T) {
	kafka := tester.New(t)
	var all []*Processor
	for _, group := range []Group{"a", "b"} {
		made, err := NewProcessor(nil, named(group), WithTester(kafka))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, made)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- RunTogether(ctx, all...) }()
	kafka.Consume("in", "k", "x")
	if a, b := kafka.TableValue("a-table", "k"), kafka.TableValue("b-table", "k"); a != int64(1) || b != int64(1) {
		t.Errorf("%v, %v", a, b)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestOneRuntimeForSeveralProcessors replaces the runtime by a script that prints its arguments. All processors have
// the same checkpoint, the same states and the same end.
func TestOneRuntimeForSeveralProcessors(t *testing.T) {
	directory := t.TempDir()
	script, calls := filepath.Join(directory, "wallaroo"), filepath.Join(directory, "calls")
	text := "#!/bin/sh\ncat \"$2\" >>" + calls + "\necho '" + readyLine + "'\nsleep 1\necho R611 the query stopped\nexit 4\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	kafka := tester.New(t)
	a, b := onTester(t, kafka, named("a")), onTester(t, kafka, named("b"))
	t.Setenv("WALLAROO", script)
	ended := make(chan error, 1)
	go func() { ended <- RunTogether(context.Background(), a, b) }()
	if err := errors.Join(a.WaitForReady(), b.WaitForReady()); err != nil || !a.Recovered() || !b.Recovered() {
		t.Errorf("%v; %v, %v", err, a.Recovered(), b.Recovered())
	}
	err := <-ended
	if err == nil || !strings.Contains(err.Error(), "R611 the query stopped") || a.Error() != err || b.Error() != err {
		t.Errorf("%v, %v, %v", err, a.Error(), b.Error())
	}
	if a.Checkpoint() != b.Checkpoint() || a.Checkpoint() == checkpointOf("a", a.brokers) || !a.StateReader().IsState(ProcStateStopped) {
		t.Errorf("%s, %s", a.Checkpoint(), b.Checkpoint())
	}
	said, err := os.ReadFile(calls)
	if err != nil || !strings.Contains(string(said), `"name": "a + b"`) || !strings.Contains(string(said), `"name": "b-table"`) {
		t.Errorf("%v: %s", err, said)
	}
	if err := RunTogether(context.Background(), a, b); err == nil || !strings.Contains(err.Error(), "can only be called once") {
		t.Error(err)
	}
}

// TestContinueGoka checks that the command of the runtime has the option --continue-goka. A script in place of the
// runtime prints its arguments.
func TestContinueGoka(t *testing.T) {
	script := filepath.Join(t.TempDir(), "wallaroo")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"R611 $*\"\nexit 4\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	processor := onTester(t, tester.New(t), named("a"), WithContinueGoka(), WithRunArguments("--quiet"))
	t.Setenv("WALLAROO", script)
	err := processor.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), " --continue-goka --quiet") {
		t.Error(err)
	}
}
