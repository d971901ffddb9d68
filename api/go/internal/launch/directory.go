package launch

import "os"

const (
	// The kernel's limit of a Unix socket's path, without the zero at its end.
	maxSocketPath = 107
	// What follows the prefix: the random number of a directory, and the temporary name of the socket.
	socketPathRest = len("4294967295/worker.sock.part")
)

// SocketDirectory makes a directory, mode 0700, for the socket of a worker: below that for temporary files, or below
// /tmp where a socket's path would be too long for the kernel.
func SocketDirectory(prefix string) (string, error) {
	below := os.TempDir()
	if len(below)+1+len(prefix)+socketPathRest > maxSocketPath {
		below = "/tmp"
	}
	return os.MkdirTemp(below, prefix)
}
