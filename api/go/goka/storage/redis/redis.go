package redis

import (
	"github.com/lovoo/goka/storage"
	"gopkg.in/redis.v5"

	theirs "github.com/lovoo/goka/storage/redis"
)

// New is Goka's.
func New(client *redis.Client, hash string) (storage.Storage, error) {
	return theirs.New(client, hash)
}

// RedisBuilder is Goka's.
func RedisBuilder(client *redis.Client, namespace string) storage.Builder {
	return theirs.RedisBuilder(client, namespace)
}
