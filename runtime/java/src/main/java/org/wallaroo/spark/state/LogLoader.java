package org.wallaroo.spark.state;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.wallaroo.spark.bucket.BucketStore;
import org.wallaroo.spark.bucket.SparkBucketStore;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's operator that writes the first logs of a new checkpoint, e.g. for a rescale. The operators of both modes
 * later read these logs from the store.
 *
 * <p>Its input are serialized {@link LoadRow}s, and its output are the notes of these rows.
 */
final class LogLoader extends StatefulProcessor<Integer, byte[], byte[]> {
    private static final long serialVersionUID = 1L;

    private transient BucketStore store;

    @Override
    public void init(OutputMode mode, TimeMode time) {
        store = new SparkBucketStore(getHandle());
    }

    @Override
    public Iterator<byte[]> handleInputRows(Integer key, Iterator<byte[]> rows, TimerValues timers) {
        return CollectionConverters.asScala(load(store, CollectionConverters.asJava(rows)).iterator());
    }

    /** Stores the log entry of each {@link LoadRow}, pieces of a large state in order. Returns the rows' notes. */
    static List<byte[]> load(BucketStore store, java.util.Iterator<byte[]> rows) {
        List<byte[]> notes = new ArrayList<>();
        FirstLogs logs = new FirstLogs(store);
        while (rows.hasNext()) {
            byte[] note = logs.take(rows.next());
            if (note.length > 0) {
                notes.add(note);
            }
        }
        logs.checkComplete();
        return notes;
    }
}
