// Counts each key, and forgets it after a minute: the application of `make bench-expiry`, in Go.
package main

import (
	"context"
	"slices"
	"strconv"
	"time"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

func main() { worker.Main(setup) }

type count struct{ Value uint64 }

func setup(args []string) *stream.Application {
	app := stream.New("Expiring")
	names := stream.From(app, "names", stream.TCPSource(after(args, "--in"), stream.U32BE, stream.Text.Decode))
	keyed := stream.KeyBy(names, "key", func(name string) string { return name })
	counted := stream.MapState(keyed, "count", func(_ context.Context, name string, state *count) (string, error) {
		state.Value++
		return name + " " + strconv.FormatUint(state.Value, 10) + "\n", nil
	}, stream.TTL(time.Minute))
	counted.To(stream.TCPSink(after(args, "--out"), stream.Text.Encode))
	return app
}

func after(args []string, option string) string { return args[slices.Index(args, option)+1] }
