package server

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// TestAnEndDoesNotWaitForEver: the server ends although user code does not return.
func TestAnEndDoesNotWaitForEver(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	defer close(leave)
	stuck := &Server{grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		close(inside)
		<-leave
		return nil
	})), newWork()}
	path := filepath.Join(t.TempDir(), "socket")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go stuck.Serve(listener)
	connection, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connection.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/any/call"); err != nil {
		t.Fatal(err)
	}
	wait(t, "the call", inside)
	connection.Close() // as a runtime that has ended
	ended := make(chan struct{})
	go func() {
		stuck.End(50 * time.Millisecond)
		close(ended)
	}()
	wait(t, "the end", ended)
}
