package server

import "fmt"

// protocolMin is the lowest protocol version that this release supports. The highest is declaration.Protocol.
const protocolMin = 1

// capabilities are the optional parts of the protocol that this worker supports. SPECIFICATION.md, section 9,
// describes each of them.
var capabilities = []string{"windows", "crossing", "protobuf", "generate", "split_frames", "in_flight", "check_persist", "outputs", "visits", "timers", "release", "show_state", "sessions", "watermarks"}

// commonVersion returns the highest version in both ranges, or 0 if they have no common version.
func commonVersion(ourLow, ourHigh, low, high uint32) uint32 {
	highest := min(ourHigh, high)
	if max(ourLow, low, 1) > highest {
		return 0
	}
	return highest
}

// shownVersions formats a range of versions for messages.
func shownVersions(low, high uint32) string {
	if low == high {
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d to %d", low, high)
}
