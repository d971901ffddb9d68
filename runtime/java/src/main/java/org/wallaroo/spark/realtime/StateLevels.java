package org.wallaroo.spark.realtime;

import java.util.ArrayList;
import java.util.List;
import org.wallaroo.spark.realtime.Parcel.Kind;

/**
 * All levels that begin with state, one after the other.
 *
 * <p>A parcel has the outputs of one stretch of the journal; each level has run it wholly before the next one does, and
 * before the next parcel. So a bucket of any level sees its messages in one order, wherever parcels begin.
 */
final class StateLevels implements AutoCloseable {
    private final List<Level> levels = new ArrayList<>();

    StateLevels(Settings settings, Attempt attempt, BucketStore store, Account account) {
        for (int level = 1; level < settings.levels(); level++) {
            List<LevelStage> stages = new ArrayList<>();
            for (Settings stage : settings.stages(level)) {
                stages.add(stage.hasState()
                        ? new StateStage(stage, attempt, store, account)
                        : new ReceivingStage(stage, attempt, account));
            }
            levels.add(new Level(stages));
        }
    }

    /** Reads the versions of all buckets, so that the first message does not wait for Spark's store. */
    void warm() {
        levels.forEach(Level::warm);
    }

    /** Runs a parcel; returns what is for sinks. After a FLUSH no call is open. */
    Parcel run(Parcel row) {
        List<Parcel.Item> items = row.items();
        for (Level level : levels) {
            items = row.kind() == Kind.FRAMES ? level.run(items) : level.flush(items);
        }
        List<Parcel.Item> outputs = items.stream().filter(item -> !Frames.isControl(item.port())).toList();
        return new Parcel(row.kind(), row.place(), outputs, row.arrivals());
    }

    /** Ends the streams. */
    @Override
    public void close() {
        levels.forEach(Level::close);
    }
}
