package org.wallaroo.spark.realtime;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead;
import org.wallaroo.spark.realtime.Parcel.Kind;

/**
 * Gives the frames of the journal as soon as they are there, until its batch ends.
 *
 * <p>A batch ends when Spark's time for it is over, after so many bytes, in an idle moment after some input, or when the
 * driver stops.
 */
final class JournalPartitionReader implements SupportsRealTimeRead<InternalRow> {
    private static final long MILLISECOND = 1_000_000;

    private final Settings settings;
    private final JournalOffset start;
    private final JournalReader reader;
    private final JournalHead head;
    private final boolean isRehearsal;
    private Parcel row;
    private boolean hasEnded;
    private boolean isDirty; // since the last FLUSH
    private boolean hasSaidIdle = true;
    private long flushed;
    private long latest;

    JournalPartitionReader(JournalStream.Begin begin) {
        this.settings = begin.settings();
        this.start = begin.start();
        this.reader = new JournalReader(Path.of(settings.journal()), start);
        this.head = JournalHead.of(settings, start);
        this.isRehearsal = begin.isRehearsal();
        if (!isRehearsal) {
            Reached.read(settings);
        }
    }

    @Override
    public boolean next() {
        throw new UnsupportedOperationException("the source is read in real-time mode only");
    }

    @Override
    public InternalRow get() {
        return new GenericInternalRow(new Object[] {row.toBytes()});
    }

    @Override
    public PartitionOffset getOffset() {
        return reader.offset();
    }

    @Override
    public RecordStatus nextWithTimeout(Long milliseconds) throws IOException {
        return nextWithTimeout(System.currentTimeMillis(), milliseconds);
    }

    @Override
    public RecordStatus nextWithTimeout(Long now, Long milliseconds) throws IOException {
        long until = System.nanoTime() + milliseconds * MILLISECOND;
        try {
            hasEnded = hasEnded || !find(until);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            hasEnded = true;
        }
        return RecordStatus.newStatusWithoutArrivalTime(!hasEnded);
    }

    /** Waits for the next row; says whether there is one. */
    private boolean find(long until) throws IOException, InterruptedException {
        while (true) {
            long now = System.nanoTime();
            if (isRehearsal || now >= until || head.isEnding() || consumed() >= settings.batchBytes()) {
                return false;
            }
            if (isDirty && now - flushed >= settings.flushMs() * MILLISECOND) {
                isDirty = false;
                return give(Kind.FLUSH);
            }
            byte[] frames = reader.read(head.await(reader.offset().offset(), 0), settings.rowBytes());
            if (frames != null) {
                JournalOffset at = reader.offset();
                row = new Parcel(Kind.FRAMES, at.offset(), at.messages(), List.of(new Parcel.Item(0, -1, -1, frames)));
                flushed = isDirty ? flushed : now;
                isDirty = true;
                hasSaidIdle = false;
                latest = now;
                return true;
            }
            if (!hasSaidIdle) {
                hasSaidIdle = true;
                return give(Kind.IDLE);
            }
            long idleEnd = consumed() > 0 ? latest + settings.idleMs() * MILLISECOND : until;
            if (now >= idleEnd) {
                return false;
            }
            long flush = isDirty ? flushed + settings.flushMs() * MILLISECOND : until;
            head.await(reader.offset().offset(), Math.min(Math.min(until, idleEnd), flush) - now);
        }
    }

    private long consumed() {
        return reader.offset().offset() - start.offset();
    }

    private boolean give(Kind kind) {
        row = Parcel.of(kind, reader.offset().offset(), reader.offset().messages());
        return true;
    }

    @Override
    public void close() throws IOException {
        reader.close();
    }
}
