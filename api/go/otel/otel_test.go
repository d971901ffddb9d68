package otel

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	opentelemetry "go.opentelemetry.io/otel"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"wallarooapi/internal/span"
)

const header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// begun calls Begin of the registered tracer and ends the call at once.
func begun(t *testing.T, header string) trace.SpanContext {
	t.Helper()
	within, call := span.Begin(t.Context(), "Words", "Process", header)
	if call == nil {
		if within != t.Context() || span.IsIn(within) {
			t.Error("a context without a span is another one")
		}
		return trace.SpanContext{}
	}
	call.End()
	if !span.IsIn(within) {
		t.Error("the context does not say that it has a span")
	}
	return trace.SpanContextFromContext(within)
}

func TestWhoWantsSpans(t *testing.T) {
	for _, c := range []struct {
		variables map[string]string
		header    string
		wanted    bool
	}{
		{nil, header, false},
		{map[string]string{"OTEL_SERVICE_NAME": "x"}, header, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, header, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/v1/traces"}, header, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, header, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, "", false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, "00-0-0-01", false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "True"}, header, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, header, false},
		{map[string]string{"OTEL_TRACES_EXPORTER": "console, otlp"}, header, true},
	} {
		t.Run(fmt.Sprint(c.variables, c.header), func(t *testing.T) {
			made := fresh(t)
			for name, value := range c.variables {
				t.Setenv(name, value)
			}
			t.Setenv("OTEL_TRACES_SAMPLER", "always_off") // nobody listens
			if found := begun(t, c.header).IsValid(); found != c.wanted {
				t.Errorf("a span: %v", found)
			}
			if started := made.made != nil; started != c.wanted {
				t.Errorf("started: %v", started)
			}
		})
	}
}

func TestTheResource(t *testing.T) {
	for variables, service := range map[string]string{"": "Words", "service.name=other,zone=3": "other"} {
		r, made := received(t)
		t.Setenv("OTEL_RESOURCE_ATTRIBUTES", variables)
		t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=secret")
		begun(t, header)
		made.Flush(t.Context())
		if len(r.resources) != 1 || len(r.spans) != 1 || r.headers.Get("Authorization") != "secret" {
			t.Fatalf("%v, %v came", r.resources, r.spans)
		}
		about := r.resources[0]
		if about["service.name"] != fmt.Sprintf("string_value:%q", service) || about["process.pid"] != fmt.Sprintf("int_value:%d", os.Getpid()) ||
			(about["zone"] != "") != (variables != "") {
			t.Errorf("the resource is %v", about)
		}
	}
}

func TestTheSamplerOfTheEnvironmentDecides(t *testing.T) {
	r, made := received(t)
	unsampled := header[:len(header)-1] + "0"
	if found := begun(t, unsampled); !found.IsValid() || found.IsSampled() {
		t.Error("the driver's decision does not count")
	}
	made.Flush(t.Context())
	if len(r.spans) > 0 {
		t.Errorf("%v came", r.spans)
	}
	t.Setenv("OTEL_TRACES_SAMPLER", "always_on")
	fresh(t)
	if !begun(t, unsampled).IsSampled() {
		t.Error("the sampler of the environment does not count")
	}
}

func TestAProgramKeepsItsProvider(t *testing.T) {
	r, made := received(t)
	ended := &recorder{}
	own := sdk.NewTracerProvider(sdk.WithSpanProcessor(ended))
	opentelemetry.SetTracerProvider(own)
	found := begun(t, header)
	made.Flush(t.Context())
	if len(ended.spans) != 1 || !ended.spans[0].SpanContext().Equal(found) || ended.flushes != 1 || len(r.spans) > 0 {
		t.Errorf("%v went to the program's provider, %v to another", ended.spans, r.spans)
	}
	if opentelemetry.GetTracerProvider() != trace.TracerProvider(own) {
		t.Error("the provider is another one")
	}
}

// recorder is a span processor that a program sets.
type recorder struct {
	spans   []sdk.ReadOnlySpan
	flushes int
}

func (*recorder) OnStart(context.Context, sdk.ReadWriteSpan) {}

func (r *recorder) OnEnd(span sdk.ReadOnlySpan) { r.spans = append(r.spans, span) }

func (*recorder) Shutdown(context.Context) error { return nil }

func (r *recorder) ForceFlush(context.Context) error {
	r.flushes++
	return nil
}

func TestAFlushStartsNothingAndEnds(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	made := fresh(t)
	made.Flush(t.Context())
	if made.made != nil {
		t.Fatal("it has started")
	}
	made = fresh(t)
	begun(t, header)
	some, done := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer done()
	made.Flush(some) // nobody listens: the library would try for a minute
}

type userKey struct{}

func TestACarriedContext(t *testing.T) {
	received(t)
	around, stop := context.WithCancel(context.WithValue(t.Context(), userKey{}, 1))
	if span.Carry(around, t.Context()) != around {
		t.Error("without a span it is another context")
	}
	within, call := span.Begin(t.Context(), "Words", "Process", header)
	defer call.End()
	carried := span.Carry(around, within)
	if trace.SpanFromContext(carried) != trace.SpanFromContext(within) || carried.Value(userKey{}) != 1 {
		t.Error("a value is missing")
	}
	stop()
	if carried.Err() == nil || within.Err() != nil {
		t.Error("it ends with another context")
	}
}
