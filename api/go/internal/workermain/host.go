package workermain

import (
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/server"
	"wallarooapi/internal/stage"
)

// Hosted is an application whose calls this process answers while it does other work. `wallaroo run --attach` connects
// to Endpoint.
type Hosted struct {
	// Topology is the topology document.
	Topology string
	// Endpoint is the gRPC target, unix:///PATH.
	Endpoint string
	server   *server.Server
}

// Host serves an application on a socket in a directory. The directory must be private to this user.
func Host(application *declaration.Application, directory string) (*Hosted, error) {
	result := resultOf(application)
	if len(result.Found) > 0 {
		return nil, diagnostic.Error(result.Found)
	}
	// Stop, or the next call of the runtime, reports an error of the server.
	serving, path, _, err := begin(application, directory, defaultCacheBytes, stage.MaxStateBytes)
	if err != nil {
		return nil, err
	}
	return &Hosted{Topology: result.Text, Endpoint: "unix://" + path, server: serving}, nil
}

// End waits a limited time for the calls in flight and ends the server.
func (h *Hosted) End() {
	h.server.End(gracePeriod)
	flush()
}
