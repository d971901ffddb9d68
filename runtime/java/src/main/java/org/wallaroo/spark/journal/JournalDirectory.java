package org.wallaroo.spark.journal;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.WatchKey;
import java.nio.file.WatchService;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.query.OperatorFailure;

/** A journal in a directory of this machine, for micro-batches. */
final class JournalDirectory implements JournalPlace {
    private static final int HEAD_BYTES = 32;
    private static final int TRIES = 100;
    private static final long LOOK_MS = 20; // between two checks for new frames, if the system cannot report writes

    private final Path directory;
    private WatchService writes; // null before the first wait, or if the system cannot report writes

    JournalDirectory(Path directory) {
        this.directory = directory;
    }

    @Override
    public boolean isSent() {
        return false;
    }

    @Override
    public JournalOffset end() {
        ByteBuffer head = ByteBuffer.allocate(HEAD_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        try (FileChannel file = FileChannel.open(directory.resolve("head"))) {
            for (int i = 0; i < TRIES; i++) { // the writer may be overwriting the head
                head.clear();
                file.read(head, 0);
                CRC32 crc = new CRC32();
                crc.update(head.array(), 0, HEAD_BYTES - 4);
                if (!head.hasRemaining() && (int) crc.getValue() == head.getInt(HEAD_BYTES - 4)) {
                    return new JournalOffset(head.getLong(16), head.getLong(0), head.getLong(8));
                }
            }
        } catch (NoSuchFileException error) {
            throw missing("there is no head");
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        throw missing("its head is damaged");
    }

    private JournalOffset await(JournalOffset from, long milliseconds) throws InterruptedException {
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(milliseconds);
        if (milliseconds > 0 && writes == null) {
            writes = watch();
        }
        JournalOffset end = end();
        for (long left; end.offset() <= from.offset() && (left = until - System.nanoTime()) > 0; end = end()) {
            if (writes == null) {
                Thread.sleep(LOOK_MS);
                continue;
            }
            WatchKey written = writes.poll(left, TimeUnit.NANOSECONDS);
            if (written != null) {
                written.pollEvents();
                written.reset();
            }
        }
        return end;
    }

    /** Returns a watcher of writes in the directory, or null if the system cannot report writes. */
    private WatchService watch() {
        WatchService made = null;
        try {
            made = directory.getFileSystem().newWatchService();
            directory.register(made, StandardWatchEventKinds.ENTRY_MODIFY);
            return made;
        } catch (IOException | UnsupportedOperationException error) {
            close(made);
            return null;
        }
    }

    @Override
    public void close() {
        close(writes);
        writes = null;
    }

    private static void close(WatchService watch) {
        try {
            if (watch != null) {
                watch.close();
            }
        } catch (IOException error) {
            // Ignored: the watcher is not used again.
        }
    }

    @Override
    public JournalOffset limit(JournalOffset from, long maxBytes, long waitMs) throws InterruptedException {
        JournalOffset end = await(from, waitMs);
        if (end.journal() != from.journal()) {
            throw OperatorFailure.of("R698", "what", "journal " + directory, "reason", "the checkpoint refers to journal "
                    + JournalOffset.hex(from.journal()) + "; found " + JournalOffset.hex(end.journal()));
        }
        if (end.offset() < from.offset()) {
            throw OperatorFailure.of("R698", "what", "journal " + directory + " at offset " + end.offset(), "reason",
                    "it ends there; the checkpoint has read to " + from.offset());
        }
        if (end.offset() - from.offset() <= maxBytes) {
            return end;
        }
        JournalOffset chosen = null;
        for (JournalOffset each : boundaries(from, end.offset(), maxBytes)) {
            if (chosen != null && each.offset() - from.offset() > maxBytes) {
                break;
            }
            chosen = each;
        }
        return chosen;
    }

    @Override
    public List<Long> split(JournalOffset from, JournalOffset to, int parts) {
        List<Long> ends = new ArrayList<>();
        long size = to.offset() - from.offset();
        for (JournalOffset each : parts == 1 ? List.<JournalOffset>of() : boundaries(from, to.offset(), size)) {
            long done = each.offset() - from.offset();
            if (done * parts >= size * (ends.size() + 1) && each.offset() < to.offset()) {
                ends.add(each.offset());
            }
        }
        ends.add(to.offset());
        return ends;
    }

    @Override
    public JournalRange range(JournalOffset start, long end, int rowBytes) {
        return new JournalRange(new JournalFiles(directory, start), end, rowBytes);
    }

    private List<JournalOffset> boundaries(JournalOffset from, long end, long maxBytes) {
        List<JournalOffset> found = new ArrayList<>();
        try (JournalFiles reader = new JournalFiles(directory, from)) {
            while (reader.offset() < end && reader.offset() - from.offset() <= maxBytes) {
                byte[] header = reader.header(end);
                long count = Frames.isControl(Frames.port(header, 0)) ? 0 : Frames.count(header, 0);
                reader.skip(Frames.bytes(header, 0), count);
                found.add(new JournalOffset(from.journal(), reader.offset(), reader.place().messages()));
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return found;
    }

    private OperatorFailure missing(String reason) {
        return OperatorFailure.of("R698", "what", "journal " + directory, "reason", reason);
    }
}
