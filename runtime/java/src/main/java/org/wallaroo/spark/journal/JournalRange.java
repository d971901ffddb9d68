package org.wallaroo.spark.journal;

import java.io.Closeable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Iterator;
import java.util.List;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.message.JournalRow.Kind;

/** Iterates over a range's frames, for a task of a micro-batch. All of them are already in the journal. */
public final class JournalRange implements Iterator<JournalRow>, Closeable {
    private final JournalReader reader;
    private final long end;
    private final int rowBytes;

    JournalRange(JournalReader reader, long end, int rowBytes) {
        this.reader = reader;
        this.end = end;
        this.rowBytes = rowBytes;
    }

    @Override
    public boolean hasNext() {
        return reader.offset() < end;
    }

    @Override
    public JournalRow next() {
        try {
            byte[] frames = reader.read(end, rowBytes);
            return new JournalRow(Kind.FRAMES, reader.place(), List.of(new JournalRow.Item(0, -1, -1, frames)));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    @Override
    public void close() {
        try {
            reader.close();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
