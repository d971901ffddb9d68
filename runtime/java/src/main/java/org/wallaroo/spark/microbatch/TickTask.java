package org.wallaroo.spark.microbatch;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Settings;

/** Runs level 0 over the ticks of a clock: sends each tick to all partitions. */
final class TickTask implements MapPartitionsFunction<byte[], byte[]> {
    private static final long serialVersionUID = 1L;

    private final Settings settings;

    TickTask(Settings settings) {
        this.settings = settings;
    }

    @Override
    public Iterator<byte[]> call(Iterator<byte[]> times) {
        Attempt attempt = Attempt.current();
        LevelOutput output = new LevelOutput(settings, 0, attempt, new TaskAccount(attempt, 0));
        List<byte[]> rows = new ArrayList<>();
        times.forEachRemaining(time -> rows.addAll(output.take(List.of(new JournalRow.Item(
                Frames.TICK_PORT, -1, -1, Frames.tick(0, ByteBuffer.wrap(time).getLong()))))));
        return rows.iterator();
    }
}
