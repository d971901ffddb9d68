package org.wallaroo.spark.state;

import java.security.SecureRandom;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiFunction;
import org.wallaroo.spark.bucket.BucketStore;
import org.wallaroo.spark.bucket.BucketVersion;

/**
 * Writes the first logs of buckets into the store of a new checkpoint or query, from the entries of {@link LoadRow}s.
 * The pieces of a large state may come in any order, and are stored in their order.
 */
public final class FirstLogs {
    private static final SecureRandom NONCES = new SecureRandom();

    private final BucketStore store;
    private final BiFunction<Integer, byte[], RuntimeException> twice; // null if each state comes once
    private final Map<Long, byte[][]> begun = new HashMap<>();
    private final Set<StateKey> known = new HashSet<>(); // states that have come so far

    /** Makes a writer for rows in which each state comes once. */
    public FirstLogs(BucketStore store) {
        this(store, null);
    }

    /**
     * Makes a writer that refuses a second state of a port and key.
     *
     * @param twice returns the error for such a state
     */
    public FirstLogs(BucketStore store, BiFunction<Integer, byte[], RuntimeException> twice) {
        this.store = store;
        this.twice = twice;
    }

    /** Stores a {@link LoadRow}'s entry, once all pieces of its state have come. Returns its note for the driver. */
    public byte[] take(byte[] bytes) {
        LoadRow row = LoadRow.fromBytes(bytes);
        if (twice != null && row.bucket() >= 0 && row.piece() == 0) {
            LogEntry entry = new LogEntry(row.entry());
            for (int number = 0; number < entry.count; number++) {
                StateKey key = entry.key(number);
                if (!known.add(key)) {
                    throw twice.apply(key.port(), key.key());
                }
            }
        }
        if (row.bucket() >= 0 && row.pieces() == 1) {
            store(row.bucket(), List.of(row.entry()));
        } else if (row.bucket() >= 0) {
            byte[][] parts = begun.computeIfAbsent(row.state(), state -> new byte[row.pieces()][]);
            parts[row.piece()] = row.entry();
            if (Arrays.stream(parts).noneMatch(part -> part == null)) {
                store(row.bucket(), List.of(parts));
                begun.remove(row.state());
            }
        }
        return row.note();
    }

    /** Checks that all pieces of all states have come. */
    public void checkComplete() {
        if (!begun.isEmpty()) {
            throw new IllegalStateException("pieces of a state have not come");
        }
    }

    private void store(int bucket, List<byte[]> entries) {
        BucketVersion before = store.version(bucket);
        long nonce = before.nonce();
        while (nonce == 0) {
            nonce = NONCES.nextLong();
        }
        long bytes = entries.stream().mapToLong(entry -> entry.length).sum();
        BucketVersion after = new BucketVersion(1, nonce, before.first(), before.last() + entries.size(),
                before.snapshotBytes() + bytes, 0);
        store.store(bucket, before, after, entries);
    }
}
