package org.wallaroo.spark.realtime;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.zip.CRC32;

/** Reads the frames of a journal after an offset, verified; {@code storage/journal} has the layout of its files. */
public final class JournalReader implements Closeable {
    private static final int SEGMENT_HEADER_BYTES = 32;
    private static final int HEAD_BYTES = 32;
    private static final int SEGMENT_MAGIC = 0x31524a57; // WJR1
    private static final String SUFFIX = ".journal";
    private static final int TRIES = 100;

    private final Path directory;
    private final long id;
    private long offset;
    private long messages;
    private long sequence = -1;
    private FileChannel segment;
    private long base;
    private long following;

    /**
     * Makes a reader.
     *
     * @param directory of the journal
     * @param start where to begin
     */
    public JournalReader(Path directory, JournalOffset start) {
        this.directory = directory;
        this.id = start.journal();
        this.offset = start.offset();
        this.messages = start.messages();
    }

    /**
     * Returns how far the journal of a directory may be read now.
     *
     * @param directory of the journal
     * @throws IOException there is none
     */
    public static JournalOffset end(Path directory) throws IOException {
        for (int i = 0; i < TRIES; i++) { // the writer overwrites the file in place: a read may meet half of a write
            byte[] content = Files.readAllBytes(directory.resolve("head"));
            if (content.length == HEAD_BYTES) {
                ByteBuffer head = ByteBuffer.wrap(content).order(ByteOrder.LITTLE_ENDIAN);
                CRC32 crc = new CRC32();
                crc.update(content, 0, HEAD_BYTES - 4);
                if ((int) crc.getValue() == head.getInt(HEAD_BYTES - 4)) {
                    return new JournalOffset(head.getLong(16), head.getLong(0), head.getLong(8));
                }
            }
        }
        throw new IOException("the file head of " + directory + " is not whole");
    }

    /** Returns the place after all that was read. */
    Parcel.Place place() {
        return new Parcel.Place(offset, messages, sequence);
    }

    /**
     * Reads whole frames; null when there is nothing between here and the end.
     *
     * @param end how far the journal may be read
     * @param maxBytes at most so many, unless one frame alone has more
     * @throws OperatorFailure R612, bytes are lost or changed; R619, it is another journal
     */
    public byte[] read(long end, int maxBytes) throws IOException {
        if (offset >= end) {
            return null;
        }
        if (segment == null || offset >= following || end > following) {
            open();
        }
        long stop = Math.min(end, following);
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
                return progress.end() == data.length ? data : Arrays.copyOf(data, progress.end());
            }
            if (progress.wanted() > stop - offset || progress.wanted() <= wanted) {
                throw damaged(offset, "the frame is not whole");
            }
            wanted = progress.wanted();
        }
    }

    private byte[] get(int count) throws IOException {
        ByteBuffer buffer = ByteBuffer.allocate(count);
        long at = SEGMENT_HEADER_BYTES + offset - base;
        while (buffer.hasRemaining()) {
            if (segment.read(buffer, at + buffer.position()) < 0) {
                throw damaged(offset, "the file ends here");
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
        int index = Arrays.binarySearch(bases, offset);
        index = index < 0 ? -index - 2 : index;
        if (index < 0) {
            throw damaged(offset, "the segment was removed");
        }
        following = index + 1 < bases.length ? bases[index + 1] : Long.MAX_VALUE;
        if (segment == null || bases[index] != base) {
            close();
            base = bases[index];
            openSegment();
        }
    }

    private void openSegment() throws IOException {
        Path path = directory.resolve(String.format("%020d%s", base, SUFFIX));
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
            throw OperatorFailure.of("R619", "path", directory, "expected", JournalOffset.hex(id),
                    "actual", JournalOffset.hex(header.getLong(24)));
        }
    }

    private OperatorFailure damaged(long at, String reason) {
        return OperatorFailure.of("R612", "path", directory, "offset", at, "reason", reason);
    }

    @Override
    public void close() throws IOException {
        if (segment != null) {
            segment.close();
            segment = null;
        }
    }
}
