package stream_test

import (
	"context"
	"slices"
	"testing"

	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/usercode"
	"wallarooapi/stream"
)

type callKey struct{}

// everyKind is an application with steps of all kinds. Its functions note the call in which they run, or "".
func everyKind(note func(ctx context.Context, function string)) *stream.Application {
	app := stream.New("Kinds")
	alerts := stream.NewOutput[string]("alerts")
	pass := func(function string) func(context.Context, string) (string, error) {
		return func(ctx context.Context, text string) (string, error) {
			note(ctx, function)
			return text, nil
		}
	}
	mapped := stream.Map(stream.From(app, "texts", source), "map", pass("Map"))
	emitting := stream.Map(mapped, "emit", func(ctx context.Context, text string) (string, error) {
		note(ctx, "Map with outputs")
		alerts.Emit(ctx, text)
		return text, nil
	}, alerts)
	several := stream.FlatMap(emitting, "flat map", func(ctx context.Context, text string) ([]string, error) {
		note(ctx, "FlatMap")
		return []string{text}, nil
	})
	kept := stream.Filter(several, "filter", func(ctx context.Context, _ string) (bool, error) {
		note(ctx, "Filter")
		return true, nil
	})
	counted := stream.MapState(stream.Collect(kept), "count", func(ctx context.Context, text string, _ *total) (string, error) {
		note(ctx, "MapState")
		return text, nil
	})
	stream.OnVisit(counted, "look", func(ctx context.Context, _ *stream.Visit, _ *total) (string, error) {
		note(ctx, "OnVisit")
		return "", nil
	})
	again := stream.FlatMapState(stream.Collect(counted), "count more", func(ctx context.Context, text string, _ *total) ([]string, error) {
		note(ctx, "FlatMapState")
		return []string{text}, nil
	})
	stream.OnVisitFlat(again, "look", func(ctx context.Context, _ *stream.Visit, _ *total) ([]string, error) {
		note(ctx, "OnVisitFlat")
		return nil, nil
	})
	stream.CountWindow(stream.Collect(again), stream.Count{Size: 2}, stream.Aggregation[string, int, string]{
		Name: "window", Initial: func() int { return 0 }, Update: func(string, int) int { return 1 }, Combine: func(a, b int) int { return a + b },
		OutputTo: func(ctx context.Context, _ string, _ int) (string, error) {
			note(ctx, "OutputTo")
			return "", nil
		},
	}).To(textSink)
	return app
}

// callAll calls all functions of a step.
func callAll(step *declaration.Step) {
	switch {
	case step.Build != nil:
		step.Build().Compute("text")
	case step.Stateful != nil:
		step.Stateful.Compute(nil, "text", &total{})
		step.Stateful.Visit(&wa.Visit{Name: "look"}, &total{})
	case step.Aggregation != nil:
		step.Aggregation.Output(nil, 1, declaration.Bounds{})
	}
}

func TestFunctionsGetTheContextOfTheirCall(t *testing.T) {
	var found []string
	app := declaration.Revealed(everyKind(func(ctx context.Context, function string) {
		call, _ := ctx.Value(callKey{}).(string)
		found = append(found, function+" "+call)
	}))
	for _, call := range []string{"first", "second", ""} {
		found = nil
		for step := range app.Steps() {
			if call != "" {
				step = step.Within(context.WithValue(usercode.Context(), callKey{}, call))
			}
			callAll(step)
		}
		var expected []string
		for _, function := range []string{"Map", "Map with outputs", "FlatMap", "Filter", "MapState", "OnVisit", "FlatMapState", "OnVisitFlat", "OutputTo"} {
			expected = append(expected, function+" "+call)
		}
		if !slices.Equal(found, expected) {
			t.Errorf("in call %q: %v", call, found)
		}
	}
}
