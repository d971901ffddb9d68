package state

import "testing"

func filled(version uint64, keys ...string) *Bucket {
	bucket := NewBucket()
	bucket.Version = Version{version, version}
	for _, key := range keys {
		table := bucket.Table(1)
		table.Resize(table.Add([]byte(key), nil), 1000, 0)
	}
	return bucket
}

func TestOnlyTheExactVersionIsTaken(t *testing.T) {
	cache, owner := NewCache(1<<20), Owner{"a", "q", "s1", 3}
	for _, asked := range []Version{{7, 8}, {8, 7}, {}} {
		cache.Put(owner, filled(7, "a"))
		if _, ok := cache.Take(owner, asked); ok {
			t.Errorf("version %v was taken for (7, 7)", asked)
		}
		if _, ok := cache.Take(owner, Version{7, 7}); ok {
			t.Error("a copy that is stale was kept")
		}
	}
	cache.Put(owner, filled(7, "a"))
	for _, other := range []Owner{{"b", "q", "s1", 3}, {"a", "p", "s1", 3}, {"a", "q", "s2", 3}, {"a", "q", "s1", 4}} {
		if _, ok := cache.Take(other, Version{7, 7}); ok {
			t.Errorf("%v got the bucket of %v", other, owner)
		}
	}
	if _, ok := cache.Take(owner, Version{7, 7}); !ok || cache.Bytes() != 0 {
		t.Errorf("taken %v, %d bytes left", ok, cache.Bytes())
	}
}

func TestTheBucketUnusedForLongestGoesFirst(t *testing.T) {
	cache := NewCache(7500)
	for number := range uint32(3) {
		cache.Put(Owner{Bucket: number}, filled(1, "a"))
	}
	if cache.Bytes() > 7500 {
		t.Errorf("%d bytes are held", cache.Bytes())
	}
	for number, want := range []bool{false, true, true} {
		if _, ok := cache.Take(Owner{Bucket: uint32(number)}, Version{1, 1}); ok != want {
			t.Errorf("bucket %d: %v", number, ok)
		}
	}
	cache.Put(Owner{}, filled(1, "a", "b", "c"))
	if cache.Bytes() != 0 {
		t.Error("a bucket larger than the bound was kept")
	}
}

func TestBytesFollowTheEntries(t *testing.T) {
	bucket := filled(1, "a", "b")
	before := bucket.Bytes()
	table := bucket.Table(1)
	table.Resize(table.Get([]byte("a")), 2000, 0)
	if bucket.Bytes() != before+liveFactor*1000 || bucket.Keys() != 2 {
		t.Errorf("%d bytes", bucket.Bytes())
	}
	table.Remove("a")
	table.Remove("b")
	table.Remove("b")
	if bucket.Bytes() != 0 || bucket.Keys() != 0 {
		t.Errorf("%d bytes, %d keys", bucket.Bytes(), bucket.Keys())
	}
}
