package org.wallaroo.spark.state;

import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.wallaroo.spark.bucket.BucketStore;
import org.wallaroo.spark.bucket.BucketVersion;
import org.wallaroo.spark.bucket.SparkBucketStore;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The operator that gives buckets of a new checkpoint their first logs; it has the store of the operators of both modes.
 *
 * <p>Rows are of {@link LoadRow}; what it gives are their notes.
 */
final class LogLoader extends StatefulProcessor<Integer, byte[], byte[]> {
    private static final long serialVersionUID = 1L;
    private static final SecureRandom NONCES = new SecureRandom();

    private transient BucketStore store;

    @Override
    public void init(OutputMode mode, TimeMode time) {
        store = new SparkBucketStore(getHandle());
    }

    @Override
    public Iterator<byte[]> handleInputRows(Integer key, Iterator<byte[]> rows, TimerValues timers) {
        return CollectionConverters.asScala(load(store, CollectionConverters.asJava(rows)).iterator());
    }

    /** Stores the entries of rows, pieces of a state one after the other; returns the notes. */
    static List<byte[]> load(BucketStore store, java.util.Iterator<byte[]> rows) {
        List<byte[]> notes = new ArrayList<>();
        Map<Long, byte[][]> begun = new HashMap<>();
        while (rows.hasNext()) {
            LoadRow row = LoadRow.fromBytes(rows.next());
            if (row.note().length > 0) {
                notes.add(row.note());
            }
            if (row.bucket() < 0) {
                continue;
            }
            if (row.pieces() == 1) {
                store(store, row.bucket(), List.of(row.entry()));
                continue;
            }
            byte[][] parts = begun.computeIfAbsent(row.state(), state -> new byte[row.pieces()][]);
            parts[row.piece()] = row.entry();
            if (Arrays.stream(parts).noneMatch(part -> part == null)) {
                store(store, row.bucket(), List.of(parts));
                begun.remove(row.state());
            }
        }
        if (!begun.isEmpty()) {
            throw new IllegalStateException("pieces of a state have not come");
        }
        return notes;
    }

    private static void store(BucketStore store, int bucket, List<byte[]> entries) {
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
