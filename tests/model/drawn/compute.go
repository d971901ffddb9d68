package main

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	wa "wallarooapi"
)

// What follows is model/compute.py once more.
const (
	modulus = 1_000_003
	mark    = 256
	probe   = 1_000_000
)

var codecs = map[string]string{"text": "string", "number": "int64", "struct": "json", "proto": "protobuf:google.protobuf.Struct"}

var errTold = errors.New("told to fail")

// Item is a message; a structure is its second form besides this one.
type Item struct {
	ID    int64 `json:"id"`
	Key   int64 `json:"key"`
	Value int64 `json:"value"`
}

// part is a step, a source or a sink, as it is described.
type part struct {
	Op     string `json:"op"`
	Inputs []int  `json:"inputs"`
	Form   string `json:"form"`
	Takes  string `json:"takes"`
	Remote bool   `json:"remote"`
	State  string `json:"state"`
	By     int64  `json:"by"`
	N      int64  `json:"n"`
	Mod    int64  `json:"mod"`
	Rest   int64  `json:"rest"`
	Shift  int64  `json:"shift"`
	Keep   int    `json:"keep"`
	Size   int    `json:"size"`
	Ms     int64  `json:"ms"`
	TTL    int64  `json:"ttl"`
	End    int64  `json:"end"`
	Name   string `json:"name"` // of an output

	Timers []timer `json:"timers"`

	Outputs []struct {
		Name string `json:"name"`
		Form string `json:"form"`
		Mod  int64  `json:"mod"`
		Rest int64  `json:"rest"`
	} `json:"outputs"`

	Fail *struct {
		When string `json:"when"`
		Mod  int64  `json:"mod"`
		Rest int64  `json:"rest"`
	} `json:"fail"`
}

type application struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	API     string `json:"api"`
	Other   bool   `json:"other"`
	Program string `json:"program"`
	Sources []part `json:"sources"`
	Steps   []part `json:"steps"`
	Sinks   []part `json:"sinks"`
}

func toForm(i Item, form string) any {
	switch form {
	case "text":
		return fmt.Sprintf("%d %d %d", i.ID, i.Key, i.Value)
	case "number":
		return i.ID<<36 | i.Key<<24 | i.Value
	case "struct":
		return &i
	}
	made, err := structpb.NewStruct(map[string]any{"id": i.ID, "key": i.Key, "value": i.Value})
	if err != nil {
		panic(err)
	}
	return made
}

func itemOf(message any) Item {
	switch m := message.(type) {
	case string:
		var i Item
		if _, err := fmt.Sscanf(m, "%d %d %d", &i.ID, &i.Key, &i.Value); err != nil {
			panic(err)
		}
		return i
	case int64:
		return Item{m >> 36, m >> 24 & 0xFFF, m & 0xFFFFFF}
	case *Item:
		return *m
	case Item:
		return m
	case *structpb.Struct:
		number := func(name string) int64 { return int64(m.Fields[name].GetNumberValue()) }
		return Item{number("id"), number("key"), number("value")}
	case map[string]any: // of codec json
		number := func(name string) int64 { return m[name].(int64) }
		return Item{number("id"), number("key"), number("value")}
	}
	panic(fmt.Sprintf("no item: %T", message))
}

func (p *part) fails(i Item, when string) bool {
	return p.Fail != nil && i.ID < probe && p.Fail.When == when && (i.ID+i.Value)%p.Fail.Mod == p.Fail.Rest
}

// given returns a message as it leaves a step.
func (p *part) given(i Item) any {
	for _, output := range p.Outputs {
		if i.Value%output.Mod == output.Rest {
			return wa.Output{Name: output.Name, Value: toForm(i, output.Form)}
		}
	}
	return toForm(i, p.Form)
}

