package launch

import (
	"path/filepath"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/server"
	"wallarooapi/internal/stage"
)

// Hosted is an application whose worker is this process, whatever else it does: `wallaroo run --attach` finds it at its endpoint.
type Hosted struct {
	// Topology is the document.
	Topology string
	// Endpoint is the gRPC target, unix:///PATH.
	Endpoint string
	server   *server.Server
}

// Host serves an application on a socket in a directory, which is private to this user.
func Host(application *declaration.Application, directory string) (*Hosted, error) {
	result := resultOf(application)
	if len(result.Found) > 0 {
		return nil, diagnostic.Error(result.Found)
	}
	own, err := worker(application)
	if err != nil {
		return nil, err
	}
	path, err := filepath.Abs(filepath.Join(directory, socketName))
	if err != nil {
		return nil, err
	}
	hosted := &Hosted{Topology: result.Text, Endpoint: "unix://" + path}
	hosted.server = server.New(application, own, "unix:"+path, defaultCacheBytes, stage.MaxStateBytes)
	listener, err := listen(path)
	if err == nil {
		err = appear(path)
	}
	if err != nil {
		return nil, err
	}
	go hosted.server.Serve(listener) // its error is that of Stop, or of the runtime's next call
	return hosted, nil
}

// End finishes the calls in flight, for a while.
func (h *Hosted) End() {
	h.server.End(gracePeriod)
	flush()
}
