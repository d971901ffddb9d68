package org.wallaroo.spark.journal;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import org.wallaroo.spark.query.OperatorFailure;

/** Reads the files of a journal on this machine; {@code storage/journal} defines their layout. */
final class JournalFiles extends JournalReader {
    private static final int SEGMENT_HEADER_BYTES = 32;
    private static final int SEGMENT_MAGIC = 0x31524a57; // WJR1
    private static final String SUFFIX = ".journal";

    private final Path directory;
    private final long id;
    private FileChannel segment;
    private long base;
    private long following;

    /**
     * Makes a reader of a journal's files.
     *
     * @param directory directory of the journal
     * @param start offset at which reading begins
     */
    JournalFiles(Path directory, JournalOffset start) {
        super(start);
        this.directory = directory;
        this.id = start.journal();
    }

    @Override
    long reach(long end) throws IOException {
        boolean isLast = following == Long.MAX_VALUE; // it was the last segment when it was opened
        if (segment == null || offset() >= following || isLast && end > base + segment.size() - SEGMENT_HEADER_BYTES) {
            open();
        }
        return Math.min(end, following);
    }

    @Override
    byte[] get(int count) throws IOException {
        ByteBuffer buffer = ByteBuffer.allocate(count);
        long at = SEGMENT_HEADER_BYTES + offset() - base;
        while (buffer.hasRemaining()) {
            if (segment.read(buffer, at + buffer.position()) < 0) {
                throw damaged(offset(), "the file ends here");
            }
        }
        return buffer.array();
    }

    private void open() throws IOException {
        long[] bases;
        try (var names = Files.list(directory)) {
            bases = names.map(path -> path.getFileName().toString())
                    .filter(name -> name.endsWith(SUFFIX))
                    .mapToLong(name -> Long.parseLong(name.substring(0, name.length() - SUFFIX.length())))
                    .sorted()
                    .toArray();
        }
        int index = Arrays.binarySearch(bases, offset());
        index = index < 0 ? -index - 2 : index;
        if (index < 0) {
            throw damaged(offset(), "the segment was removed");
        }
        following = index + 1 < bases.length ? bases[index + 1] : Long.MAX_VALUE;
        if (segment == null || bases[index] != base) {
            close();
            base = bases[index];
            openSegment();
        }
    }

    private void openSegment() throws IOException {
        Path path = directory.resolve(String.format(Locale.ROOT, "%020d%s", base, SUFFIX));
        try {
            segment = FileChannel.open(path);
        } catch (NoSuchFileException error) {
            throw damaged(base, "the segment was removed");
        }
        ByteBuffer header = ByteBuffer.allocate(SEGMENT_HEADER_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        segment.read(header, 0);
        if (header.hasRemaining() || header.getInt(0) != SEGMENT_MAGIC || header.getLong(8) != base) {
            throw damaged(base, "the file has no valid header");
        }
        if (header.getLong(24) != id) {
            throw OperatorFailure.of("R698", "what", "journal " + directory, "reason", "the checkpoint refers to journal "
                    + JournalOffset.hex(id) + "; found " + JournalOffset.hex(header.getLong(24)));
        }
    }

    @Override
    OperatorFailure damaged(long at, String reason) {
        return OperatorFailure.of("R698", "what", "journal " + directory + " at offset " + at, "reason", reason);
    }

    @Override
    public void close() throws IOException {
        if (segment != null) {
            segment.close();
            segment = null;
        }
    }
}
