// The Go program that declares whatever application its arguments describe; see model/application.py.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	wa "wallarooapi"
	"wallarooapi/stream"
	"wallarooapi/worker"
)

type document interface{ ToJson() string }

func main() {
	if slices.Equal(os.Args[1:], []string{"memory"}) {
		memory()
		return
	}
	worker.Main(setup)
}

func setup(args []string) document { return read(args).declare() }

func read(args []string) *application {
	described := &application{}
	if err := json.Unmarshal([]byte(args[slices.Index(args, "--described")+1]), described); err != nil {
		panic(err)
	}
	return described
}

func (d *application) declare() document {
	switch {
	case d.Role == "library":
		return d.library()
	case d.API == "builder":
		return d.builder()
	}
	return d.graph()
}

func address(first, number int) string { return fmt.Sprintf("127.0.0.1:%d", first+number) }

func (p *part) name(number int) string { return fmt.Sprintf("%s%d", p.Op, number) }

func (p *part) hasState() bool { return p.Op == "total" || p.Op == "fan" || p.Op == "tally" }

// library offers the steps that the other program has.
func (d *application) library() *stream.Library {
	made := stream.NewLibrary()
	for number := range d.Steps {
		p := &d.Steps[number]
		if !p.Remote || p.Op == "output" {
			continue
		}
		name, in, out, outputs := p.name(number), codecs[p.Takes], codecs[p.Form], p.outputs()
		switch {
		case p.Op == "split":
			stream.OfferFlatMap(made, name, p.flatMap, in, out, outputs...)
		case p.Op == "fan":
			stream.OfferFlatMapState(made, name, p.flatMapState, in, out, outputs...)
		case p.hasState():
			stream.OfferMapState(made, name, p.mapState, in, out, outputs...)
		default:
			stream.OfferMap(made, name, p.mapOne, in, out, outputs...)
		}
	}
	return made
}

// graph declares the application with streams that branch and merge.
func (d *application) graph() *stream.Application {
	app := stream.New(d.Name)
	var streams []stream.Stream[any]
	merged := func(inputs []int) stream.Stream[any] {
		var found []stream.Stream[any]
		for _, at := range inputs {
			found = append(found, streams[at])
		}
		if len(found) == 1 {
			return found[0]
		}
		return stream.Merge(found[0], found[1:]...)
	}
	for number := range d.Sources {
		source := stream.TCPSource(address(9000, number), stream.U32BE, d.Sources[number].decode)
		streams = append(streams, stream.From(app, fmt.Sprintf("in%d", number), source))
	}
	for number := range d.Steps {
		p := &d.Steps[number]
		if p.Op == "output" {
			streams = append(streams, stream.FromOutput(merged(p.Inputs), stream.NewOutput[any](p.Name)))
			continue
		}
		streams = append(streams, d.step(merged(p.Inputs), p, p.name(number)))
	}
	var sinks []stream.Sink[any]
	for number := range d.Sinks {
		sinks = append(sinks, stream.TCPSink(address(10000, number), d.Sinks[number].encode))
	}
	merged(d.Sinks[0].Inputs).To(sinks...)
	return app
}

func (d *application) step(s stream.Stream[any], p *part, name string) stream.Stream[any] {
	windows := stream.Aggregation[any, Pane, any]{
		Name: name, Initial: func() Pane { return Pane{} }, Combine: combine, OutputTo: p.output, Outputs: p.outputs(),
		Update: func(in any, a Pane) Pane { return p.gather(itemOf(in), a) },
	}
	switch {
	case p.Remote:
		return stream.Through[any](s, d.remote(p, name))
	case p.Op == "key_by":
		return stream.KeyBy(s, name, func(in any) string {
			item := itemOf(in)
			if _, err := p.compute(item); err != nil {
				panic(err)
			}
			return keyOf(item)
		})
	case p.Op == "collect":
		return stream.Collect(s)
	case p.Op == "count":
		return stream.CountWindow(s, stream.Count{Size: p.Size}, windows)
	case p.Op == "range":
		return stream.RangeWindow(s, stream.Range{Length: time.Duration(p.Ms) * time.Millisecond}, windows)
	case p.Op == "session":
		return stream.SessionWindow(s, stream.Session{Gap: time.Duration(p.Ms) * time.Millisecond}, windows)
	case p.Op == "timed":
		return p.withTimes(s, name)
	case p.Op == "split":
		return stream.FlatMap(s, name, p.flatMap, p.outputs()...)
	case p.Op == "fan":
		return stream.FlatMapState(s, name, p.flatMapState, p.options()...)
	case p.hasState():
		return stream.MapState(s, name, p.mapState, p.options()...)
	}
	return stream.Map(s, name, p.mapOne, p.outputs()...)
}