func (p *part) compute(i Item) ([]Item, error) {
	if p.fails(i, "before") {
		return nil, errTold
	}
	switch p.Op {
	case "add":
		i.Value = (i.Value + p.By) % modulus
	case "split":
		var made []Item
		for n := range p.N {
			made = append(made, Item{i.ID, i.Key, (i.Value*p.N + n) % modulus})
		}
		return made, nil
	case "filter":
		if i.ID < probe && i.Value%p.Mod == p.Rest {
			return nil, nil
		}
	case "rekey":
		i.Key = (i.Value + p.Shift) % p.Mod
	case "mark":
		i.Key += mark * p.End
	}
	return []Item{i}, nil
}

// State is what a key has.
type State struct {
	Count, Total int64
	Recent       []int64
}

func (p *part) update(i Item, s *State) ([]Item, error) {
	if p.fails(i, "before") {
		return nil, errTold
	}
	if p.Op == "tally" && i.ID >= probe {
		i.Value = s.Total
		return []Item{i}, nil
	}
	s.Count++
	s.Total = (s.Total + i.Value) % modulus
	s.Recent = append(s.Recent, i.Value)
	s.Recent = s.Recent[max(0, len(s.Recent)-p.Keep):]
	if p.fails(i, "after") {
		return nil, errTold
	}
	if p.Op == "tally" {
		return []Item{i}, nil
	}
	value := s.Total*31 + s.Count
	for _, each := range s.Recent {
		value += each
	}
	var made []Item
	for n := range max(1, p.N) {
		made = append(made, Item{i.ID, i.Key, (value%modulus + n) % modulus})
	}
	return made, nil
}

// Track is what a key of a step with times has.
type Track struct{ ID, Key, Count, Total int64 }

// timer is what is done to a timer: it is due after so many milliseconds, or deleted.
type timer struct {
	Name string `json:"name"`
	Ms   int64  `json:"ms"`
}

const deleted = -1

func (p *part) track(i Item, s *Track) (done []timer, made Item, err error) {
	if p.fails(i, "before") {
		return nil, i, errTold
	}
	s.ID, s.Key = i.ID, i.Key
	s.Count++
	s.Total = (s.Total*7 + i.Value) % modulus
	if p.fails(i, "after") {
		return nil, i, errTold
	}
	for at, each := range p.Timers {
		switch (i.Value + int64(at)) % 4 {
		case 0:
		case 1:
			done = append(done, timer{each.Name, deleted})
		default:
			done = append(done, each)
		}
	}
	i.Value = (s.Total + s.Count) % modulus
	return done, i, nil
}

func (p *part) fire(name string, s *Track) (done []timer, made []Item, deletes bool, err error) {
	s.Total = (s.Total*5 + int64(len(name))) % modulus
	if s.Total%7 == 0 {
		return nil, nil, false, errTold
	}
	if name == "again" {
		for at, each := range p.Timers {
			if (s.Total+int64(at))%2 == 1 {
				done = append(done, each)
			}
		}
		for _, each := range p.Timers {
			if s.Total%3 == 0 && each.Name == "end" {
				done = append(done, timer{each.Name, deleted})
			}
		}
	}
	if s.Total%5 != 0 {
		made = append(made, Item{s.ID % probe, s.Key, s.Total})
	}
	return done, made, name == "end" && s.Total%3 == 0, nil
}

// Pane is the accumulator of a window.
type Pane struct{ ID, Key, Total, Count int64 }

func (p *part) gather(i Item, a Pane) Pane {
	if p.fails(i, "before") {
		panic(errTold)
	}
	return Pane{i.ID, i.Key, (a.Total*7 + i.Value) % modulus, a.Count + 1}
}

func combine(earlier, later Pane) Pane {
	joined := later
	if later.Count == 0 {
		joined = earlier
	}
	power := int64(1)
	for range later.Count {
		power = power * 7 % modulus
	}
	joined.Total = (earlier.Total*power + later.Total) % modulus
	joined.Count = earlier.Count + later.Count
	return joined
}

func (p *part) line(i Item) ([]byte, error) {
	if p.fails(i, "before") {
		return nil, errTold
	}
	return fmt.Appendf(nil, "%d %d %d\n", i.ID, i.Key, i.Value), nil
}

func keyOf(i Item) string { return fmt.Sprintf("k%d", i.Key) }
