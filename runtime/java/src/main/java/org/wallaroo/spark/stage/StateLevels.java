package org.wallaroo.spark.stage;

import java.util.ArrayList;
import java.util.List;
import org.wallaroo.spark.account.CallCounts;
import org.wallaroo.spark.bucket.BucketStore;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow.Kind;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Settings;

/**
 * All levels that begin with state, one after the other, in the engine of real-time mode.
 *
 * <p>A row has the outputs of one range of the journal. A level runs a whole row before the next level begins with
 * the row, and before the next row. So each bucket gets its messages in the same order, wherever rows begin and end.
 */
public final class StateLevels implements AutoCloseable {
    private final List<Level> levels = new ArrayList<>();

    public StateLevels(Settings settings, Attempt attempt, BucketStore store, CallCounts account) {
        settings.levels().stream().skip(1)
                .forEach(stages -> levels.add(Level.of(stages, attempt, store, account, CallScope.OPEN)));
    }

    /** Reads the versions of all buckets, so that the first message does not wait for Spark's store. */
    public void warm() {
        levels.forEach(Level::warm);
    }

    /** Runs a row, and returns the output for sinks. After a FLUSH no call is open. */
    public JournalRow run(JournalRow row) {
        List<JournalRow.Item> items = row.items();
        for (Level level : levels) {
            items = row.kind() == Kind.FRAMES ? level.run(items) : level.flush(items);
        }
        List<JournalRow.Item> outputs = items.stream().filter(item -> !Frames.isControl(item.port())).toList();
        return new JournalRow(row.kind(), row.place(), outputs, row.arrivals());
    }

    /** Ends the streams. */
    @Override
    public void close() {
        Closing.all(levels, Level::close);
    }
}
