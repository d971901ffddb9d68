package org.wallaroo.spark.journal;

import java.io.Closeable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.wallaroo.spark.message.JournalRow.Kind;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Settings;

/**
 * Iterates over the frames of the journal as soon as they arrive, for the engine of real-time mode, until the driver
 * stops.
 *
 * <p>A FLUSH row, at which open calls end, comes a fixed time after the first frames that follow the previous FLUSH,
 * and after the last frames. An IDLE row comes when the journal has no more frames for now.
 */
public final class JournalRows implements Iterator<JournalRow>, Closeable {
    private static final long LONG_NS = TimeUnit.HOURS.toNanos(1);

    private final JournalReader reader;
    private final JournalHead head;
    private final long flushNs;
    private final int rowBytes;
    private JournalRow next;
    private boolean hasSaidIdle = true;
    private boolean isDirty; // frames came since the last FLUSH
    private long dirtySince;

    public JournalRows(Settings settings, JournalOffset start) {
        head = JournalHead.of(settings, start);
        reader = JournalReader.of(settings, start, head);
        flushNs = TimeUnit.MILLISECONDS.toNanos(settings.flushMs());
        rowBytes = settings.rowBytes();
    }

    @Override
    public boolean hasNext() {
        try {
            while (next == null && (isDirty || !head.isEnding())) {
                next = nextRow();
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("the engine was interrupted", error);
        }
        return next != null;
    }

    @Override
    public JournalRow next() {
        JournalRow given = next;
        next = null;
        return given;
    }

    /** Returns the next row. If there is none yet, waits for frames or the time of a flush, and returns null. */
    private JournalRow nextRow() throws IOException, InterruptedException {
        long now = System.nanoTime();
        if (isDirty && (now - dirtySince >= flushNs || head.isEnding())) {
            isDirty = false;
            return JournalRow.of(Kind.FLUSH, reader.place());
        }
        byte[] frames = reader.read(head.await(reader.place().offset(), 0), rowBytes);
        if (frames != null) {
            dirtySince = isDirty ? dirtySince : now;
            isDirty = true;
            hasSaidIdle = false;
            return new JournalRow(Kind.FRAMES, reader.place(), List.of(new JournalRow.Item(0, -1, -1, frames)));
        }
        if (!hasSaidIdle) {
            hasSaidIdle = true;
            return JournalRow.of(Kind.IDLE, reader.place());
        }
        head.await(reader.place().offset(), isDirty ? dirtySince + flushNs - now : LONG_NS);
        return null;
    }

    @Override
    public void close() throws IOException {
        reader.close();
    }
}
