// Package redis exports Goka's storage in Redis, so that programs need not import Goka.
package redis

import theirs "github.com/lovoo/goka/storage/redis"

// These are Goka's functions. See [github.com/lovoo/goka/storage/redis].
var (
	New          = theirs.New
	RedisBuilder = theirs.RedisBuilder
)