// withTimes returns a step whose state ends, or that has timers.
func (p *part) withTimes(s stream.Stream[any], name string) stream.Stream[any] {
	step := stream.MapState(s, name, func(ctx context.Context, in any, state *Track) (any, error) {
		item := itemOf(in)
		done, made, err := p.track(item, state)
		change(ctx, done)
		return first(p.formed(ctx, item, []Item{made}, err))
	}, p.options()...)
	for _, each := range p.Timers {
		stream.OnTimer(step, each.Name, func(ctx context.Context, timer *stream.Timer, state *Track) (any, error) {
			done, made, deletes, err := p.fire(timer.Name, state)
			if change(ctx, done); deletes {
				timer.DeleteState()
			}
			return first(p.formed(ctx, Item{}, made, err))
		})
	}
	return step
}

func change(ctx context.Context, done []timer) {
	for _, each := range done {
		if each.Ms == deleted {
			stream.DeleteTimer(ctx, each.Name)
		} else {
			stream.SetTimerAfter(ctx, each.Name, time.Duration(each.Ms)*time.Millisecond)
		}
	}
}

func (d *application) remote(p *part, name string) *wa.RemoteComponent {
	other, in, out := wa.OtherProgram("other", d.Program), codecs[p.Takes], codecs[p.Form]
	var made *wa.RemoteComponent
	switch {
	case p.Op == "split":
		made = other.ComputationMulti(name, in, out)
	case p.Op == "fan":
		made = other.StateComputationMulti(name, in, out)
	case p.hasState():
		made = other.StateComputation(name, in, out)
	default:
		made = other.Computation(name, in, out)
	}
	for _, output := range p.Outputs {
		made = made.WithOutput(output.Name, codecs[output.Form])
	}
	return made
}

func (p *part) outputs() (made []stream.Outputs) {
	for _, output := range p.Outputs {
		handle := stream.NewOutput[any](output.Name)
		if p.Remote {
			handle = handle.As(codecs[output.Form])
		}
		made = append(made, handle)
	}
	return made
}

func (p *part) options() (made []stream.StateOption) {
	for _, output := range p.outputs() {
		made = append(made, output)
	}
	if p.TTL > 0 {
		made = append(made, stream.TTL(time.Duration(p.TTL)*time.Millisecond))
	}
	return made
}

func (p *part) decode(payload []byte) (any, error) {
	if string(payload) == "skip" {
		return nil, stream.ErrSkip
	}
	var i Item
	if _, err := fmt.Sscanf(string(payload), "%d %d %d", &i.ID, &i.Key, &i.Value); err != nil {
		return nil, err
	}
	return toForm(i, p.Form), nil
}

func (p *part) encode(message any) ([]byte, error) { return p.line(itemOf(message)) }

// each returns what a step gives; one that fails emits to all of its outputs before.
func (p *part) each(i Item, items []Item, err error) (made []any) {
	if err != nil {
		for _, output := range p.Outputs {
			made = append(made, wa.Output{Name: output.Name, Value: toForm(i, output.Form)})
		}
	}
	for _, item := range items {
		made = append(made, p.given(item))
	}
	return made
}

// formed emits what is for outputs and returns the rest.
func (p *part) formed(ctx context.Context, i Item, items []Item, err error) (made []any, _ error) {
	for _, message := range p.each(i, items, err) {
		if output, is := message.(wa.Output); is {
			stream.NewOutput[any](output.Name).Emit(ctx, output.Value)
		} else {
			made = append(made, message)
		}
	}
	return made, err
}

func first(made []any, err error) (any, error) {
	if err == nil && len(made) == 0 {
		return nil, stream.ErrSkip
	}
	if err != nil {
		return nil, err
	}
	return made[0], nil
}

func (p *part) flatMap(ctx context.Context, in any) ([]any, error) {
	item := itemOf(in)
	made, err := p.compute(item)
	return p.formed(ctx, item, made, err)
}

func (p *part) mapOne(ctx context.Context, in any) (any, error) { return first(p.flatMap(ctx, in)) }

func (p *part) flatMapState(ctx context.Context, in any, s *State) ([]any, error) {
	item := itemOf(in)
	made, err := p.update(item, s)
	return p.formed(ctx, item, made, err)
}

func (p *part) mapState(ctx context.Context, in any, s *State) (any, error) {
	return first(p.flatMapState(ctx, in, s))
}

func (p *part) output(ctx context.Context, _ string, a Pane) (any, error) {
	if a.Count == 0 {
		return nil, stream.ErrSkip
	}
	item := Item{a.ID % probe, a.Key, (a.Total + a.Count) % modulus}
	return first(p.formed(ctx, item, []Item{item}, nil))
}
