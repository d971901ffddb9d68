package otel

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"

	opentelemetry "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// isWanted reports whether the environment names a receiver of spans. The OpenTelemetry library does not evaluate
// OTEL_SDK_DISABLED and OTEL_TRACES_EXPORTER itself.
func isWanted() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	if exporters := os.Getenv("OTEL_TRACES_EXPORTER"); exporters != "" {
		return slices.ContainsFunc(strings.Split(exporters, ","), func(name string) bool { return strings.TrimSpace(name) == "otlp" })
	}
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) != ""
}

// provider returns the tracer provider that the program has set. If the program has set none, provider makes and sets
// one for the receiver that the environment names, or returns nil if there is no such receiver.
func provider(application string) *sdk.TracerProvider {
	if own, is := opentelemetry.GetTracerProvider().(*sdk.TracerProvider); is {
		return own
	}
	if !isWanted() {
		return nil
	}
	exporter, err := newExporter(context.Background())
	if err != nil {
		opentelemetry.Handle(err)
		return nil
	}
	made := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(resourceOf(application)))
	opentelemetry.SetTracerProvider(made)
	return made
}

func newExporter(ctx context.Context) (*otlptrace.Exporter, error) {
	if cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL")) == "grpc" {
		return otlptracegrpc.New(ctx)
	}
	return otlptracehttp.New(ctx)
}

// resourceOf returns the attributes that all spans of this process have. The service name is the name of the
// application, unless the environment sets one.
func resourceOf(application string) *resource.Resource {
	found, err := resource.New(context.Background(), resource.WithAttributes(attribute.String("service.name", application)),
		resource.WithTelemetrySDK(), resource.WithProcessPID(), resource.WithFromEnv())
	if err != nil {
		opentelemetry.Handle(err)
	}
	return found
}
