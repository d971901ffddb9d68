package plan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/plan"
	"wallarooapi/internal/topology"
	pb "wallarooapi/internal/workerpb"
)

// golden is a topology with the plan that the runtime makes of it. tests/model/plans.py writes the file.
type golden struct {
	Name     string
	Topology struct {
		Name      string
		Pipelines []struct {
			Name    string
			Sources []struct{ Path string }
			Steps   []struct {
				Path, Kind string
				Inputs     []string
				Timers     []string
				Time       string
				Window     *struct{ Kind, Time string }
				State      *struct {
					Name  string
					TTLMs int `json:"ttl_ms"`
					Key   struct{ Kind string }
				}
			}
			Sinks []struct {
				Path   string
				Inputs []string
			}
		}
	}
	Plan struct {
		Codes  []string
		Ports  map[string]uint16
		Levels []struct {
			ID          string
			BucketCount uint32 `json:"bucket_count"`
			Nodes       []struct {
				Path, Kind, State string
				Inputs            []string
				Port              uint32
				StatePort         uint32 `json:"state_port"`
				Timestamps, Keys  bool
				TTLMs             uint64 `json:"ttl_ms"`
				EventTime         bool   `json:"event_time"`
				Timers            []string
				Sessions, Arrival bool
			}
		}
	}
}

func (g *golden) application() *declaration.Application {
	application := &declaration.Application{Name: g.Topology.Name}
	for _, pipeline := range g.Topology.Pipelines {
		read := &declaration.Pipeline{Name: pipeline.Name}
		for _, source := range pipeline.Sources {
			read.Sources = append(read.Sources, &declaration.Source{Path: source.Path})
		}
		for _, step := range pipeline.Steps {
			made := &declaration.Step{Path: step.Path, Kind: step.Kind, Inputs: step.Inputs, Timers: step.Timers, IsEvent: step.Time == "event"}
			if step.State != nil {
				made.State = &declaration.State{Name: step.State.Name, TTLMs: step.State.TTLMs, ByKey: step.State.Key.Kind == "message"}
			}
			switch {
			case step.Window != nil && step.Window.Kind == "session":
				made.Window = &topology.SessionWindow{Time: step.Window.Time}
			case step.Window != nil && step.Window.Kind == "range":
				made.Window = &topology.RangeWindow{Time: step.Window.Time}
			case step.Window != nil:
				made.Window = &topology.CountWindow{}
			}
			read.Steps = append(read.Steps, made)
		}
		for _, sink := range pipeline.Sinks {
			read.Sinks = append(read.Sinks, &declaration.Sink{Path: sink.Path, Inputs: sink.Inputs})
		}
		application.Pipelines = append(application.Pipelines, read)
	}
	return application
}

func (g *golden) text() string {
	var text strings.Builder
	for _, level := range g.Plan.Levels {
		fmt.Fprintln(&text, level.ID, level.BucketCount)
		for _, n := range level.Nodes {
			fmt.Fprintln(&text, n.Path, n.Kind, n.Inputs, n.Port, n.State, n.StatePort, n.Timestamps, n.Keys, n.TTLMs, n.EventTime, n.Timers, n.Sessions, n.Arrival)
		}
	}
	return text.String()
}

func textOf(levels []*pb.Stage) string {
	var text strings.Builder
	for _, level := range levels {
		fmt.Fprintln(&text, level.GetId(), level.GetBucketCount())
		for _, n := range level.GetNodes() {
			kind := strings.TrimPrefix(n.GetKind().String(), "NODE_KIND_")
			fmt.Fprintln(&text, n.GetPath(), kind, n.GetInputs(), n.GetPort(), n.GetState(), n.GetStatePort(), n.GetTimestamps(), n.GetKeys(), n.GetTtlMs(), n.GetEventTime(), n.GetTimers(), n.GetSessions(), n.GetArrival())
		}
	}
	return text.String()
}

func TestPlansAreThoseOfTheRuntime(t *testing.T) {
	content, err := os.ReadFile("testdata/plans.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for line := range bytes.Lines(content) {
		var g golden
		if err := json.Unmarshal(line, &g); err != nil {
			t.Fatal(err)
		}
		count++
		made, found := plan.Compile(g.application(), 8, 1<<20)
		if len(found) > 0 || len(g.Plan.Codes) > 0 {
			if len(found) != 1 || !slices.Equal(g.Plan.Codes, []string{found[0].Code}) {
				t.Errorf("%s: found %v; want %v", g.Name, found, g.Plan.Codes)
			}
			continue
		}
		if got, want := textOf(made.Levels), g.text(); got != want {
			t.Errorf("%s: the plan is\n%swant\n%s", g.Name, got, want)
		}
		for path, port := range g.Plan.Ports {
			if made.Ports[path] != port {
				t.Errorf("%s: %s has port %d; want %d", g.Name, path, made.Ports[path], port)
			}
		}
	}
	if count < 40 {
		t.Errorf("%d plans; expected those of the cases and drawn ones", count)
	}
}

func TestTooManyPartsAreRefused(t *testing.T) {
	many := &declaration.Pipeline{}
	for i := range 65_534 { // 65533 is the port of visits
		many.Sources = append(many.Sources, &declaration.Source{Path: fmt.Sprintf("0/sources/%d", i)})
	}
	_, found := plan.Compile(&declaration.Application{Pipelines: []*declaration.Pipeline{many}}, 1, 1)
	if len(found) != 1 || found[0].Code != "T104" {
		t.Errorf("found %v", found)
	}
}
