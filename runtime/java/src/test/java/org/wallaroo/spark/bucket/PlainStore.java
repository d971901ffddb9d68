package org.wallaroo.spark.bucket;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The simple reference for Spark's store: versions, and entries by bucket and number, in memory. */
public final class PlainStore implements BucketStore {
    final Map<Integer, BucketVersion> versions = new HashMap<>();
    final Map<List<Integer>, String> entries = new HashMap<>();
    private final List<Integer> stored = new ArrayList<>();

    public PlainStore copy() {
        PlainStore made = new PlainStore();
        made.versions.putAll(versions);
        made.entries.putAll(entries);
        return made;
    }

    @Override
    public BucketVersion version(int bucket) {
        return versions.getOrDefault(bucket, BucketVersion.EMPTY);
    }

    @Override
    public List<byte[]> log(int bucket, BucketVersion version) {
        List<byte[]> found = new ArrayList<>();
        for (int entry = version.first(); entry < version.last(); entry++) {
            found.add(entries.get(List.of(bucket, entry)).getBytes(StandardCharsets.ISO_8859_1));
        }
        return found;
    }

    @Override
    public void store(int bucket, BucketVersion before, BucketVersion after, List<byte[]> changes) {
        assertEquals(version(bucket), before);
        for (int entry = before.first(); entry < Math.min(after.first(), before.last()); entry++) {
            entries.remove(List.of(bucket, entry));
        }
        for (int i = 0; i < changes.size(); i++) {
            entries.put(List.of(bucket, before.last() + i), new String(changes.get(i), StandardCharsets.ISO_8859_1));
        }
        versions.put(bucket, after);
        stored.add(bucket);
    }

    /** Returns the bucket of each stored change, in order. */
    public List<Integer> stored() {
        return stored;
    }

    /** Checks that another store has the same content. */
    public void assertSame(PlainStore other) {
        assertEquals(versions, other.versions);
        assertEquals(entries, other.entries);
    }

    public static List<String> texts(List<byte[]> log) {
        return log.stream().map(String::new).toList();
    }
}
