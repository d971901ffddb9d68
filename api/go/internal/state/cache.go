// Package state holds the states of keys as live objects while a worker processes a bucket, and keeps them in memory
// between calls, up to a limit.
package state

import (
	"container/list"
	"sync"
)

// Version identifies the states of a bucket after a call. The zero value is the version without states.
type Version struct {
	Counter uint64 // number of calls that led to the version
	Nonce   uint64 // random number, which distinguishes repeated calls with one counter
}

// Owner identifies a bucket whose states a Cache holds, by its application, query and stage. One worker may serve
// several queries.
type Owner struct {
	Application string
	Query       string
	Stage       string
	Bucket      uint32
}

// Cache keeps the live states of buckets between calls, so that the next call need not load them from the state log. It
// drops the buckets that were not used for the longest time. It is safe for concurrent use.
type Cache struct {
	mutex  sync.Mutex
	limit  int64
	bytes  int64
	byUse  *list.List // of *cached, most recently used first
	owners map[Owner]*list.Element
}

type cached struct {
	owner  Owner
	bucket *Bucket
}

// NewCache makes a cache for buckets that need at most limit bytes of memory, estimated from serialized sizes.
func NewCache(limit int64) *Cache {
	return &Cache{limit: limit, byUse: list.New(), owners: map[Owner]*list.Element{}}
}

// Take removes the bucket of an owner from the cache, and reports whether it has the requested version. A copy of
// another version is useless, because only the requested version was committed.
func (c *Cache) Take(owner Owner, version Version) (*Bucket, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	element, ok := c.owners[owner]
	if !ok {
		return nil, false
	}
	bucket := c.remove(element)
	return bucket, bucket.Version == version
}

// Put stores a bucket under its version. If the limit is exceeded, it drops the least recently used buckets.
func (c *Cache) Put(owner Owner, bucket *Bucket) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if element, ok := c.owners[owner]; ok {
		c.remove(element)
	}
	if bucket.Bytes() > c.limit {
		return
	}
	c.owners[owner] = c.byUse.PushFront(&cached{owner, bucket})
	c.bytes += bucket.Bytes()
	for c.bytes > c.limit {
		c.remove(c.byUse.Back())
	}
}

// Bytes returns the estimated size of all buckets in the cache.
func (c *Cache) Bytes() int64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.bytes
}

func (c *Cache) remove(element *list.Element) *Bucket {
	item := c.byUse.Remove(element).(*cached)
	delete(c.owners, item.owner)
	c.bytes -= item.bucket.Bytes()
	return item.bucket
}
