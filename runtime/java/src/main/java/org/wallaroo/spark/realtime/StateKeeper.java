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

/** Spark's state operator. For each row of the source, does the engine's work on the state store, then passes it on. */
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
