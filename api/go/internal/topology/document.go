package topology

import (
	"crypto/sha256"
	"encoding/hex"
)

// Version is the version of the document format.
const Version = 1

// MaxMessageBytes is the maximum length of a payload that the SDK writes into the topology.
const MaxMessageBytes = 16 * 1024 * 1024

// CallDeadlineMs is the deadline of one call of a worker, in milliseconds, that the SDK writes into the topology.
const CallDeadlineMs = 60000

// Codec is the name of the codec of messages and states that only workers of this program read.
const Codec = "native"

// WorkerName is the name by which the topology refers to the worker of this program.
const WorkerName = "main"

// InterfaceHash returns the hash of a document without workers, addresses, cookies and options. The runtime compares
// this hash with that of a worker, to notice a worker that was built from another program.
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

// Notation returns a SHA-256 digest as it is written in the document: sha256: and hexadecimal digits.
func Notation(digest []byte) string { return "sha256:" + hex.EncodeToString(digest) }
