package org.wallaroo.spark.microbatch;

import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.wallaroo.spark.message.Frames;

/**
 * Spark's stream of ticks by the clock. Its offset is the time, in steps of the interval. So micro-batches also run
 * when no rows come.
 *
 * <p>Spark keeps the time of a tick as offset of the micro-batch, so that a repeated micro-batch has the same tick. The
 * tick is not later than the micro-batch's own time, which the rows of the micro-batch get.
 */
final class TickStream implements MicroBatchStream, SupportsTriggerAvailableNow {
    private final long intervalMs;
    private long last = Long.MAX_VALUE; // time of the last tick, if the query ends with the present input

    TickStream(long intervalMs) {
        this.intervalMs = intervalMs;
    }

    /** A time in milliseconds since 1970. */
    private static final class Time extends Offset {
        private final long ms;

        private Time(long ms) {
            this.ms = ms;
        }

        @Override
        public String json() {
            return Long.toString(ms);
        }
    }

    private record OneTick(long timeMs) implements InputPartition {}

    private long now() {
        long now = System.currentTimeMillis();
        return now - Math.floorMod(now, intervalMs);
    }

    @Override
    public Offset initialOffset() {
        return new Time(0);
    }

    @Override
    public Offset deserializeOffset(String json) {
        return new Time(Long.parseLong(json));
    }

    @Override
    public void prepareForTriggerAvailableNow() {
        last = now();
    }

    @Override
    public Offset latestOffset() {
        throw new UnsupportedOperationException("Spark asks with a limit");
    }

    @Override
    public Offset latestOffset(Offset from, ReadLimit limit) {
        return new Time(Math.max(((Time) from).ms, Math.min(now(), last)));
    }

    @Override
    public InputPartition[] planInputPartitions(Offset from, Offset to) {
        return new InputPartition[] {new OneTick(((Time) to).ms)};
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return partition -> new OneRow(Frames.tick(0, ((OneTick) partition).timeMs()));
    }

    @Override
    public void commit(Offset end) {
        // The stream keeps nothing.
    }

    @Override
    public void stop() {
        // The stream has nothing to stop.
    }
}
