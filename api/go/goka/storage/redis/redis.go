package redis

import theirs "github.com/lovoo/goka/storage/redis"

// The functions are Goka's, as [github.com/lovoo/goka/storage/redis] describes them.
var (
	New          = theirs.New
	RedisBuilder = theirs.RedisBuilder
)
