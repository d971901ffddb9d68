package topology

import (
	"crypto/sha256"
	"encoding/hex"
)

// Version is the version of the document format.
const Version = 1

// MaxMessageBytes is the maximum length of a payload, unless the topology is edited.
const MaxMessageBytes = 16 * 1024 * 1024

// CallDeadlineMs is the deadline of one call in milliseconds, unless the topology is edited.
const CallDeadlineMs = 60000

// Codec is the codec of messages and states in the worker's own format.
const Codec = "native"

// WorkerName is the name of the only worker entry that a front-end writes.
const WorkerName = "main"

// InterfaceHash returns the hash of what a document says, except for workers, addresses, cookies and options.
func InterfaceHash(document Object) string {
	digest := sha256.Sum256(Canonical(withoutAddresses(document)))
	return Notation(digest[:])
}

// withoutAddresses removes workers, and the addresses, cookies and options of sources and sinks.
func withoutAddresses(tree any) any {
	switch tree := tree.(type) {
	case Array:
		array := Array{}
		for _, item := range tree {
			array = append(array, withoutAddresses(item))
		}
		return array
	case Object:
		object := Object{}
		for _, member := range tree {
			switch member.Key {
			case "workers", "host", "port", "cookie", "brokers", "options":
			case "pipelines", "sources", "sinks":
				object = append(object, Member{member.Key, withoutAddresses(member.Value)})
			default:
				object = append(object, member)
			}
		}
		return object
	}
	return tree
}

// Notation returns a SHA-256 digest as the document writes it: sha256: and hexadecimal digits.
func Notation(digest []byte) string { return "sha256:" + hex.EncodeToString(digest) }
