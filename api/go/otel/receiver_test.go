package otel

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	opentelemetry "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace/noop"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"wallarooapi/internal/span"
)

// receiver is a server that keeps the spans which programs send over OTLP.
type receiver struct {
	mutex     sync.Mutex
	spans     []*otlp.Span
	resources []map[string]string
	headers   http.Header
}

// received starts a receiver, sets its address in the environment, and registers a new tracer.
func received(t *testing.T) (*receiver, *tracer) {
	t.Helper()
	r := &receiver{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	return r, fresh(t)
}

// fresh registers a new tracer, and removes the program's tracer provider.
func fresh(t *testing.T) *tracer {
	t.Helper()
	opentelemetry.SetTracerProvider(noop.NewTracerProvider())
	made := &tracer{}
	span.Register(made)
	t.Cleanup(func() {
		if made.made != nil {
			_ = made.made.Shutdown(t.Context())
		}
		opentelemetry.SetTracerProvider(noop.NewTracerProvider())
		span.Register(&tracer{})
	})
	return made
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, asked *http.Request) {
	body, err := io.ReadAll(asked.Body)
	var request collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}
	if err != nil || asked.URL.Path != "/v1/traces" {
		http.Error(w, "no spans", http.StatusBadRequest)
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.headers = asked.Header
	for _, each := range request.GetResourceSpans() {
		about := map[string]string{}
		for _, attribute := range each.GetResource().GetAttributes() {
			about[attribute.GetKey()] = attribute.GetValue().String()
		}
		r.resources = append(r.resources, about)
		for _, scope := range each.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// by returns the spans with a name, by their ids.
func (r *receiver) by(name string) map[string]*otlp.Span {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	found := map[string]*otlp.Span{}
	for _, each := range r.spans {
		if each.GetName() == name {
			found[string(each.GetSpanId())] = each
		}
	}
	return found
}
