package org.wallaroo.spark.state;

import java.util.Iterator;
import java.util.Map;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Row;
import org.wallaroo.spark.bucket.BucketVersion;
import org.wallaroo.spark.bucket.SparkBucketStore;
import org.wallaroo.spark.query.ChainedIterator;

/**
 * Reads the states of the buckets in a partition of Spark's store. A subclass turns the states into results.
 *
 * <p>The rows have a key and a value of {@link SparkBucketStore}, one bucket after the other. The version of a bucket
 * comes first, then the entries of its log in order.
 *
 * @param <T> type of the results
 */
abstract class StoredLogs<T> implements MapPartitionsFunction<Row, T> {
    private static final long serialVersionUID = 1L;

    /** Returns the function that reads the states of logs, and writes them as {@link LoadRow}s. */
    static StoredLogs<byte[]> moving(LogWriter.Layout layout) {
        return new StoredLogs<>() {
            @Override
            Iterator<byte[]> results(Map<StateKey, StateValue> states) {
                return new LogRows<>(layout, states.entrySet().iterator(),
                        (writer, state) -> writer.add(state.getKey(), state.getValue()), writer -> { });
            }
        };
    }

    /** Returns the reader of the next bucket's log. It returns all states, unless a subclass wants only some. */
    LatestStates reader() {
        return new LatestStates();
    }

    /** Returns the results for the states of a bucket. */
    abstract Iterator<T> results(Map<StateKey, StateValue> states);

    @Override
    public Iterator<T> call(Iterator<Row> rows) {
        return new Buckets(rows);
    }

    private final class Buckets extends ChainedIterator<T> {
        private final Iterator<Row> rows;
        private Row next; // the first row of the next bucket

        private Buckets(Iterator<Row> rows) {
            this.rows = rows;
            advance();
        }

        private void advance() {
            next = rows.hasNext() ? rows.next() : null;
        }

        @Override
        protected Iterator<T> following() {
            return next == null ? null : bucket();
        }

        private Iterator<T> bucket() {
            int bucket = SparkBucketStore.bucketOf(next.getLong(0));
            if (!SparkBucketStore.isVersion(next.getLong(0))) {
                throw LogEntry.damaged("it has entries and no version");
            }
            BucketVersion version = BucketVersion.fromBytes(next.getAs(1));
            LatestStates reader = reader();
            int expected = version.first();
            for (advance(); next != null && SparkBucketStore.bucketOf(next.getLong(0)) == bucket; advance()) {
                int entry = SparkBucketStore.entryOf(next.getLong(0));
                if (entry < version.first() || entry >= version.last()) {
                    continue;
                }
                if (entry != expected) {
                    throw LogEntry.damaged("its entry " + expected + " is missing");
                }
                reader.take(next.getAs(1));
                expected++;
            }
            if (expected != version.last()) {
                throw LogEntry.damaged("its entry " + expected + " is missing");
            }
            return results(reader.end());
        }
    }
}
