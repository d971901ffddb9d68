package org.wallaroo.spark.microbatch;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.wallaroo.spark.bucket.SparkBucketStore;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.rpc.Credentials;
import org.wallaroo.spark.stage.CallScope;
import org.wallaroo.spark.stage.Level;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/** A level after a shuffle: all buckets of a partition, whose states are in Spark's store. */
final class StateTask extends StatefulProcessor<Integer, byte[], byte[]> {
    private static final long serialVersionUID = 1L;

    private final Settings settings;
    private final HashMap<String, String[]> credentials = Credentials.all();
    private final int number;
    private transient SparkBucketStore store;

    StateTask(Settings settings, int number) {
        this.settings = settings;
        this.number = number;
    }

    @Override
    public void init(OutputMode mode, TimeMode time) {
        store = new SparkBucketStore(getHandle());
    }

    @Override
    public Iterator<byte[]> handleInputRows(
            Integer key, Iterator<byte[]> rows, TimerValues timers) {
        Credentials.putAll(credentials);
        Attempt attempt = settings.isRehearsal() ? Attempt.current().rehearsing() : Attempt.current();
        TaskAccount account = new TaskAccount(attempt, number);
        LevelOutput output = new LevelOutput(settings, number, attempt, account);
        TaskContext.get().addTaskFailureListener((failed, error) -> {
            output.abort();
        });
        CallScope scope = new CallScope(attempt.partition(), settings.targets().size(), true);
        Level level = Level.of(settings.stages(number), attempt, store, account, scope);
        TaskContext.get().addTaskCompletionListener(ended -> {
            level.close();
        });
        var input = CollectionConverters.asJava(rows);
        return CollectionConverters.asScala(settings.isRehearsal()
                ? rehearsed(input, level)
                : new LevelRows(settings, number, input, level::leaving, output, account));
    }

    private java.util.Iterator<byte[]> rehearsed(java.util.Iterator<byte[]> rows, Level level) {
        level.warm();
        boolean isLast = number + 1 == settings.levels();
        List<byte[]> made = new ArrayList<>();
        rows.forEachRemaining(row -> made.add(isLast ? new byte[0] : row));
        return made.iterator();
    }
}
