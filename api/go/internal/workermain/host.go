package workermain

import (
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/server"
	"wallarooapi/internal/stage"
)

// Hosted is a worker within a process that also does other work, such as a debugger or a service. `wallaroo run
// --attach` connects to Endpoint.
type Hosted struct {
	// Topology is the topology document.
	Topology string
	// Endpoint is the gRPC target, unix:///PATH.
	Endpoint string
	server   *server.Server
}

// Host starts a worker for an application in this process, on a socket in a directory. Only this user may have access
// to the directory.
func Host(application *declaration.Application, directory string) (*Hosted, error) {
	result := resultOf(application)
	if len(result.Found) > 0 {
		return nil, diagnostic.Error(result.Found)
	}
	// If the server fails later, the next call of the runtime fails.
	serving, path, _, err := begin(application, directory, defaultCacheBytes, stage.MaxStateBytes)
	if err != nil {
		return nil, err
	}
	return &Hosted{Topology: result.Text, Endpoint: "unix://" + path, server: serving}, nil
}

// End waits a limited time for running calls, and ends the worker.
func (h *Hosted) End() {
	h.server.End(gracePeriod)
	flush()
}
