package topology

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const maxNameCharacters = 200

// TopicNames describes valid names of Kafka topics in error messages.
const TopicNames = "a name of 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_', '-'"

// TopicPattern matches valid topic names. It also matches "." and "..", which Kafka refuses.
var TopicPattern = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// IsTopic reports whether Kafka accepts the name for a topic.
func IsTopic(name string) bool {
	return TopicPattern.MatchString(name) && name != "." && name != ".."
}

// NameFault returns the reason why the topology does not permit a name of a step, state or other part. It returns ""
// for a permitted name.
func NameFault(name string) string {
	switch count := utf8.RuneCountInString(name); {
	case count == 0:
		return "it is empty"
	case !utf8.ValidString(name):
		return "it is not UTF-8"
	case count > maxNameCharacters:
		return fmt.Sprintf("it has %d characters", count)
	case !norm.NFC.IsNormalString(name):
		return "it is not in Unicode form NFC"
	}
	for _, r := range name {
		if isControl(r) {
			return fmt.Sprintf("it has the control character U+%04X", r)
		}
	}
	return ""
}

var hostPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9_.])?$`)

// Address checks a host and parses a port. fault says what is wrong with them, and is empty if both are valid.
func Address(host, port string) (number int, fault string) {
	if host == "" {
		return 0, "the host is empty"
	}
	if len(host) > 253 || !hostPattern.MatchString(host) && net.ParseIP(host) == nil {
		return 0, "this is no host name or IP address"
	}
	value, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0, fmt.Sprintf("%q is no port", port)
	}
	return int(value), ""
}
