package org.wallaroo.spark.realtime;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.wallaroo.spark.realtime.Parcel.Kind;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * All levels that begin with state, one after the other in one operator: all buckets are under one key of Spark's.
 *
 * <p>A row has the outputs of one stretch of the journal; each level has run it wholly before the next one does, and
 * before the next row. So a bucket of any level sees its messages in one order, wherever rows begin.
 */
final class StateLevels extends StatefulProcessor<Integer, byte[], byte[]> {
    private static final long serialVersionUID = 1L;

    private final Settings settings;
    private transient List<Level> levels;
    private transient SparkBucketStore store;

    StateLevels(Settings settings) {
        this.settings = settings;
    }

    @Override
    public void init(OutputMode mode, TimeMode time) {
        store = new SparkBucketStore(getHandle());
    }

    @Override
    public Iterator<byte[]> handleInputRows(Integer key, Iterator<byte[]> rows, TimerValues timers) {
        List<byte[]> given = new ArrayList<>();
        while (rows.hasNext()) {
            given.add(run(Parcel.fromBytes(rows.next())).toBytes());
        }
        return CollectionConverters.asScala(given.iterator());
    }

    private Parcel run(Parcel row) {
        List<Parcel.Item> items = row.items();
        for (Level level : levels()) {
            items = row.kind() == Kind.FRAMES ? level.run(items) : level.flush(items);
        }
        List<Parcel.Item> outputs = items.stream().filter(item -> item.port() != Frames.TICK_PORT).toList();
        return new Parcel(row.kind(), row.offset(), row.messages(), outputs);
    }

    private List<Level> levels() {
        if (levels == null) {
            Attempt attempt = Attempt.current();
            levels = new ArrayList<>();
            for (int level = 1; level < settings.levels(); level++) {
                levels.add(new Level(settings.stages(level).stream().map(stage -> stageOf(stage, attempt)).toList()));
            }
            attempt.onEnd(() -> levels.forEach(Level::close));
        }
        return levels;
    }

    private LevelStage stageOf(Settings stage, Attempt attempt) {
        return stage.hasState() ? new StateStage(stage, attempt, store) : new ReceivingStage(stage, attempt);
    }
}
