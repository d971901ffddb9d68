package org.wallaroo.spark.realtime;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.wallaroo.spark.bucket.SparkBucketStore;
import org.wallaroo.spark.engine.EngineClient;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/** Spark's operator with state. For each row of the source it does the engine's work on Spark's store. */
final class StateKeeper extends StatefulProcessor<Integer, byte[], byte[]> {
    private static final long serialVersionUID = 1L;

    private transient SparkBucketStore store;

    @Override
    public void init(OutputMode mode, TimeMode time) {
        store = new SparkBucketStore(getHandle());
    }

    @Override
    public Iterator<byte[]> handleInputRows(Integer key, Iterator<byte[]> rows, TimerValues timers) {
        List<byte[]> passed = new ArrayList<>();
        while (rows.hasNext()) {
            passed.add(rows.next());
            EngineClient.current().serve(store);
        }
        return CollectionConverters.asScala(passed.iterator());
    }
}
