package server

import "fmt"

// protocolMin is the lowest version of the protocol that this release speaks; declaration.Protocol is the highest.
const protocolMin = 1

// capabilities are the parts of the protocol that a worker may leave out; SPECIFICATION.md, section 9, has what each
// one means.
var capabilities = []string{"windows", "crossing", "protobuf", "generate", "split_frames", "in_flight", "check_persist", "outputs", "visits", "timers", "release", "show_state", "sessions", "watermarks"}

// commonVersion returns the highest version in both ranges; 0: there is none.
func commonVersion(ourLow, ourHigh, low, high uint32) uint32 {
	highest := min(ourHigh, high)
	if max(ourLow, low, 1) > highest {
		return 0
	}
	return highest
}

// shownVersions returns a range of versions as a message shows it.
func shownVersions(low, high uint32) string {
	if low == high {
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d to %d", low, high)
}
