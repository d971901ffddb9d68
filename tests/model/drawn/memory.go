package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"wallarooapi/wallarootest"
)

// move is one thing that a test does: let time pass, or send to a source.
type move struct {
	AdvanceMs int64 `json:"advance_ms"`
	Source    int
	Messages  []string
}

// found is what an application gave.
type found struct {
	Lines   [][]string
	Letters []wallarootest.DeadLetter
	Error   string
}

// memory runs applications in this process: a line of the input has one, a line of the output what it gave.
func memory() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var asked struct {
			Arguments []string
			Moves     []move
			Seed      *uint64
		}
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		written, err := json.Marshal(inMemory(asked.Arguments, asked.Moves, asked.Seed))
		if err != nil {
			panic(err)
		}
		fmt.Println(string(written))
	}
}

func inMemory(arguments []string, moves []move, seed *uint64) (gave found) {
	t := &tester{}
	defer func() {
		if r := recover(); r != nil && r != t {
			panic(r)
		}
		gave.Error = t.said
	}()
	var options []wallarootest.Option
	if seed != nil {
		options = append(options, wallarootest.Vary(*seed))
	}
	described := read(arguments)
	app := wallarootest.New(t, described.declare(), options...)
	for _, each := range moves {
		if each.AdvanceMs > 0 {
			app.Advance(time.Duration(each.AdvanceMs) * time.Millisecond)
			continue
		}
		var messages []any
		for _, text := range each.Messages {
			messages = append(messages, text)
		}
		app.Send(address(9000, each.Source), messages...)
	}
	for number := range described.Sinks {
		gave.Lines = append(gave.Lines, app.Lines(address(10000, number)))
	}
	gave.Letters = app.DeadLetters()
	t.end()
	return gave
}

// tester is in for a *testing.T; it ends with what is wrong.
type tester struct {
	said string
	ends []func()
}

func (t *tester) Helper()                      {}
func (t *tester) Cleanup(end func())           { t.ends = append(t.ends, end) }
func (t *tester) Failed() bool                 { return t.said != "" }
func (t *tester) Logf(string, ...any)          {}
func (t *tester) Errorf(text string, a ...any) { t.said = fmt.Sprintf(text, a...) }

func (t *tester) Fatalf(text string, a ...any) {
	t.Errorf(text, a...)
	panic(t)
}

func (t *tester) end() {
	for _, end := range t.ends {
		end()
	}
}
