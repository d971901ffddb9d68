package launch

import (
	"path/filepath"

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
	document, err := described(application)
	if err != nil {
		return nil, err
	}
	path, err := filepath.Abs(filepath.Join(directory, socketName))
	if err != nil {
		return nil, err
	}
	hosted := &Hosted{Topology: result.Text, Endpoint: "unix://" + path}
	hosted.server = server.New(application, *document.Own(), "unix:"+path, defaultCacheBytes, stage.MaxStateBytes)
	listener, err := listen(path)
	if err == nil {
		err = appear(path)
	}
	if err != nil {
		return nil, err
	}
	go hosted.server.Serve(listener) // Stop, or the next call of the runtime, reports its error
	return hosted, nil
}

// End waits a limited time for the calls in flight and ends the server.
func (h *Hosted) End() {
	h.server.End(gracePeriod)
	flush()
}
