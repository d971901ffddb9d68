// Package redis has Goka's storage in Redis under this module's path.
package redis

import theirs "github.com/lovoo/goka/storage/redis"

// These are Goka's functions. See [github.com/lovoo/goka/storage/redis].
var (
	New          = theirs.New
	RedisBuilder = theirs.RedisBuilder
)
