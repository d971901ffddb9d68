package org.wallaroo.spark.journal;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32;

/** Writes the files of a journal, as a gateway does. */
public final class WrittenJournal {
    /** Id of the journal. */
    public static final long ID = 0x1234;

    private final Path directory;
    private final ByteArrayOutputStream written = new ByteArrayOutputStream();
    private final List<JournalOffset> boundaries = new ArrayList<>(List.of(new JournalOffset(ID, 0, 0)));
    private long base;
    private long sequence;

    public WrittenJournal(Path directory) throws IOException {
        this.directory = directory;
        begin();
    }

    /** Begins a new segment, unless the last one is empty. */
    public void begin() throws IOException {
        if (written.size() > 0 && written.size() == base) {
            return;
        }
        base = written.size();
        ByteBuffer header = ByteBuffer.allocate(32).order(ByteOrder.LITTLE_ENDIAN);
        header.put("WJR1".getBytes(StandardCharsets.US_ASCII)).putInt(0).putLong(base).putLong(sequence).putLong(ID);
        Files.write(segment(), header.array());
    }

    private Path segment() {
        return directory.resolve(String.format("%020d.journal", base));
    }

    /** Appends a frame of a port, with a number of messages and a body of meaningless bytes. */
    public void append(int port, int messages, int bytes) throws IOException {
        ByteBuffer frame = ByteBuffer.allocate(40 + bytes).order(ByteOrder.LITTLE_ENDIAN);
        frame.put("WFR1".getBytes(StandardCharsets.US_ASCII)).putShort((short) 0).putShort((short) port);
        frame.putInt(messages).putInt(bytes).putLong(sequence);
        CRC32 crc = new CRC32();
        crc.update(frame.array(), 0, 36);
        crc.update(frame.array(), 40, bytes);
        frame.putInt(36, (int) crc.getValue());
        Files.write(segment(), frame.array(), StandardOpenOption.APPEND);
        written.writeBytes(frame.array());
        sequence += messages;
        long count = boundaries.get(boundaries.size() - 1).messages() + messages;
        boundaries.add(new JournalOffset(ID, written.size(), count));
    }

    /** Writes the file {@code head}, so that all written frames may be read. */
    public void publish() throws IOException {
        ByteBuffer head = ByteBuffer.allocate(32).order(ByteOrder.LITTLE_ENDIAN);
        head.putLong(written.size()).putLong(end().messages()).putLong(ID).putInt(0);
        CRC32 crc = new CRC32();
        crc.update(head.array(), 0, 28);
        byte[] whole = head.putInt((int) crc.getValue()).array();
        Files.write(directory.resolve("head"), whole, StandardOpenOption.CREATE, StandardOpenOption.WRITE); // in place
    }

    public byte[] bytes() {
        return written.toByteArray();
    }

    public JournalOffset end() {
        return boundaries.get(boundaries.size() - 1);
    }

    /** Returns the offsets at which frames begin, and the end of the journal. */
    public List<JournalOffset> boundaries() {
        return boundaries;
    }
}
