package main

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	app "wallarooapi/application"
)

// builder declares the application with pipelines that share states.
func (d *application) builder() *app.Application {
	made := app.MakeApplication(d.Name)
	for number := range d.Sources {
		source := app.MakeTCPSourceConfig("127.0.0.1", strconv.Itoa(9000+number), &decoder{&d.Sources[number]})
		d.branch(made.NewPipeline(fmt.Sprintf("in%d", number), source), number)
	}
	return made
}

// branch declares the steps and sinks after a source or an output, and the branches that begin in them.
func (d *application) branch(pipeline *app.PipelineBuilder, end int) {
	for at := range d.Steps {
		p := &d.Steps[at]
		if !slices.Equal(p.Inputs, []int{end}) || p.Op == "output" {
			continue
		}
		end = len(d.Sources) + at
		c := &component{p, p.name(at)}
		switch {
		case p.Op == "fan":
			pipeline = pipeline.ToStatePartitionMultiWithKeys(statefulMulti{c}, states{}, p.State, byKey{}, nil)
		case p.hasState():
			pipeline = pipeline.ToStatePartitionWithKeys(stateful{c}, states{}, p.State, byKey{}, nil)
		case p.Op == "split":
			pipeline = pipeline.ToMulti(multi{c})
		default:
			pipeline = pipeline.To(single{c})
		}
		for out := range d.Steps {
			if output := &d.Steps[out]; output.Op == "output" && slices.Equal(output.Inputs, []int{end}) {
				d.branch(pipeline.Output(output.Name), len(d.Sources)+out)
			}
		}
	}
	var sinks []app.SinkConfig
	for at := range d.Sinks {
		if slices.Equal(d.Sinks[at].Inputs, []int{end}) {
			sinks = append(sinks, app.MakeTCPSinkConfig("127.0.0.1", strconv.Itoa(10000+at), &encoder{&d.Sinks[at]}))
		}
	}
	if len(sinks) == 0 {
		pipeline.Done()
	} else {
		pipeline.ToSinks(sinks...)
	}
}

type decoder struct{ *part }

func (*decoder) HeaderLength() uint64          { return 4 }
func (*decoder) PayloadLength(b []byte) uint64 { return uint64(binary.BigEndian.Uint32(b)) }

func (d *decoder) Decode(b []byte) any {
	if string(b) == "skip" {
		return nil
	}
	return must(d.decode(b))
}

type encoder struct{ *part }

func (e *encoder) Encode(message any) []byte { return must(e.encode(message)) }

func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}

type states struct{}

func (states) Build() any { return &State{} }

type byKey struct{}

func (byKey) Partition(message any) []byte { return []byte(keyOf(itemOf(message))) }

type component struct {
	*part
	called string
}

func (c *component) Name() string { return c.called }

// Outputs names the outputs of a component.
func (c *component) Outputs() (names []string) {
	for _, output := range c.part.Outputs {
		names = append(names, output.Name)
	}
	return names
}

func (c *component) computed(message any) []any {
	item := itemOf(message)
	made, err := c.compute(item)
	return must(c.each(item, made, err), err)
}

func (c *component) updated(message, state any) []any {
	item := itemOf(message)
	made, err := c.update(item, state.(*State))
	return must(c.each(item, made, err), err)
}

type multi struct{ *component }

func (m multi) Build() any { return m }

func (m multi) Compute(message any) []any { return m.computed(message) }

type single struct{ *component }

func (s single) Build() any { return s }

func (s single) Compute(message any) any {
	made := s.computed(message)
	if len(made) == 0 {
		return nil
	}
	return made[0]
}

type stateful struct{ *component }

func (s stateful) Compute(message, state any) (any, bool) { return s.updated(message, state)[0], true }

type statefulMulti struct{ *component }

func (s statefulMulti) Compute(message, state any) ([]any, bool) {
	return s.updated(message, state), true
}
