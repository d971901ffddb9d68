package org.wallaroo.spark.journal;

import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;

/** Reads the frames of a journal after an offset, and verifies them. A subclass gets their bytes. */
abstract class JournalReader implements Closeable {
    private long offset;
    private long messages;
    private long sequence = -1;

    JournalReader(JournalOffset start) {
        this.offset = start.offset();
        this.messages = start.messages();
    }

    /**
     * Returns the reader of a query's journal.
     *
     * @param settings of the query
     * @param start offset at which reading begins
     * @param head gets the position up to which a gateway has sent its journal
     */
    static JournalReader of(Settings settings, JournalOffset start, JournalHead head) {
        String directory = settings.journal();
        return directory.isEmpty() ? new JournalTail(settings, start, head)
                : new JournalFiles(Path.of(directory), start);
    }

    /** Returns the place in the journal after the frames that were read. */
    JournalRow.Place place() {
        return new JournalRow.Place(offset, messages, sequence);
    }

    final long offset() {
        return offset;
    }

    /**
     * Reads whole frames; returns null if no frame lies between the current offset and {@code end}.
     *
     * @param end how far the journal may be read
     * @param maxBytes largest number of bytes, unless one frame alone is longer
     * @throws OperatorFailure if bytes are lost or changed, or this is another journal: R698 for files, R648 for a
     *     gateway
     */
    final byte[] read(long end, int maxBytes) throws IOException {
        if (offset >= end) {
            return null;
        }
        long stop = reach(end);
        int wanted = (int) Math.min(stop - offset, maxBytes);
        while (true) {
            byte[] data = get(wanted);
            Frames.Progress progress = Frames.verify(data, sequence);
            if (!progress.fault().isEmpty()) {
                throw damaged(offset + progress.end(), progress.fault());
            }
            if (progress.end() > 0) {
                offset += progress.end();
                messages += progress.messages();
                sequence = progress.sequence();
                passed(progress.end());
                return progress.end() == data.length ? data : Arrays.copyOf(data, progress.end());
            }
            if (progress.wanted() > stop - offset || progress.wanted() <= wanted) {
                throw damaged(offset, "the frame is not whole");
            }
            wanted = progress.wanted();
        }
    }

    /** Returns the header of the next frame, which must begin before {@code end}. */
    final byte[] header(long end) throws IOException {
        reach(end);
        return get(Frames.HEADER_BYTES);
    }

    /** Skips a frame that has {@code bytes} bytes and {@code count} messages. */
    final void skip(int bytes, long count) {
        offset += bytes;
        messages += count;
    }

    /** Returns the offset up to which {@link #get} has bytes: at most {@code end}, and greater than {@link #offset}. */
    abstract long reach(long end) throws IOException;

    /** Returns {@code count} bytes from {@link #offset} on. {@link JournalPull} returns all frames that it has. */
    abstract byte[] get(int count) throws IOException;

    /** Records that the next {@code count} bytes were read, so that they need not be kept. */
    void passed(int count) {
        // Files keep their bytes.
    }

    /** Returns the error for damaged or missing frames at an offset. */
    abstract OperatorFailure damaged(long at, String reason);
}
