package org.wallaroo.spark.microbatch;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.wallaroo.spark.message.Frames;

/**
 * A row of Spark's shuffle, in which one level of a plan passes a frame, or the counts of a task, to the next level.
 *
 * @param target key by which Spark's shuffle brings the row to its partition
 * @param kind work of the next level for the row
 * @param bucket of the frame; -1 if it has none
 * @param origin number of the stage and bucket that emitted the frame; -1 for the first stage
 * @param number of the row in the task that made it
 * @param maker task that made the row
 * @param payload a frame, or the account of a task
 */
record ShuffleRow(int target, Kind kind, int bucket, int origin, long number, Maker maker, byte[] payload) {
    /** Orders a partition's frames, since a repeated micro-batch must be the same and a shuffle does not keep order. */
    static final Comparator<ShuffleRow> ORDER = Comparator.comparing(ShuffleRow::sequence, Long::compareUnsigned)
            .thenComparingLong(ShuffleRow::number)
            .thenComparingLong(ShuffleRow::time)
            .thenComparing(ShuffleRow::payload, Arrays::compare);
    private static final int HEADER_BYTES = 40;

    /**
     * A task that makes rows.
     *
     * @param level of the plan
     * @param partition of the task
     * @param attempt Spark's id of the attempt
     */
    record Maker(int level, int partition, long attempt) {}

    /** The work of the next level for a row. */
    enum Kind {
        /** The next level runs the frame. */
        DATA,
        /** The frame passes to the last level, which stages it. */
        DONE,
        /** The account passes to the driver. */
        ACCOUNT
    }

    int port() {
        return Frames.port(payload, 0);
    }

    long messages() {
        return Frames.count(payload, 0);
    }

    /** Says whether this is a tick after all records of its micro-batch. */
    boolean isLastTick() {
        return port() == Frames.TICK_PORT && sequence() == LevelOutput.LAST;
    }

    private long sequence() {
        return word(16);
    }

    private long time() {
        return word(24);
    }

    private long word(int at) {
        return ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN).getLong(at);
    }

    byte[] toBytes() {
        return ByteBuffer.allocate(HEADER_BYTES + payload.length).putInt(target).putInt(kind.ordinal()).putInt(bucket)
                .putInt(origin).putLong(number).putInt(maker.level()).putInt(maker.partition()).putLong(maker.attempt())
                .put(payload).array();
    }

    /** Returns a row for each partition, so that Spark runs all partitions of later levels. No task made these rows. */
    static List<byte[]> toAll(List<Integer> targets, Kind kind, byte[] payload) {
        Maker nobody = new Maker(0, 0, 0);
        return targets.stream().map(target -> new ShuffleRow(target, kind, -1, -1, 0, nobody, payload).toBytes()).toList();
    }

    static int targetOf(byte[] row) {
        return ByteBuffer.wrap(row).getInt();
    }

    static ShuffleRow fromBytes(byte[] row) {
        ByteBuffer buffer = ByteBuffer.wrap(row);
        return new ShuffleRow(buffer.getInt(), Kind.values()[buffer.getInt()], buffer.getInt(), buffer.getInt(),
                buffer.getLong(), new Maker(buffer.getInt(), buffer.getInt(), buffer.getLong()),
                Arrays.copyOfRange(row, HEADER_BYTES, row.length));
    }
}
