package workermain

import "os"

const (
	// The kernel limits the path of a Unix socket to this length, not counting the terminating zero.
	maxSocketPath = 107
	// The prefix is followed by the random number of the directory and the temporary name of the socket.
	socketPathRest = len("4294967295/worker.sock.part")
)

// SocketDirectory makes a private directory (mode 0700) for the socket of a worker. It is among the temporary files, or
// in /tmp if the path of the socket would be too long for the kernel.
func SocketDirectory(prefix string) (string, error) {
	below := os.TempDir()
	if len(below)+1+len(prefix)+socketPathRest > maxSocketPath {
		below = "/tmp"
	}
	return os.MkdirTemp(below, prefix)
}
