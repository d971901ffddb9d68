package org.wallaroo.spark.realtime;

import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead;
import org.wallaroo.spark.engine.EngineClient;
import org.wallaroo.spark.journal.JournalOffset;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Settings;

/**
 * Reads the only partition of a batch. It returns a row for each barrier of the engine, and for each request of the
 * engine to Spark's store. A row is the offset of the latest barrier.
 *
 * <p>A batch ends when Spark's time for it is over, or when the driver stops. A batch with input also ends after a set
 * time, a set number of bytes, or a pause of the input. The engine goes on when a batch ends.
 */
final class JournalPartitionReader implements SupportsRealTimeRead<InternalRow> {
    private final Settings settings;
    private final JournalOffset start;
    private final EngineClient engine;
    private final long begin = System.nanoTime();
    private long latest = begin; // time of the latest barrier
    private JournalRow.Place place;
    private boolean hasEnded;

    JournalPartitionReader(JournalStream.Begin begin) {
        settings = begin.settings();
        start = begin.start();
        engine = EngineClient.begin(settings, start);
        place = new JournalRow.Place(start.offset(), start.messages(), -1);
    }

    @Override
    public boolean next() {
        throw new UnsupportedOperationException("the source is read in real-time mode only");
    }

    @Override
    public InternalRow get() {
        byte[] row = ByteBuffer.allocate(Long.BYTES).putLong(place.offset()).array();
        return new GenericInternalRow(new Object[] {row});
    }

    @Override
    public PartitionOffset getOffset() {
        return new JournalOffset(start.journal(), place.offset(), place.messages());
    }

    @Override
    public RecordStatus nextWithTimeout(Long milliseconds) {
        return nextWithTimeout(System.currentTimeMillis(), milliseconds);
    }

    @Override
    public RecordStatus nextWithTimeout(Long now, Long milliseconds) {
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(milliseconds);
        try {
            hasEnded = hasEnded || !find(until);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            hasEnded = true;
        }
        return RecordStatus.newStatusWithoutArrivalTime(!hasEnded);
    }

    /** Waits for work of the engine. Returns false if the batch must end. */
    private boolean find(long until) throws InterruptedException {
        if (place.offset() - start.offset() >= settings.batchBytes()) {
            return false;
        }
        long end = until;
        if (place.offset() > start.offset()) {
            end = Math.min(end, begin + TimeUnit.MILLISECONDS.toNanos(settings.batchMs()));
            end = Math.min(end, latest + TimeUnit.MILLISECONDS.toNanos(settings.idleMs()));
        }
        if (!engine.await(end - System.nanoTime())) {
            return false;
        }
        JournalRow.Place reached = engine.reached();
        if (reached != null) {
            latest = reached.equals(place) ? latest : System.nanoTime();
            place = reached;
        }
        return true;
    }

    @Override
    public void close() {
        // The engine goes on.
    }
}
